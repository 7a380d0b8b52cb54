"""How commands connect to a server: the address, the credential, and hints for its errors.

A host key is sent only to the server it belongs to. A session's token may
come from the environment beside an address from a file, because `session open` hands out the token alone.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

import muniment
from muniment import Classification, HostClient, SessionClient
from muniment._channel import NotAnAddress, NotLocal
from muniment._shown import shown
from muniment.cli.failures import Failure, report_file_errors
from muniment.cli.hints import CREATE_HOST_KEY, OPEN_SESSION, SESSION_ENDED, SESSION_EXPIRED, hint_for, message
from muniment.cli.parameters import LEVEL, TEXT
from muniment.settings import DEVELOPMENT_FILE, in_development_file, named_development_file

_PATH = click.Path(path_type=Path)
_CONNECT_SECONDS = 2.0
"""The seconds that a command waits for a connection: whoever is at the terminal can start the server, and repeat it."""
_COMMAND_TTL = timedelta(minutes=5)
"""When the session of a command expires, in case the command is killed."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The server, as the options name it."""

    address: str | None
    data_dir: Path | None
    tls: bool | muniment.TLS


@dataclass(frozen=True, slots=True)
class Caller:
    """The server and the caller, as the environment names them. An empty variable counts as unset."""

    address: str | None
    host_key: str | None = field(repr=False)
    token: str | None = field(repr=False)

    @classmethod
    def of_environment(cls) -> Caller:
        """The values of MUNIMENT_ADDRESS, MUNIMENT_HOST_KEY and MUNIMENT_TOKEN."""
        names = ("MUNIMENT_ADDRESS", "MUNIMENT_HOST_KEY", "MUNIMENT_TOKEN")
        return cls(*(os.environ.get(name, "").strip() or None for name in names))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server, and the credentials for it."""

    address: str
    host_key: str | None = field(repr=False)
    token: str | None = field(repr=False)


def with_server_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that name a server, as the argument *options*."""

    @click.option(
        "--address",
        metavar="ADDRESS",
        help="HOST:PORT or unix:PATH. The default is MUNIMENT_ADDRESS, then the address in --data-dir.",
    )
    @click.option(
        "--data-dir",
        type=_PATH,
        metavar="DIR",
        help="The data directory of `serve --dev`. The default is MUNIMENT_DATA_DIR, or .muniment, then the server's "
        "default.",
    )
    @click.option("--tls", is_flag=True, help="Use TLS, and trust the authorities that gRPC includes.")
    @click.option(
        "--tls-ca",
        type=_PATH,
        metavar="FILE",
        envvar="MUNIMENT_TLS_CA",
        help="Use TLS, and trust a server whose certificate this authority signed. In PEM.",
    )
    @click.option(
        "--tls-cert",
        type=_PATH,
        metavar="FILE",
        envvar="MUNIMENT_TLS_CERT",
        help="The certificate of this client, in PEM, if the server asks for one (serve --tls-client-ca).",
    )
    @click.option(
        "--tls-key",
        type=_PATH,
        metavar="FILE",
        envvar="MUNIMENT_TLS_KEY",
        help="The private key of this client's certificate, in PEM.",
    )
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
            raise click.UsageError("--address and --data-dir both name the server: give only one")
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
    """Give a command *session*: that of MUNIMENT_TOKEN, or one opened for this command only."""
    which = click.option(
        "--agent", metavar="NAME", help="Open a session of this agent for this command, with the host key."
    )
    return which(_with_session(command, "--agent NAME and --taint LEVEL"))


def with_session_of(command: Callable[..., None]) -> Callable[..., None]:
    """Like with_session, for a command about an agent: its name is an argument."""
    argument = click.argument("agent", metavar="[AGENT]", required=False, type=TEXT)
    option = click.option(
        "--agent",
        "option",
        hidden=True,
        expose_value=False,
        callback=_point_to_the_argument,
        help="Refused: the agent is an argument.",
    )
    return argument(option(_with_session(command, "AGENT and --taint LEVEL")))


def _point_to_the_argument(context: click.Context, _: click.Parameter, agent: str | None) -> None:
    """Whoever gives --agent, as other commands take it, learns what this one takes."""
    if agent is not None:
        raise click.BadOptionUsage("--agent", f"the agent is an argument: {context.command_path} AGENT --taint LEVEL")


def _with_session(command: Callable[..., None], words: str) -> Callable[..., None]:
    @click.option("--taint", type=LEVEL, help="The level of the session.")
    @with_server_options
    @functools.wraps(command)
    def with_client(
        *, options: ServerOptions, agent: str | None, taint: Classification | None, **arguments: Any
    ) -> None:
        if (agent is None) != (taint is None):
            raise click.UsageError(f"{words} require each other")
        endpoint = find_server(options)
        with (
            _opened(endpoint, options, agent, taint) if agent and taint else _kept(endpoint, options, words) as session
        ):
            command(session=session, **arguments)

    return with_client


