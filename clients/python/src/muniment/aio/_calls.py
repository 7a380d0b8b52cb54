"""Makes calls in an event loop: adds the credential and the deadline, retries, and raises errors."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import Protocol, TypeVar

import grpc
from google.protobuf.message import Message
from grpc import aio

from muniment._calls import Page, checked_credential, checked_timeout
from muniment._status import error_of
from muniment.aio._channel import ChannelPool
from muniment.errors import MunimentError, Unavailable
from muniment.retries import Attempts, may_help, may_repeat

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)
Value = TypeVar("Value")
Sent = TypeVar("Sent", bound=Message, contravariant=True)
Received = TypeVar("Received", bound=Message, covariant=True)

Metadata = tuple[tuple[str, str], ...]


class Unary(Protocol[Sent, Received]):
    """A method with one request."""

    def __call__(self, request: Sent, *, timeout: float, metadata: Metadata) -> Awaitable[Received]:
        """Begin a call."""


class Calls:
    """Makes calls over one channel with one credential."""

    def __init__(
        self,
        channel: aio.Channel,
        credential: str,
        *,
        timeout: float,
        retries: bool,
        owns_channel: bool = True,
    ) -> None:
        self.channel = channel
        self.credential = checked_credential(credential)
        self._timeout = checked_timeout(timeout)
        self.retries = retries
        self._owns_channel = owns_channel
        self.connect_timeout = math.inf
        """The seconds that a call waits for a connection, if its timeout is longer."""

    def with_credential(self, credential: str) -> Calls:
        """Calls with another credential over the same channel, which they do not own."""
        calls = Calls(self.channel, credential, timeout=self._timeout, retries=self.retries, owns_channel=False)
        calls.connect_timeout = self.connect_timeout
        return calls

    async def __call__(
        self,
        method: Unary[Request, Response],
        request: Request,
        timeout: float | None = None,
    ) -> Response:
        """The response of *method*, or a MunimentError. *timeout* spans all attempts; None: the default.

        If the task is canceled, so is the call.
        """

        def again(error: MunimentError) -> bool:
            return self.retries and may_help(error, safe=may_repeat(request))

        attempts = Attempts(again, self._seconds(timeout), self.connect_timeout)
        while True:
            try:
                return await answer(method(request, timeout=attempts.seconds_left, metadata=self._metadata))
            except MunimentError as failure:
                error = await self._explained(failure)
                if (pause := attempts.pause_after(error)) is None:
                    raise error from failure.__cause__
            await asyncio.sleep(pause)

    async def stream(
        self,
        method: aio.StreamUnaryMultiCallable[Request, Response],
        requests: AsyncIterable[Request],
        timeout: float | None = None,
    ) -> Response:
        """The response of *method*, or a MunimentError, or whatever *requests* raises. Made once."""
        call = method(timeout=self._seconds(timeout), metadata=self._metadata)
        try:
            async for request in requests:
                if not await _sent(call.write(request)):
                    break
            else:
                await _sent(call.done_writing())
            return await answer(call)
        except Unavailable as error:
            raise await self._explained(error) from error.__cause__
        finally:
            call.cancel()

    @property
    def _metadata(self) -> Metadata:
        return (("authorization", f"Bearer {self.credential}"),)

    async def _explained(self, error: MunimentError) -> MunimentError:
        if isinstance(error, Unavailable) and isinstance(self.channel, ChannelPool):
            return await asyncio.to_thread(self.channel.server.explained, error)
        return error

    def _seconds(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else checked_timeout(timeout)

    async def close(self) -> None:
        """Close the channel if this object owns it."""
        if self._owns_channel:
            await self.channel.close()


async def answer(call: Awaitable[Response]) -> Response:
    """The response of a call, or a MunimentError."""
    try:
        return await call
    except grpc.RpcError as failure:
        raise error_of(failure) from failure
    except asyncio.CancelledError:
        if _is_canceled():
            raise
        raise MunimentError(grpc.StatusCode.CANCELLED, message="this client was closed during the call") from None


async def _sent(sending: Awaitable[None]) -> bool:
    """Whether it was sent. False if the call is over; awaiting it gives the reason."""
    try:
        await sending
    except (aio.AioRpcError, aio.InternalError, asyncio.InvalidStateError):
        return False
    except asyncio.CancelledError:
        if _is_canceled():
            raise
        return False
    return True


def _is_canceled() -> bool:
    """Whether a CancelledError is about this task. gRPC raises it, too, when the channel of a call is closed."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def pages(fetch: Callable[[str], Awaitable[Page]]) -> AsyncIterator[Page]:
    """Iterate over all pages, each fetched when it is needed. *fetch* takes a page token."""
    page = await fetch("")
    yield page
    while page.next_page_token:
        page = await fetch(page.next_page_token)
        yield page


async def each_of(values: AsyncIterable[Value] | Iterable[Value]) -> AsyncIterator[Value]:
    """The values of either kind of iterable."""
    if isinstance(values, AsyncIterable):
        async for value in values:
            yield value
    else:
        for value in values:
            yield value


def known(value: Value | None) -> Value:
    """A value that the server has already sent. Raises ValueError."""
    if value is None:
        raise ValueError(
            "a client that was made from a token knows its session only after `await client.get_session()`"
        )
    return value
