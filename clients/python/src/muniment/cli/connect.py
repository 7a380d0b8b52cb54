"""How commands reach a server: its address, the credential, and what they print when it refuses.

A host key goes only to the server it was given for: key and address come from one options. A session's token may
come from the environment beside an address from a file, because `session open` hands out the token alone.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

import muniment
from muniment import Classification, HostClient, SessionClient
from muniment.cli.failures import Failure, report_file_errors
from muniment.cli.parameters import LEVEL, TEXT
from muniment.settings import DEVELOPMENT_FILE

_PATH = click.Path(path_type=Path)
_COMMAND_TTL = timedelta(minutes=5)
"""How long a session outlives a command that was killed."""

_HINTS: dict[type[muniment.MunimentError], str] = {
    muniment.Unauthenticated: "get another: muniment host-key create, or muniment session open",
    muniment.PrincipalNotAllowed: "agents, sessions and sharing want MUNIMENT_HOST_KEY, items a session",
    muniment.CeilingExceeded: "stay at or below the key's ceiling, or use a key with a higher one",
    muniment.AgentNotFound: "see: muniment agent list; make it: muniment agent create NAME",
    muniment.SessionNotFound: "see the open ones: muniment session list AGENT",
    muniment.MemoryNotFound: "see what this session sees: muniment memory list",
    muniment.NoteNotFound: "see what this session sees: muniment note list, or with --tier user",
    muniment.BlockNotFound: "see what this session sees: muniment block list",
    muniment.PassageNotFound: "see what this session sees: muniment passage list",
    muniment.SharedBlockNotFound: "share it first: muniment block share OWNER LABEL",
    muniment.BlockNotAttached: "see to whom it is: muniment block consumers OWNER LABEL",
    muniment.AgentExists: "choose another id, or see: muniment agent list",
    muniment.NoteExists: "leave --id out, or give the content and tier that it has",
    muniment.BlockExists: "see: muniment block consumers OWNER LABEL; if it only has text already, leave CONTENT out",
    muniment.PassageExists: "leave --id out, or give the content that it has",
    muniment.TierDisabled: "a host switches it on: muniment agent update NAME --notes, or --profile",
    muniment.BudgetExceeded: "shorten or delete a note first: muniment note list",
    muniment.TextNotFound: "see what is there: muniment block get LABEL",
    muniment.TextNotUnique: "give more of what stands around it",
    muniment.LineOutOfRange: "see the lines: muniment block get LABEL; 0 is before the first",
    muniment.BlockTooLarge: "shorten it first: muniment block replace, or update",
    muniment.PromptTooLarge: "render less of it: --section; shorten what is large: muniment block list",
    muniment.ConversationTainted: "open it at the conversation's taint or above, or start anew: muniment session reset",
    muniment.WriteLevelMismatch: "a session writes at its own level: use one at the item's, with --agent and --taint",
    muniment.EtagStale: "read it again, then write with its etag",
    muniment.TaintChanged: "start again",
    muniment.InvalidArgument: "see --help",
    muniment.Overloaded: "try again in a moment",
    muniment.Unavailable: "is it running? muniment serve --dev (or make run), or name another with MUNIMENT_ADDRESS",
    muniment.DeadlineExceeded: "try again; a write may have happened",
    muniment.MethodUnknown: "the server is older than this command: upgrade it",
    muniment.InternalError: "the server's log says more",
}


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What the options say about the server."""

    address: str | None
    data_dir: Path | None
    tls: bool | muniment.TLS


@dataclass(frozen=True, slots=True)
class Caller:
    """What the environment says about the server and the caller. A variable that is empty is absent."""

    address: str | None
    host_key: str | None = field(repr=False)
    token: str | None = field(repr=False)

    @classmethod
    def of_environment(cls) -> Caller:
        """What MUNIMENT_ADDRESS, MUNIMENT_HOST_KEY and MUNIMENT_TOKEN say."""
        names = ("MUNIMENT_ADDRESS", "MUNIMENT_HOST_KEY", "MUNIMENT_TOKEN")
        return cls(*(os.environ.get(name, "").strip() or None for name in names))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server, and the credentials for it."""

    address: str
    host_key: str | None = field(repr=False)
    token: str | None = field(repr=False)


def with_server_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that name a server, as *options*."""

    @click.option("--address", help="HOST:PORT or unix:PATH. The default is MUNIMENT_ADDRESS, then --data-dir's.")
    @click.option(
        "--data-dir",
        type=_PATH,
        metavar="DIR",
        help="Where `serve --dev` runs. The default is .muniment, then its own.",
    )
    @click.option("--tls", is_flag=True, help="Encrypt, and trust the authorities that gRPC knows.")
    @click.option("--tls-ca", type=_PATH, metavar="FILE", envvar="MUNIMENT_TLS_CA", help="Encrypt, and trust this one.")
    @click.option("--tls-cert", type=_PATH, metavar="FILE", envvar="MUNIMENT_TLS_CERT", help="What to show the server.")
    @click.option("--tls-key", type=_PATH, metavar="FILE", envvar="MUNIMENT_TLS_KEY", help="Its key.")
    @functools.wraps(command)
    def with_options(
        *,
        address: str | None,
        data_dir: Path | None,
        tls: bool,
        tls_ca: Path | None,
        tls_cert: Path | None,
        tls_key: Path | None,
        **arguments: Any,
    ) -> None:
        if address and data_dir:
            raise click.UsageError("--address and --data-dir both name the server: give one")
        with report_server_errors():
            named = muniment.TLS(tls_ca, tls_cert, tls_key) if tls_ca or tls_cert or tls_key else tls
            command(options=ServerOptions(address, data_dir, named), **arguments)

    return with_options


