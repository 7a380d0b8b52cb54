"""`muniment` itself."""

from __future__ import annotations

import io
import sys

import click

from muniment_server.cli.groups import Lazy, LazyGroup

_COMMANDS = {
    "serve": Lazy("muniment_server.cli.serve:serve", "Run a server."),
    "migrate": Lazy("muniment_server.cli.migrate:migrate", "Make a database ready."),
    "doctor": Lazy("muniment_server.cli.doctor:doctor", "Look for what is wrong, and say what to do."),
    "host-key": Lazy("muniment_server.cli.host_key:host_key", "Host keys, for operators."),
    "agent": Lazy("muniment_server.cli.agent:agent", "Agents, for hosts."),
    "session": Lazy("muniment_server.cli.session:session", "Sessions and their taint, for hosts."),
    "memory": Lazy("muniment_server.cli.memory:memory", "Memories, as one session sees them."),
    "note": Lazy("muniment_server.cli.note:notes", "Notes in two budgeted tiers, as one session sees them."),
    "block": Lazy("muniment_server.cli.block:block", "Core blocks, for sessions; and sharing them, for hosts."),
    "passage": Lazy("muniment_server.cli.passage:passage", "Archival passages, as one session sees them."),
    "search": Lazy("muniment_server.cli.search:search", "Memories, notes and passages in one search."),
    "prompt": Lazy("muniment_server.cli.prompt:prompt", "What a model would see."),
    "mcp": Lazy("muniment_server.cli.mcp:mcp", "The memory of one session, for a model: an MCP server."),
    "export": Lazy("muniment_server.cli.transfer.export:export", "Everything that an agent remembers, to a file."),
    "import": Lazy("muniment_server.cli.transfer.import_:import_", "A file, into what an agent remembers."),
    "history": Lazy("muniment_server.cli.history:history", "Every version of one memory, for operators."),
    "audit": Lazy("muniment_server.cli.audit:audit", "What was done, for operators."),
    "reindex": Lazy("muniment_server.cli.reindex:reindex", "Make anew what search finds, for operators."),
    "purge": Lazy("muniment_server.cli.purge:purge", "Throw old versions away, for operators."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="muniment-server", prog_name="muniment")
def main() -> None:
    """Memory for AI agents that keeps to information-flow levels.

    Operators' commands (migrate, doctor, host-key, history, audit, reindex, purge) reach the database; the others reach
    a server, by MUNIMENT_ADDRESS with MUNIMENT_HOST_KEY or MUNIMENT_TOKEN, or by the file that `serve --dev` writes.

    \b
    Examples:
      muniment serve --dev
      muniment agent create alice
      muniment memory save plan "ship on Friday" --agent alice --taint internal
      muniment search friday --agent alice --taint internal
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that knows no ✓ gets its number, not a traceback
            stream.reconfigure(errors="backslashreplace")
