"""Waiting for a request that may never come.

The synchronous server waits for the message of a call on a thread of its pool, for as long as the caller likes: a few
callers who send headers and nothing more would stop everybody. So a call is taken as a stream, its message is asked
for behind the walls that know the caller, and a caller who takes too long is cut off.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import grpc

from muniment_server.domain.errors import DeadlineExceeded

_SECONDS = 3.0
"""How long to wait for the message of a call."""
_SECONDS_IN_STREAM = 10.0
"""How long to wait for the next message of a stream."""
_LOOK_EVERY = 0.5


class Patience:
    """Cuts off callers whose message does not come."""

    def __init__(self) -> None:
        self._waiting: dict[grpc.ServicerContext, float] = {}
        self._ended = threading.Event()

    def receive(
        self, requests: Iterator[bytes], context: grpc.ServicerContext, *, in_stream: bool = False
    ) -> bytes | None:
        """The next message of a call; None at its end. Raises DeadlineExceeded when the call is cut off.

        grpc may tell the end of a call that its caller cancelled like any other: what came before it counts.
        """
        self._waiting[context] = time.monotonic() + (_SECONDS_IN_STREAM if in_stream else _SECONDS)
        try:
            return next(requests, None)
        except grpc.RpcError:
            raise DeadlineExceeded from None
        finally:
            del self._waiting[context]

    def start(self) -> None:
        """Begin to look."""
        threading.Thread(target=self._look, name="patience", daemon=True).start()

    def end(self) -> None:
        """Look no more."""
        self._ended.set()

    def _look(self) -> None:
        while not self._ended.wait(_LOOK_EVERY):
            now = time.monotonic()
            for context, latest in list(self._waiting.items()):
                if latest < now:
                    context.cancel()
