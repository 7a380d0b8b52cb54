"""Imports that may be repeated: what the adapters use that store a list of passages."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.retries import may_help, repeat
from muniment.session import SessionClient
from muniment.values import ImportCounts, NewPassage

TIMEOUT = 60.0
"""For how many seconds an import is retried."""


def import_all(session: SessionClient, passages: Sequence[NewPassage]) -> ImportCounts:
    """Store *passages*, each of which has an id, and retry as the client retries other calls, such as after OVERLOADED.

    The client itself cannot retry a stream: it does not have what it has sent. What is stored already is not stored
    again.
    """
    return repeat(
        lambda seconds_left: session.import_passages(passages, timeout=seconds_left),
        lambda error: session.retries and may_help(error, safe=True),
        TIMEOUT,
    )
