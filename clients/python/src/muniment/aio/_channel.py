"""Opens channels for an event loop, and spreads calls over several connections.

Each connection ends at one worker of the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
from grpc import aio

from muniment._channel import CONNECTIONS, TLS, security
from muniment._mismatch import Server

__all__ = ["TLS", "ChannelPool", "open_channel"]


def open_channel(address: str, tls: bool | TLS) -> aio.Channel:
    """Open a channel to *address*, of up to CONNECTIONS connections. Each is made when it is first used."""
    credentials, options = security(address, tls)
    if credentials is None:
        return ChannelPool(lambda: aio.insecure_channel(address, options), Server(address, tls=False))
    return ChannelPool(lambda: aio.secure_channel(address, credentials, options), Server(address, tls=True))


class ChannelPool(aio.Channel):
    """Up to CONNECTIONS channels to one server, which *connect* makes when they are first used, in the event loop.

    A call takes the one with the fewest calls under way, the first of several. So a program that makes one call at a
    time has one connection. Only methods that send one response can be called.
    """

    def __init__(self, connect: Callable[[], aio.Channel], server: Server) -> None:
        self.server = server
        self._connect = connect
        self._channels: list[aio.Channel] = []
        self._under_way = [0] * CONNECTIONS
        self._is_closed = False

    def take(self) -> tuple[int, aio.Channel]:
        """Choose a channel for a call, and count it until `give_back`. Raises ValueError if the pool is closed."""
        if self._is_closed:
            raise ValueError("this client is closed: make calls within its `async with` block, or before `close()`")
        index = self._under_way.index(min(self._under_way))
        if index == len(self._channels):
            self._channels.append(self._connect())
        self._under_way[index] += 1
        return index, self._channels[index]

    def give_back(self, index: int) -> None:
        """A call over the channel has ended."""
        self._under_way[index] -= 1

    def unary_unary(self, *args: Any, **kwargs: Any) -> Any:
        return _Method(self, lambda channel: channel.unary_unary(*args, **kwargs))

    def stream_unary(self, *args: Any, **kwargs: Any) -> Any:
        return _Method(self, lambda channel: channel.stream_unary(*args, **kwargs))

    def unary_stream(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def stream_stream(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def close(self, grace: float | None = None) -> None:
        """Close all channels. Calls that begin afterwards raise ValueError."""
        self._is_closed = True
        await asyncio.gather(*(channel.close(grace) for channel in self._channels))

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        raise NotImplementedError

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        raise NotImplementedError

    async def channel_ready(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> ChannelPool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Method:
    """One method. What calls it over a channel is made when it is first needed."""

    def __init__(self, pool: ChannelPool, make: Callable[[aio.Channel], Any]) -> None:
        self._pool = pool
        self._make = make
        self._made: dict[int, Any] = {}

    def __call__(self, *request: Any, **options: Any) -> Any:
        index, channel = self._pool.take()
        try:
            if index not in self._made:
                self._made[index] = self._make(channel)
            call = self._made[index](*request, **options)
        except BaseException:
            self._pool.give_back(index)
            raise
        call.add_done_callback(lambda _: self._pool.give_back(index))
        return call
