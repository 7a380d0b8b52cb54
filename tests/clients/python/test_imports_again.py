"""The adapters' imports are retried as other calls are."""

from __future__ import annotations

import grpc
import pytest

from muniment._imports import import_all
from muniment.errors import Details, InvalidArgument, Overloaded
from muniment.values import ImportCounts, NewPassage

PASSAGES = [NewPassage("one", passage_id="5d0c4a0e-4f52-4d7b-9a53-6c2f6f6f2d10")]
OVERLOADED = Overloaded(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", "", Details(retry_after=0.001))


class Refusing:
    """A session that fails so many times, and then stores."""

    def __init__(self, *failures: Exception, retries: bool = True) -> None:
        self.retries = retries
        self.failures = list(failures)
        self.imported: list[object] = []

    def import_passages(self, passages: object, *, timeout: float) -> ImportCounts:
        assert 0 < timeout <= 60
        self.imported.append(passages)
        if self.failures:
            raise self.failures.pop(0)
        return ImportCounts(1, 0)


def test_after_overload_all_is_sent_again() -> None:
    session = Refusing(OVERLOADED, OVERLOADED)

    assert import_all(session, PASSAGES) == ImportCounts(1, 0)  # type: ignore[arg-type]
    assert session.imported == [PASSAGES] * 3


def test_what_cannot_pass_is_not_sent_again() -> None:
    session = Refusing(InvalidArgument(grpc.StatusCode.INVALID_ARGUMENT))

    with pytest.raises(InvalidArgument):
        import_all(session, PASSAGES)  # type: ignore[arg-type]
    assert len(session.imported) == 1


def test_a_client_without_retries_sends_once() -> None:
    session = Refusing(OVERLOADED, retries=False)

    with pytest.raises(Overloaded):
        import_all(session, PASSAGES)  # type: ignore[arg-type]
    assert len(session.imported) == 1
