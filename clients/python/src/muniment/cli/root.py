"""The command `muniment`: the client's commands, and those that other installed distributions add."""

from __future__ import annotations

import io
import sys

import click

from muniment._installing import commands_for_server
from muniment.cli.groups import Group, Lazy, Section, added_sections, find_added

_COMMANDS = {
    "agent": Lazy("muniment.cli.agent:agent", "Agents, for hosts."),
    "session": Lazy("muniment.cli.session:session", "Sessions and their taint, for hosts."),
    "memory": Lazy("muniment.cli.memory:memory", "Memories, as one session sees them."),
    "note": Lazy("muniment.cli.note:note", "Notes in two budgeted tiers, as one session sees them."),
    "block": Lazy("muniment.cli.block:block", "Core blocks, for sessions; and sharing them, for hosts."),
    "passage": Lazy("muniment.cli.passage:passage", "Archival passages, as one session sees them."),
    "release": Lazy("muniment.cli.release:release", "Releases to a lower level or to what is trusted, for hosts."),
    "search": Lazy("muniment.cli.search:search", "Memories, notes and passages in one search."),
    "prompt": Lazy("muniment.cli.prompt:prompt", "The prompt of a session."),
    "mcp": Lazy("muniment.cli.mcp:mcp", "The memory of one session, for a model: an MCP server."),
    "export": Lazy("muniment.cli.transfer.export:export", "Export all items of an agent to a file."),
    "import": Lazy("muniment.cli.transfer.import_:import_", "Import items from a file into an agent."),
}
_WITHOUT_SERVER = "serve, migrate and the other operators' commands come with the server. Install it"


class Root(Group):
    """The client's commands first. The installed distributions are searched only for a name that is not among them."""

    @property
    def sections(self) -> list[Section]:
        """Every command, in the order of the help."""
        return [Section("Commands", _COMMANDS), *added_sections()]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for section in self.sections for name in section.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _COMMANDS[cmd_name].load() if cmd_name in _COMMANDS else find_added(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            near = click.NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx)
            if added_sections():
                raise near from None
            raise click.UsageError(
                f"{near.format_message()}\n{_WITHOUT_SERVER}\n{commands_for_server()}", ctx
            ) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in self.sections:
            with formatter.section(section.heading):
                formatter.write_dl([(name, command.summary) for name, command in section.commands.items()])


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="muniment", prog_name="muniment")
def main() -> None:
    """Memory for AI agents with information-flow control.

    Commands find the server and the credential in MUNIMENT_ADDRESS with MUNIMENT_HOST_KEY or MUNIMENT_TOKEN, or in the
    file that `muniment serve --dev` writes.

    \b
    Examples:
      muniment agent create alice
      muniment memory save plan "ship on Friday" --agent alice --taint internal
      muniment search friday --agent alice --taint internal
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show ✓ gets an escape, not a traceback
            stream.reconfigure(errors="backslashreplace")