def with_host(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command *host*, a client of the server that the options name."""

    @with_server_options
    @functools.wraps(command)
    def with_client(*, options: ServerOptions, **arguments: Any) -> None:
        with open_host(find_server(options), options.tls) as host:
            command(host=host, **arguments)

    return with_client


def with_session(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command *session*: that of MUNIMENT_TOKEN, or one opened for just this command."""
    which = click.option(
        "--agent", metavar="NAME", help="Open a session of this agent, with the host key, for this command."
    )
    return which(_with_session(command, "--agent NAME and --taint LEVEL"))


def with_session_of(command: Callable[..., None]) -> Callable[..., None]:
    """Like with_session, for a command about an agent: its name is an argument."""
    which = click.argument("agent", metavar="[AGENT]", required=False, type=TEXT)
    return which(_with_session(command, "AGENT and --taint LEVEL"))


def _with_session(command: Callable[..., None], words: str) -> Callable[..., None]:
    @click.option("--taint", type=LEVEL, help="The level of that session.")
    @with_server_options
    @functools.wraps(command)
    def with_client(
        *, options: ServerOptions, agent: str | None, taint: Classification | None, **arguments: Any
    ) -> None:
        if (agent is None) != (taint is None):
            raise click.UsageError(f"{words} come together")
        endpoint = find_server(options)
        with (
            _opened(endpoint, options, agent, taint) if agent and taint else _kept(endpoint, options, words) as session
        ):
            command(session=session, **arguments)

    return with_client


def open_host(endpoint: Endpoint, tls: bool | muniment.TLS) -> HostClient:
    """A client with the host key. Raises Failure if the endpoint has none."""
    if endpoint.host_key is None:
        raise Failure("there is no host key", "set MUNIMENT_HOST_KEY; make one: muniment host-key create")
    return muniment.connect(endpoint.address, host_key=endpoint.host_key, tls=tls)


@contextmanager
def _opened(endpoint: Endpoint, options: ServerOptions, agent: str, taint: Classification) -> Iterator[SessionClient]:
    with (
        open_host(endpoint, options.tls) as host,
        host.open_session(agent, taint, ttl=_COMMAND_TTL) as session,
    ):
        yield session


def _kept(endpoint: Endpoint, options: ServerOptions, words: str) -> AbstractContextManager[SessionClient]:
    if endpoint.token is None:
        raise Failure(
            "there is no session to act for",
            f"give {words}, or set MUNIMENT_TOKEN: muniment session open",
        )
    return muniment.connect(endpoint.address, token=endpoint.token, tls=options.tls)


def find_server(options: ServerOptions) -> Endpoint:
    """The server and the credentials: options first, then the environment, then the file of `serve --dev`."""
    caller = Caller.of_environment()
    if options.data_dir is not None:
        return _from_file(options.data_dir / DEVELOPMENT_FILE.name, caller.token)
    address = options.address or caller.address
    if address is not None:
        return Endpoint(address, caller.host_key, caller.token)
    if caller.host_key is not None:
        raise Failure("MUNIMENT_HOST_KEY is set, and not for which server", "set MUNIMENT_ADDRESS, or give --address")
    for file in (DEVELOPMENT_FILE, _data_home() / DEVELOPMENT_FILE.name):
        if file.exists():
            return _from_file(file, caller.token)
    raise Failure("no server is named", "set MUNIMENT_ADDRESS, or start one: muniment serve --dev")


def _data_home() -> Path:
    """Where `muniment serve` keeps its data by default."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "muniment"


def _from_file(file: Path, token: str | None) -> Endpoint:
    try:
        written = json.loads(file.read_text(encoding="utf-8"))
        return Endpoint(str(written["address"]), str(written["host_key"]), token)
    except (ValueError, KeyError, TypeError):
        raise Failure(
            f"{file} does not hold an address and a host key", "write it anew: muniment serve --dev"
        ) from None


@contextmanager
def report_server_errors() -> Iterator[None]:
    """Turn an error of the server, or a value that cannot be sent, into a Failure."""
    try:
        with report_file_errors():
            yield
    except muniment.MunimentError as error:
        raise Failure(_said_by(error), _hint(error)) from None
    except UnicodeError:
        raise Failure("the text is not in UTF-8", "convert it first: iconv -t UTF-8") from None
    except ValueError as error:
        raise Failure(str(error), "see --help") from None


def broken_rules(error: muniment.InvalidArgument) -> str:
    """`content is too long; tags[0] must not be empty`."""
    return "; ".join(f"{each.field} {each.description}" for each in error.violations)


def _said_by(error: muniment.MunimentError) -> str:
    if isinstance(error, muniment.InternalError) and error.incident:
        return f"{error} (incident {error.incident})"
    return str(error)


def _hint(error: muniment.MunimentError) -> str:
    return next((hint for kind, hint in _HINTS.items() if isinstance(error, kind)), "")
