"""Serves an ASGI application on an address, in one process."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

_MAX_REQUESTS = 512
"""The most requests at a time. The connections of others wait to be accepted."""
_HEADER_SECONDS = 10
_GRACE_SECONDS = 20
_HEADER_BYTES = 16 * 1024
_RENEWAL_SECONDS = 10.0
"""How often the certificate and its key are read."""
_START_SECONDS = 1.0
"""How long a server has to begin, before the one before it is stopped."""
_UNREAD_SECONDS = 15
"""How long a response may wait for a caller that reads none of it. The library itself would wait forever."""
_BACKLOG = 1024


@dataclass(frozen=True, slots=True)
class Listener:
    """Where to listen, and the certificate to show, if any."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None


def serve(listener: Listener, make: Callable[[], Any], *, on_ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, finish the requests that have begun, for 20 seconds, and end the process.

    Calls *make*, in the event loop, for the application, and *on_ready* once it listens. Raises OSError if the address
    is taken, or is not one of this machine.
    """
    # Checked without SO_REUSEPORT. With it, which a renewed certificate needs, two gateways would share a port unseen.
    socket.create_server((listener.host, listener.port)).close()
    asyncio.run(_serve(listener, make, on_ready))
    _end_process()


class _Server(Server):
    """Listens on the socket that it is given: its connections inherit the options."""

    listening: socket.socket

    def _init_shared_socket(self) -> None:
        self._ssp: Any = None
        self._shd: Any = SocketHolder(self.listening.detach(), False, _BACKLOG)  # type: ignore[call-arg]


async def _serve(listener: Listener, make: Callable[[], Any], on_ready: Callable[[], None]) -> None:
    """Serve until a signal. A renewed certificate gets another server, and the one before finishes its requests."""
    stops: list[Callable[[], None]] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _stop, stops)
    async with asyncio.TaskGroup() as tasks:

        def start(*on_startup: Callable[[], None]) -> asyncio.Task[None]:
            server = _server(listener, make())
            for act in on_startup:
                server.on_startup(act)
            stops.append(server.stop)
            return tasks.create_task(server.serve())

        files, serving = _read(listener), start(on_ready)
        while not (await asyncio.wait({serving}, timeout=_RENEWAL_SECONDS))[0]:
            found = _read(listener)
            if found != files and _are_valid(listener):
                files, serving = found, start()  # they share the port
                await asyncio.sleep(_START_SECONDS)
                stops.pop(0)()


def _server(listener: Listener, application: Any) -> _Server:
    server = _Server(
        application,
        listener.host,
        listener.port,
        interface=Interfaces.ASGI,
        http=HTTPModes.http1,  # in its other modes, a silent connection is never closed, and 512 exclude all callers
        websockets=False,
        backpressure=_MAX_REQUESTS,
        http1_settings=HTTP1Settings(header_read_timeout=_HEADER_SECONDS * 1000, max_buffer_size=_HEADER_BYTES),
        log_enabled=False,
        ssl_cert=listener.certificate,
        ssl_key=listener.key,
    )
    server.listening = socket.create_server((listener.host, listener.port), backlog=_BACKLOG, reuse_port=True)
    server.listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_SECONDS * 1000)
    return server


def _read(listener: Listener) -> list[bytes] | None:
    """The certificate and the key. None while they are replaced."""
    try:
        return [file.read_bytes() for file in (listener.certificate, listener.key) if file]
    except OSError:
        return None


def _are_valid(listener: Listener) -> bool:
    """Whether certificate and key belong together: they may be replaced one after the other."""
    certificate, key = listener.certificate, listener.key
    try:
        if certificate:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError):
        return False
    return True


def _stop(stops: Sequence[Callable[[], None]]) -> None:
    for stop in stops:
        stop()
    asyncio.get_running_loop().call_later(_GRACE_SECONDS, _end_process)


def _end_process() -> None:
    """End at once. The library's threads panic, and abort the process, if one with a connection outlives Python."""
    os._exit(0)
