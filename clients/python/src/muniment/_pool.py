"""A channel that spreads calls over several connections, because each connection ends at one worker of the server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import grpc

from muniment._mismatch import Server


class ChannelPool(grpc.Channel):
    """Several channels to one server. A call takes the one with the fewest calls under way, the first of several.

    So a program that makes one call at a time has one connection. Only methods that send one response can be called.
    """

    def __init__(self, channels: Sequence[grpc.Channel], server: Server) -> None:
        self.server = server
        self._channels = channels
        self._under_way = [0] * len(channels)
        self._is_closed = False
        self._lock = threading.Lock()

    def take(self) -> int:
        """Choose a channel for a call, and count it until `give_back`. Raises ValueError if the pool is closed."""
        with self._lock:
            self._require_open()
            index = self._under_way.index(min(self._under_way))
            self._under_way[index] += 1
        return index

    def give_back(self, index: int) -> None:
        """A call over the channel has ended."""
        with self._lock:
            self._under_way[index] -= 1

    def make(self, factory: Callable[[], Any]) -> Any:
        """What *factory* makes of a channel. Raises ValueError if the pool is closed.

        gRPC kills the process if a method is first needed on a closed channel, so no close may come in between.
        """
        with self._lock:
            self._require_open()
            return factory()

    def _require_open(self) -> None:
        if self._is_closed:
            raise ValueError("this client is closed: make calls within its `with` block, or before `close()`")

    def unary_unary(self, *args: Any, **kwargs: Any) -> Any:
        return _Method(self, [partial(channel.unary_unary, *args, **kwargs) for channel in self._channels])

    def stream_unary(self, *args: Any, **kwargs: Any) -> Any:
        return _Method(self, [partial(channel.stream_unary, *args, **kwargs) for channel in self._channels])

    def unary_stream(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def stream_stream(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def subscribe(self, callback: Callable[..., Any], try_to_connect: bool = False) -> None:
        raise NotImplementedError

    def unsubscribe(self, callback: Callable[..., Any]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Close all channels. Calls that begin afterwards raise ValueError."""
        with self._lock:
            self._is_closed = True
        for channel in self._channels:
            channel.close()

    def __enter__(self) -> ChannelPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Method:
    """One method. What calls it over a channel is made when it is first needed."""

    def __init__(self, pool: ChannelPool, factories: Sequence[Callable[[], Any]]) -> None:
        self._pool = pool
        self._factories = factories
        self._made: dict[int, Any] = {}

    def __call__(self, request: Any, **options: Any) -> Any:
        index = self._pool.take()
        try:
            return self._over(index)(request, **options)
        finally:
            self._pool.give_back(index)

    def future(self, requests: Any, **options: Any) -> Any:
        index = self._pool.take()
        try:
            call = self._over(index).future(requests, **options)
        except BaseException:
            self._pool.give_back(index)
            raise
        call.add_done_callback(lambda _: self._pool.give_back(index))
        return call

    def _over(self, index: int) -> Any:
        if index not in self._made:
            self._made[index] = self._pool.make(self._factories[index])
        return self._made[index]
