"""The traces of calls, whatever exports them.

`otlp` implements these protocols with OpenTelemetry; only a worker with `--traces` loads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class CallTrace(Protocol):
    """The trace of one call that is sampled."""

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits."""
        ...

    def end(self, code: str, reason: str) -> None:
        """The call has ended with this status code. *reason* is empty if it succeeded."""
        ...


class Tracer(Protocol):
    """Makes the traces of one process."""

    def begin(
        self,
        path: str,
        name: str,
        traceparent: str | None,
        *,
        operation: str,
        seconds: float,
        fields: Mapping[str, object],
    ) -> CallTrace | None:
        """Begin the trace of a call that arrived *seconds* ago, with the *fields* of its line in the log.

        *path* and *name* are those of the method; *path* is empty outside the contract. *traceparent* is what the
        caller sent, which may be malformed. *operation* is the memory operation of the method, or empty. None if the
        call is not sampled.
        """
        ...

    def stop(self) -> None:
        """Export what has ended, within a few seconds."""
        ...
