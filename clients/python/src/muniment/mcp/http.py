"""MCP over streamable HTTP. Each request carries the session token of its caller as bearer.

The server keeps nothing between requests, neither MCP sessions nor streams. So no caller can take over what another one
began, or leave anything open.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
from dataclasses import dataclass
from typing import Any

import uvicorn
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from muniment._channel import is_local
from muniment.mcp.admission import Admission
from muniment.mcp.callers import Callers
from muniment.mcp.server import build
from muniment.mcp.stdio import MAX_MESSAGE

PATH = "/mcp"
IDLE_SECONDS = 10
"""How long a connection may be open without a request that has arrived."""
READ_SECONDS = 60
"""How long a caller may take to read a response that does not fit into the send buffers."""


class CannotListen(Exception):
    """The message names the option at fault."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where the server listens. Without TLS, only on loopback.

    *names* are those under which clients reach it, beside *host*; other names in a request are refused.
    """

    host: str
    port: int
    certificate: str | None = None
    key: str | None = None
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("--tls-cert and --tls-key require each other")
        if self.certificate is None and not is_local(f"{self._shown}:{self.port}"):
            raise ValueError(
                "--http: without TLS, MCP is served on loopback only: otherwise tokens would cross a network in the"
                " clear. Give --tls-cert and --tls-key, or listen on 127.0.0.1"
            )

    @classmethod
    def at(cls, address: str, **options: Any) -> Listen:
        """From `HOST:PORT`. ValueError: this is not an address, or not one to listen on without TLS."""
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise ValueError(f"--http: {address} is not an address: give HOST:PORT, such as 127.0.0.1:8080")
        return cls(host.strip("[]"), int(port), **options)

    @property
    def _shown(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    def url(self, port: int) -> str:
        """The address for clients."""
        return f"{'https' if self.certificate else 'http'}://{self._shown}:{port}{PATH}"

    def hosts(self, port: int) -> list[str]:
        """What a request's Host may be."""
        here = ("localhost", "127.0.0.1", "[::1]") if is_local(f"{self._shown}:{port}") else ()
        names = {self._shown, *here, *self.names}
        return sorted({*names, *(f"{name}:{port}" for name in names)})


class Connection(H11Protocol):
    """A connection that is closed if its next request has not arrived in time, or its response is not read in time."""

    scope: Any  # None until a request has arrived
    _idle_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.scope = None
        super().on_response_complete()
        self._wait()

    def pause_writing(self) -> None:
        """Limit the time that the caller takes to read: until then, the response stays in memory."""
        super().pause_writing()
        self._read_timer = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Lift the limit: the caller has read."""
        self._stop_read_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Lift the limit: there is no caller any more."""
        self._stop_read_timer()
        super().connection_lost(exc)

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _wait(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._idle_timer = self.loop.call_later(IDLE_SECONDS, self._close_if_waiting)

    def _close_if_waiting(self) -> None:
        if self.scope is None:
            self.transport.close()


def serve(listen: Listen, callers: Callers) -> None:
    """Serve until SIGTERM or SIGINT. Prints the address to standard error once it listens. Raises CannotListen."""
    _check_certificate(listen)
    try:
        listener = listening(listen)
    except OSError as error:
        why = (error.strerror or "").partition(" (")[0]  # Python appends the address
        raise CannotListen(
            f"--http: cannot listen on {listen.host}, port {listen.port} ({why}): give another address"
        ) from None
    with listener:
        port = listener.getsockname()[1]
        sys.stderr.write(f"serving MCP at {listen.url(port)}\n")
        server(listen, port, callers).run(sockets=[listener])


def _check_certificate(listen: Listen) -> None:
    """Raise CannotListen for a certificate and key with which TLS cannot be served."""
    if listen.certificate is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(listen.certificate, listen.key)
    except OSError as error:
        why = getattr(error, "reason", None) or error.strerror
        raise CannotListen(
            f"--tls-cert and --tls-key cannot be used ({why}): give the files of a certificate chain and of its"
            " private key, in PEM"
        ) from None


def listening(listen: Listen) -> socket.socket:
    """A socket that listens. OSError: it cannot."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    return socket.create_server((listen.host, listen.port), family=family, backlog=2048)


def server(listen: Listen, port: int, callers: Callers) -> uvicorn.Server:
    """The server behind a socket that listens at *port*."""
    config = uvicorn.Config(
        _application(listen, port, callers),
        http=Connection,
        ws="none",
        ssl_certfile=listen.certificate,
        ssl_keyfile=listen.key,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=IDLE_SECONDS,
    )
    return uvicorn.Server(config)


def _application(listen: Listen, port: int, callers: Callers) -> Starlette:
    # The SDK asks for an issuer, but names it to clients only together with a resource, of which there is none.
    auth = AuthSettings(issuer_url=AnyHttpUrl(listen.url(port)), resource_server_url=None)
    # No page may call: a request with an Origin comes from a browser.
    security = TransportSecuritySettings(allowed_hosts=listen.hosts(port), allowed_origins=[])
    application = build(callers.session, auth=auth, token_verifier=callers).streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MAX_MESSAGE,
        transport_security=security,
    )
    application.add_middleware(Admission, security=security)
    return application
