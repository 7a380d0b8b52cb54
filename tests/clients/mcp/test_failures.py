"""Every failure says what it is and what to do next, and nothing else."""

from __future__ import annotations

import grpc
import pytest
from mcp.server.mcpserver.exceptions import ToolError

import muniment
from muniment import Details, MunimentError
from muniment._status import BY_CODE, BY_REASON
from muniment.mcp.failures import telling


def text_of(error: MunimentError) -> str:
    """The text that a model gets for *error*."""

    def tool() -> None:
        raise error

    with pytest.raises(ToolError) as raised:
        telling(tool)()
    assert raised.value.__cause__ is None
    return str(raised.value)


@pytest.mark.parametrize("reason", BY_REASON)
def test_every_reason_is_named_with_what_to_do(reason):
    said = text_of(BY_REASON[reason](grpc.StatusCode.UNKNOWN, reason, "it cannot be done"))

    assert said.startswith(f"{reason}: it cannot be done. ")
    assert len(said) > len(f"{reason}: it cannot be done. ") + 10


@pytest.mark.parametrize("code", BY_CODE)
def test_so_is_every_status_that_comes_from_elsewhere(code):
    assert text_of(BY_CODE[code](code, "", "no")).startswith(f"{code.name}: no. ")


def test_an_incident_is_passed_on():
    details = Details(incident="7f3a")

    said = text_of(muniment.InternalError(grpc.StatusCode.INTERNAL, "INTERNAL", "internal error", details))

    assert "(incident 7f3a)" in said


def test_what_succeeds_is_left_alone():
    assert telling(lambda x: x + 1)(1) == 2
