"""Serves the gateway on an address, in one process."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncGenerator, Callable
from functools import partial

import grpc
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from muniment.aio._channel import open_channel
from muniment_http.contract import methods, path_of
from muniment_http.gateway import Gateway, seconds_of
from muniment_http.middleware import Middleware
from muniment_http.options import Options

_MAX_REQUESTS = 512
"""The most requests at a time. The connections of others wait to be accepted."""
_HEADER_SECONDS = 10
_GRACE_SECONDS = 20
_HEADER_BYTES = 16 * 1024


def serve(options: Options, *, on_ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, finish the requests that have begun, for 20 seconds, and end the process.

    Calls *on_ready* once it listens. Raises OSError if the address is taken, or is not one of this machine.
    """
    with socket.create_server((options.host, options.port)):  # otherwise the library fails with 80 lines
        pass
    asyncio.run(_serve(options, on_ready))
    _end_process()


async def _serve(options: Options, on_ready: Callable[[], None]) -> None:
    server = Server(
        Middleware(
            Gateway(_channel(options)),
            {path_of(method): seconds_of(method) for method in methods()},
            {path_of(method) for method in methods() if method.client_streaming},
            options.origins,
        ),
        options.host,
        options.port,
        interface=Interfaces.ASGI,
        http=HTTPModes.http1,  # in its other modes, a silent connection is never closed, and 512 exclude all callers
        websockets=False,
        backpressure=_MAX_REQUESTS,
        http1_settings=HTTP1Settings(header_read_timeout=_HEADER_SECONDS * 1000, max_buffer_size=_HEADER_BYTES),
        log_enabled=False,
        ssl_cert=options.certificate,
        ssl_key=options.key,
    )
    server.on_startup(partial(_handle_signals, server))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_report(options, on_ready))
        await server.serve()


async def _report(options: Options, on_ready: Callable[[], None]) -> None:
    """Call *on_ready* once connections are accepted. The library tells only that it is about to listen."""
    while True:
        try:
            _, writer = await asyncio.open_connection(options.host, options.port)
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


async def _channel(options: Options) -> AsyncGenerator[grpc.aio.Channel]:
    """The channel to the server, for as long as the gateway runs."""
    async with open_channel(options.server, options.tls) as channel:
        yield channel
