"""Serves the gateway on an address, in one process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

import grpc

from muniment.aio._channel import open_channel
from muniment_http import listening
from muniment_http.contract import methods, path_of
from muniment_http.gateway import Gateway, seconds_of
from muniment_http.listening import Listener
from muniment_http.middleware import Middleware
from muniment_http.options import Options


def serve(options: Options, *, on_ready: Callable[[], None]) -> None:
    """Serve as `listening.serve` does."""
    listener = Listener(options.host, options.port, options.certificate, options.key)
    listening.serve(listener, lambda: _application(options), on_ready=on_ready)


def _application(options: Options) -> Middleware:
    return Middleware(
        Gateway(_channel(options)),
        {path_of(method): seconds_of(method) for method in methods()},
        {path_of(method) for method in methods() if method.client_streaming},
        options.origins,
    )


async def _channel(options: Options) -> AsyncGenerator[grpc.aio.Channel]:
    """The channel to the server, for as long as the gateway runs."""
    async with open_channel(options.server, options.tls) as channel:
        yield channel
