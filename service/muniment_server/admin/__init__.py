"""Operators' commands, which are part of the command `muniment`. They work on the database, or read the metrics."""

from muniment.cli.groups import Lazy, Section

COMMANDS = Section(
    "Operators' commands",
    {
        "serve": Lazy("muniment_server.admin.serve:serve", "Run a server."),
        "http": Lazy("muniment_http.command:http", "Forward calls by HTTP and JSON to a running server."),
        "console": Lazy("muniment_console.command:console", "Show what a host key may see on web pages."),
        "status": Lazy("muniment_server.admin.status:status", "Show how a running server does."),
        "migrate": Lazy("muniment_server.admin.migrate:migrate", "Prepare a database for the server."),
        "distribute": Lazy(
            "muniment_server.engines.citus.distribute:distribute", "Spread a database over a Citus cluster."
        ),
        "doctor": Lazy("muniment_server.admin.doctor:doctor", "Check this machine and the database."),
        "database": Lazy("muniment_server.admin.adopt:database", "Say which database server to use."),
        "backup": Lazy("muniment_server.admin.backup:backup", "Write everything in the database to a file."),
        "restore": Lazy("muniment_server.admin.backup:restore", "Restore a backup into a database without data."),
        "verify": Lazy("muniment_server.admin.backup:verify", "Check that a backup can be restored."),
        "journal": Lazy(
            "muniment_server.admin.backup:write_journal", "Write what must stay erased and revoked after a restore."
        ),
        "host-key": Lazy("muniment_server.admin.host_key:host_key", "Create, list and revoke host keys."),
        "identity": Lazy("muniment_server.admin.identity:identity", "Name hosts that other issuers vouch for."),
        "tenant": Lazy("muniment_server.admin.tenant:tenant", "Limit a tenant, freeze it, or close its sessions."),
        "agent endorse": Lazy("muniment_server.admin.endorsing:endorse", "Make what somebody has read trusted."),
        "hold": Lazy("muniment_server.admin.holds:hold", "Keep all that an agent has, whatever is erased or purged."),
        "history": Lazy("muniment_server.admin.history:history", "Show every version of one item."),
        "audit": Lazy("muniment_server.admin.audit:audit", "Read, verify and shorten the audit log."),
        "reindex": Lazy("muniment_server.admin.reindex:reindex", "Rebuild the search index."),
        "purge": Lazy("muniment_server.admin.purge:purge", "Remove old versions or sessions permanently."),
    },
)
