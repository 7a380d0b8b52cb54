"""Serves an ASGI application on an address, in one process."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

_MAX_REQUESTS = 512
"""The most requests at a time. The connections of others wait to be accepted."""
_HEADER_SECONDS = 10
_GRACE_SECONDS = 20
_HEADER_BYTES = 16 * 1024


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
    with socket.create_server((listener.host, listener.port)):  # otherwise the library fails with 80 lines
        pass
    asyncio.run(_serve(listener, make, on_ready))
    _end_process()


async def _serve(listener: Listener, make: Callable[[], Any], on_ready: Callable[[], None]) -> None:
    server = Server(
        make(),
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
    server.on_startup(partial(_handle_signals, server))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_report(listener, on_ready))
        await server.serve()


async def _report(listener: Listener, on_ready: Callable[[], None]) -> None:
    """Call *on_ready* once connections are accepted. The library tells only that it is about to listen."""
    while True:
        try:
            _, writer = await asyncio.open_connection(listener.host, listener.port)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return on_ready()


def _handle_signals(server: Server) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _stop, server.stop)


def _stop(stop: Callable[[], None]) -> None:
    stop()
    asyncio.get_running_loop().call_later(_GRACE_SECONDS, _end_process)


def _end_process() -> None:
    """End at once. The library's threads panic, and abort the process, if one with a connection outlives Python."""
    os._exit(0)
