"""Makes calls: adds the credential and the deadline, retries, and raises errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

import grpc
from google.protobuf.message import Message

from muniment._handover import Handover
from muniment._pool import ChannelPool
from muniment._status import error_of
from muniment.errors import MunimentError, Unavailable
from muniment.retries import may_help, may_repeat, repeat

MAX_TIMEOUT = 86400.0

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


class HasNextPage(Protocol):
    """One page of anything."""

    @property
    def next_page_token(self) -> str:
        """The token of the next page. Empty if this is the last page."""


Page = TypeVar("Page", bound=HasNextPage)


class Calls:
    """Makes calls over one channel with one credential."""

    def __init__(
        self,
        channel: grpc.Channel,
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

    def __call__(
        self,
        method: grpc.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        timeout: float | None = None,
    ) -> Response:
        """The response of *method*, or a MunimentError. *timeout* spans all attempts; None: the default."""

        def attempt(seconds_left: float) -> Response:
            try:
                return method(request, timeout=seconds_left, metadata=self._metadata)
            except grpc.RpcError as failure:
                raise self._explained(error_of(failure)) from failure

        def again(error: MunimentError) -> bool:
            return self._may_help(request, error)

        return repeat(attempt, again, self._seconds(timeout), self.connect_timeout)

    def stream(
        self,
        method: grpc.StreamUnaryMultiCallable[Request, Response],
        requests: Iterable[Request],
        timeout: float | None = None,
    ) -> Response:
        """The response of *method*, or a MunimentError, or whatever *requests* raises. Made once.

        gRPC would read *requests* in a thread of its own, log what it raises and report a status instead.
        """
        sent: Handover[Request] = Handover()
        call = method.future(sent, timeout=self._seconds(timeout), metadata=self._metadata)
        call.add_done_callback(lambda _: sent.end())
        try:
            for request in requests:
                if not sent.give(request):
                    break
            sent.end()
            return _result(call)
        except Unavailable as error:
            raise self._explained(error) from error.__cause__
        finally:
            # Cancel first: a stream that ends without being canceled is taken for a complete one.
            call.cancel()
            sent.end()

    def _may_help(self, request: Message, error: MunimentError) -> bool:
        """Whether to try *request* again after *error*."""
        return self.retries and may_help(error, safe=may_repeat(request))

    @property
    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.credential}"),)

    def _explained(self, error: MunimentError) -> MunimentError:
        return self.channel.server.explained(error) if isinstance(self.channel, ChannelPool) else error

    def _seconds(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else checked_timeout(timeout)

    def close(self) -> None:
        """Close the channel if this object owns it."""
        if self._owns_channel:
            self.channel.close()


def _result(call: grpc.Future[Response]) -> Response:
    try:
        return call.result()
    except grpc.RpcError as failure:
        raise error_of(failure) from failure


def pages(fetch: Callable[[str], Page]) -> Iterator[Page]:
    """Iterate over all pages, each fetched when it is needed. *fetch* takes a page token."""
    page = fetch("")
    yield page
    while page.next_page_token:
        page = fetch(page.next_page_token)
        yield page


def checked_credential(credential: str) -> str:
    """*credential*, if a header can carry it. The error does not show it."""
    if not isinstance(credential, str):
        raise TypeError(f"a token must be a string, not {type(credential).__name__}")
    if not (credential.isascii() and credential.isprintable()) or " " in credential or not credential:
        raise ValueError("a credential must consist of visible ASCII characters: does it contain a line end?")
    return credential


def checked_timeout(seconds: float) -> float:
    """*seconds*, if gRPC can represent it. It takes a negative, infinite or very long timeout for an expired one."""
    if not 0 < seconds <= MAX_TIMEOUT:
        raise ValueError(f"a timeout must be more than 0 and at most {MAX_TIMEOUT:.0f} seconds")
    return seconds
