"""The time limit for a request that may never arrive.

The synchronous server waits for the message of a call on a thread of its pool, for as long as the caller likes: a few
callers who send headers and nothing more would stop everybody. So every call is taken as a stream, its message is
received behind the interceptors that know the caller, and a caller who takes too long is cut off.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import grpc

from muniment_server.domain.errors import DeadlineExceeded

_SECONDS = 3.0
"""The limit for the message of a call."""
_SECONDS_IN_STREAM = 10.0
"""The limit for the next message of a stream."""
_CHECK_INTERVAL = 0.5


class ReceiveTimeout:
    """Cuts off callers whose message does not arrive."""

    def __init__(self) -> None:
        self._waiting: dict[grpc.ServicerContext, float] = {}
        self._stopped = threading.Event()

    def receive(
        self, requests: Iterator[bytes], context: grpc.ServicerContext, *, in_stream: bool = False
    ) -> bytes | None:
        """The next message of a call, or None at its end. Raises DeadlineExceeded if the call is cut off.

        grpc may report a call that its caller cancelled like any other end: what came before it counts.
        """
        self._waiting[context] = time.monotonic() + (_SECONDS_IN_STREAM if in_stream else _SECONDS)
        try:
            return next(requests, None)
        except grpc.RpcError:
            raise DeadlineExceeded from None
        finally:
            del self._waiting[context]

    def start(self) -> None:
        """Start cutting off callers."""
        threading.Thread(target=self._watch, name="receive-timeout", daemon=True).start()

    def stop(self) -> None:
        """Stop cutting off callers."""
        self._stopped.set()

    def _watch(self) -> None:
        while not self._stopped.wait(_CHECK_INTERVAL):
            now = time.monotonic()
            for context, latest in list(self._waiting.items()):
                if latest < now:
                    context.cancel()
