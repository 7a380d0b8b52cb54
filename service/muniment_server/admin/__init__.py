"""Operators' commands. They reach the database, not a server, and join the client's in `muniment`."""

from muniment.cli.groups import Lazy, Section

COMMANDS = Section(
    "Operators' commands",
    {
        "serve": Lazy("muniment_server.admin.serve:serve", "Run a server."),
        "migrate": Lazy("muniment_server.admin.migrate:migrate", "Make a database ready."),
        "doctor": Lazy("muniment_server.admin.doctor:doctor", "Look for what is wrong, and say what to do."),
        "host-key": Lazy("muniment_server.admin.host_key:host_key", "Host keys."),
        "history": Lazy("muniment_server.admin.history:history", "Every version of one item."),
        "audit": Lazy("muniment_server.admin.audit:audit", "What was done."),
        "reindex": Lazy("muniment_server.admin.reindex:reindex", "Rebuild the search index."),
        "purge": Lazy("muniment_server.admin.purge:purge", "Remove old versions for good."),
    },
)