def open_host(endpoint: Endpoint, tls: bool | muniment.TLS) -> HostClient:
    """A client with the host key. Raises Failure if the endpoint has none."""
    if endpoint.host_key is None:
        raise Failure("there is no host key", f"set MUNIMENT_HOST_KEY; create one: {CREATE_HOST_KEY}")
    if endpoint.host_key.startswith("mun_s_"):
        raise Failure("MUNIMENT_HOST_KEY has the token of a session", "give that as MUNIMENT_TOKEN")
    host = muniment.connect(endpoint.address, host_key=endpoint.host_key, tls=tls)
    host._calls.connect_timeout = _CONNECT_SECONDS
    return host


@contextmanager
def _opened(endpoint: Endpoint, options: ServerOptions, agent: str, taint: Classification) -> Iterator[SessionClient]:
    with (
        open_host(endpoint, options.tls) as host,
        host.open_session(agent, taint, ttl=_COMMAND_TTL) as session,
    ):
        yield session


@contextmanager
def _kept(endpoint: Endpoint, options: ServerOptions, words: str) -> Iterator[SessionClient]:
    if endpoint.token is None:
        raise Failure(
            "there is no session to act for",
            f"give {words}, or set MUNIMENT_TOKEN: {OPEN_SESSION}",
        )
    with (
        with_hints_for_ended_session(),
        muniment.connect(endpoint.address, token=endpoint.token, tls=options.tls) as session,
    ):
        session._calls.connect_timeout = _CONNECT_SECONDS
        yield session


def find_server(options: ServerOptions) -> Endpoint:
    """The server and the credentials: options first, then the environment, then a file of `serve --dev`."""
    caller = Caller.of_environment()
    if options.data_dir is not None:
        return _from_file(options.data_dir / DEVELOPMENT_FILE.name, caller.token)
    address = options.address or caller.address
    if address is not None:
        return Endpoint(address, caller.host_key or _host_key_for(address), caller.token)
    if caller.host_key is not None:
        raise Failure("MUNIMENT_HOST_KEY is set, but no server for it", "set MUNIMENT_ADDRESS, or give --address")
    for file in _development_files():
        return _from_file(file, caller.token)
    raise Failure("no server is named", "set MUNIMENT_ADDRESS, or start one: muniment serve --dev")


def _development_files() -> Iterator[Path]:
    """The files that `serve --dev` wrote: that of MUNIMENT_DATA_DIR alone, if it is set."""
    named = named_development_file(os.environ)
    files = [DEVELOPMENT_FILE, _data_home() / DEVELOPMENT_FILE.name] if named is None else [named]
    return (file for file in files if os.access(file, os.F_OK))


def _host_key_for(address: str) -> str | None:
    """The key in a file of `serve --dev` that names the same address."""
    readable = (file for file in _development_files() if os.access(file, os.R_OK))
    found = (_from_file(file, None) for file in readable)
    return next((each.host_key for each in found if each.address == address), None)


def _data_home() -> Path:
    """Where `muniment serve` keeps its data by default."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "muniment"


def _from_file(file: Path, token: str | None) -> Endpoint:
    try:
        return Endpoint(*in_development_file(file), token)
    except ValueError as error:
        raise Failure(str(error), "write it again: muniment serve --dev") from None


@contextmanager
def report_server_errors() -> Iterator[None]:
    """Turn an error of the server, or a value that cannot be sent, into a Failure."""
    try:
        with report_file_errors():
            yield
    except muniment.MunimentError as error:
        raise Failure(message(error), hint_for(error)) from None
    except UnicodeError:
        raise Failure("the text is not in UTF-8", "convert it first: iconv -t UTF-8") from None
    except NotLocal as error:
        raise Failure(str(error), "give --tls, or --tls-ca FILE (MUNIMENT_TLS_CA)") from None
    except NotAnAddress as error:
        raise Failure(str(error), "correct MUNIMENT_ADDRESS, or --address") from None
    except ValueError as error:
        raise Failure(str(error), "see --help") from None


@contextmanager
def with_hint(hint: str, *kinds: type[muniment.MunimentError]) -> Iterator[None]:
    """Give errors of these kinds another hint than elsewhere."""
    try:
        yield
    except kinds as error:
        raise Failure(shown(error), hint) from None


@contextmanager
def with_hints_for_ended_session() -> Iterator[None]:
    """Say what to do if the session of a token has ended."""
    with (
        with_hint(SESSION_ENDED, muniment.Unauthenticated),
        with_hint(SESSION_EXPIRED, muniment.CredentialExpired),
    ):
        yield


def broken_rules(error: muniment.InvalidArgument) -> str:
    """`content is too long; tags[0] must not be empty`."""
    return "; ".join(f"{each.field} {each.description}" for each in error.violations)
