"""How a command fails: one message that says what to do next, on stderr, and exit status 1, or 3 if a part was done."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from muniment.cli.output import harmless


class Failure(click.ClickException):
    """A command cannot do what was asked. The message contains neither content nor secrets."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def show(self, file: IO[Any] | None = None) -> None:
        """Print it on stderr, unless *file* is given. Escapes control characters in it."""
        message, hint = (harmless(text, kept="\\") for text in (self.message, self.hint))
        click.echo(f"{click.style('Error:', fg='red', bold=True)} {message}", file=file, err=True)
        self.show_details()
        if hint:
            click.echo(f"  {hint}", file=file, err=True)

    def show_details(self) -> None:
        """Extra lines between message and hint. Empty by default."""


class Incomplete(Failure):
    """A command has done a part of what was asked. The message says what is left."""

    exit_code = 3


@contextmanager
def report_file_errors() -> Iterator[None]:
    """Turn an operating system error about a file or, if it names none, an address into a Failure."""
    try:
        yield
    except BrokenPipeError:  # the reader of the output has closed it
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
        where = f"{error.filename}: " if error.filename else ""
        hint = "check that the path exists and is yours" if error.filename else "check the address"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "make room on the disk, and run the command again"
        raise Failure(f"{where}{reason}", hint) from None


def _options(command: click.Command, ctx: click.Context) -> set[str]:
    """The options of a command and of all commands below it."""
    if isinstance(command, click.Group):
        below = (command.get_command(ctx, name) for name in command.list_commands(ctx))
        return set().union(*(_options(each, ctx) for each in below if each is not None))
    return {name for each in command.params if isinstance(each, click.Option) for name in each.opts}


class Discreet(click.Command):
    """A command with content among its arguments or options. Its usage errors do not repeat it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except (click.MissingParameter, click.BadParameter, click.BadOptionUsage):  # these messages repeat no content
            raise
        except click.NoSuchOption as error:
            raise click.UsageError(self._without_the_option(ctx, error), error.ctx) from None
        except click.UsageError as error:
            raise click.UsageError(self._without_the_extra_arguments(ctx), error.ctx) from None

    def _without_the_option(self, ctx: click.Context, error: click.NoSuchOption) -> str:
        """The message about an unknown option.

        It is named only where it cannot be content: if the command takes no arguments, or another command has it.
        """
        near = f" Did you mean {error.possibilities[0]}?" if error.possibilities else ""
        if not self._arguments(ctx) or error.option_name in _options(ctx.find_root().command, ctx):
            return f"{error.message}{near}"
        return (
            f"one of the options is unknown.{near} "
            "Put content in quotes, and -- before content that begins with a dash."
        )

    def _without_the_extra_arguments(self, ctx: click.Context) -> str:
        arguments = " ".join(self._arguments(ctx)) or "none"
        return f"there are more arguments than the command takes, which is {arguments}: put each in quotes"

    def _arguments(self, ctx: click.Context) -> list[str]:
        return [each.make_metavar(ctx) for each in self.params if isinstance(each, click.Argument)]
