"""Lists that begin anew."""

from __future__ import annotations

import grpc
import pytest

from muniment import TaintChanged
from muniment._listing import undisturbed


def raised(times: int):
    """A list whose reading meets *times* raises."""
    left = iter(range(times))

    def read_all() -> str:
        for _ in left:
            raise TaintChanged(grpc.StatusCode.ABORTED, "TAINT_CHANGED")
        return "all"

    return read_all


@pytest.mark.parametrize("times", [0, 1, 2, 3])
def test_a_list_outlasts_as_many_raises_as_there_can_be(times):
    assert undisturbed(raised(times)) == "all"


def test_a_list_fails_after_one_raise_more():
    with pytest.raises(TaintChanged):
        undisturbed(raised(4))
