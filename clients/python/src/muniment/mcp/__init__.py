"""Muniment for models: an MCP server, on standard input and output for one session, or over HTTP.

Started as `muniment-mcp`, or as `muniment mcp` with the extra `cli`. It needs the extra `muniment[mcp]`, and reads from
its environment:

- MUNIMENT_ADDRESS: `host:port` or `unix:/path`.
- MUNIMENT_TOKEN: the session's token. Over HTTP each request carries its own token instead.
- MUNIMENT_HOST_KEY, with `--agent` instead of a token: the key that opens the conversation, and keeps it open.
- MUNIMENT_TLS_CA: the authority to trust. Without it, gRPC's default authorities, and no TLS to this machine.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

from muniment._channel import TLS, is_local
from muniment._connect import connect
from muniment._conversation import Conversation
from muniment._installing import commands_for_extra
from muniment._shown import shown
from muniment.errors import (
    CredentialExpired,
    InvalidArgument,
    MunimentError,
    NotFound,
    PermissionDenied,
    PrincipalNotAllowed,
    Unauthenticated,
)
from muniment.mcp import log
from muniment.session import SessionClient
from muniment.values import Classification

ONLY_WITH_HTTP = "--tls-cert, --tls-key and --name are for --http HOST:PORT: give it too, or omit them"
ONLY_WITHOUT_HTTP = "--agent, --taint and --conversation are not for --http: each request carries a session's token"
ONLY_WITH_AGENT = "--taint and --conversation are for --agent NAME: give it too, or omit them"

_SECONDS_AT_START = 5.0


@dataclass(frozen=True, slots=True)
class WantedConversation:
    """The conversation to open with a host key. Without *taint*, at its own; without *conversation*, a new one."""

    agent: str
    taint: Classification | None = None
    conversation: str | None = None

    @classmethod
    def of(
        cls, agent: str | None, taint: Classification | None, conversation: str | None, *, http: bool
    ) -> WantedConversation | None:
        """What options ask for. None: the session of a token. ValueError: they do not fit together."""
        if http and (agent or taint or conversation):
            raise ValueError(ONLY_WITHOUT_HTTP)
        if not agent and (taint or conversation):
            raise ValueError(ONLY_WITH_AGENT)
        return cls(agent, taint, conversation) if agent else None


def main() -> None:
    """`muniment-mcp`."""
    parser = argparse.ArgumentParser(
        prog="muniment-mcp",
        description="An MCP server: the memory of one session, for a model, on standard input and output; or, with "
        "--http, of the session whose token a request carries as bearer.",
        epilog="MUNIMENT_ADDRESS names the server, MUNIMENT_TOKEN the session (not with --http), MUNIMENT_HOST_KEY the "
        "key for --agent, and MUNIMENT_TLS_CA the authority to trust over TLS.",
    )
    parser.add_argument("--agent", metavar="NAME", help="open a conversation of this agent, and keep it open")
    parser.add_argument("--taint", metavar="LEVEL", type=_level, help="its level, if not that of the conversation")
    parser.add_argument("--conversation", metavar="ID", help="the one to go on with; otherwise a new one")
    parser.add_argument("--http", metavar="HOST:PORT", help="serve over HTTP here: on loopback, or with TLS")
    parser.add_argument("--tls-cert", metavar="FILE", help="with --http: the certificate chain to serve with, in PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="with --http: its private key, in PEM")
    parser.add_argument(
        "--name",
        metavar="NAME",
        action="append",
        default=[],
        help="with --http: another name by which clients reach it; may be repeated",
    )
    given = parser.parse_args()
    try:
        wanted = WantedConversation.of(given.agent, given.taint, given.conversation, http=given.http is not None)
    except ValueError as error:
        parser.error(str(error))
    if given.http is None:
        if given.tls_cert or given.tls_key or given.name:
            parser.error(ONLY_WITH_HTTP)
        run(wanted)
    else:
        run_http(given.http, certificate=given.tls_cert, key=given.tls_key, names=given.name)


def _level(text: str) -> Classification:
    try:
        return Classification[text.upper()]
    except KeyError:
        raise argparse.ArgumentTypeError("a level is public, internal, confidential or restricted") from None


def run(wanted: WantedConversation | None = None) -> None:
    """Serve a session until standard input ends: that of the environment's token, or of the conversation *wanted*.

    SystemExit: it cannot be served.
    """
    server = _load("muniment.mcp.server")
    log.configure()
    with _of_token() if wanted is None else _of_host_key(wanted) as session:
        server.build(lambda: session).run("stdio")


@contextmanager
def _of_token() -> Iterator[SessionClient]:
    """The session of MUNIMENT_TOKEN. SystemExit: it cannot be served."""
    try:
        session = session_of(os.environ)
    except (ValueError, OSError) as error:
        sys.exit(f"{error}\nMUNIMENT_ADDRESS, MUNIMENT_TOKEN and MUNIMENT_TLS_CA say which session is served, and how")
    with session:
        _require_open(session)
        yield session


@contextmanager
def _of_host_key(wanted: WantedConversation) -> Iterator[Conversation]:
    """A conversation that MUNIMENT_HOST_KEY opens. SystemExit: it cannot be opened."""
    try:
        key = os.environ.get("MUNIMENT_HOST_KEY", "").strip()
        if not key:
            raise ValueError("--agent needs a host key: see `muniment host-key create`")
        address, tls = _server_of(os.environ)
        host = connect(address, host_key=key, tls=tls)
    except (ValueError, OSError) as error:
        sys.exit(f"{error}\nMUNIMENT_ADDRESS, MUNIMENT_HOST_KEY and MUNIMENT_TLS_CA say who opens it, and where")
    with host:
        try:
            conversation = host.conversation(wanted.agent, wanted.conversation, wanted.taint)
        except (Unauthenticated, PrincipalNotAllowed) as error:
            sys.exit(f"MUNIMENT_HOST_KEY is not a host key that opens sessions: {shown(error)}")
        except MunimentError as error:
            sys.exit(f"no conversation can be opened: {shown(error)}")
        with conversation:
            _warn_if_key_reaches_more(conversation)
            yield conversation


def _warn_if_key_reaches_more(conversation: Conversation) -> None:
    """Say on stderr what else the key can open, if it is more than this conversation needs."""
    ceiling, taint = conversation.session.ceiling, conversation.session.taint
    if ceiling is not None and ceiling > taint:
        sys.stderr.write(
            f"the conversation is at {taint.name}, but MUNIMENT_HOST_KEY reaches {ceiling.name}: whoever reads this"
            " configuration can open sessions up to there. Use a key with a lower ceiling.\n"
        )


def run_http(
    address: str, *, certificate: str | None = None, key: str | None = None, names: Sequence[str] = ()
) -> None:
    """Serve MCP over HTTP at *address*, until SIGTERM or SIGINT. SystemExit: it cannot be served."""
    http, callers = _load("muniment.mcp.http"), _load("muniment.mcp.callers")
    log.configure()
    try:
        listen = http.Listen.at(address, certificate=certificate, key=key, names=tuple(names))
    except ValueError as error:  # names the option
        sys.exit(str(error))
    try:
        memory = callers.Callers(*_server_of(os.environ))
    except (ValueError, OSError) as error:
        sys.exit(f"{error}\nMUNIMENT_ADDRESS and MUNIMENT_TLS_CA say which server is called, and how")
    try:
        http.serve(listen, memory)
    except http.CannotListen as error:
        sys.exit(str(error))


def session_of(environment: Mapping[str, str]) -> SessionClient:
    """A client of the session that *environment* names. ValueError: it names none. OSError: the CA cannot be read."""
    token = environment.get("MUNIMENT_TOKEN", "").strip()
    if not token:
        raise ValueError("a session's token is needed: see `muniment session open`")
    address, tls = _server_of(environment)
    return connect(address, token=token, tls=tls)


def _server_of(environment: Mapping[str, str]) -> tuple[str, bool | TLS]:
    address, ca = (environment.get(name, "").strip() for name in ("MUNIMENT_ADDRESS", "MUNIMENT_TLS_CA"))
    if not address:
        raise ValueError("MUNIMENT_ADDRESS is not set: set it to the address of Muniment, such as 127.0.0.1:50051")
    return address, TLS(ca) if ca else not is_local(address)


def _load(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] == "muniment":
            raise
        sys.exit(f"The MCP SDK is missing: it comes with the extra `mcp`. Install it\n{commands_for_extra('mcp')}")


def _require_open(session: SessionClient) -> None:
    """SystemExit: the token is not that of an open session. If the server cannot be reached, it may be later."""
    try:
        session.get_session(timeout=_SECONDS_AT_START)
    except CredentialExpired:
        sys.exit("The session of MUNIMENT_TOKEN has expired: open it again with `muniment session open`")
    except Unauthenticated:
        sys.exit("MUNIMENT_TOKEN is not the token of an open session: open one with `muniment session open`")
    except (PermissionDenied, InvalidArgument, NotFound):
        sys.exit("MUNIMENT_TOKEN is a host key: a model acts as one session, so open one with `muniment session open`")
    except MunimentError as error:
        sys.stderr.write(f"the memory cannot be reached yet: {shown(error)}\n")
