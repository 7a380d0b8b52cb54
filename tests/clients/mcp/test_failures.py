"""Every failure says what it is and what to do next, and nothing else."""

from __future__ import annotations

import grpc
import pytest
from mcp.server.mcpserver.exceptions import ToolError

import muniment
from muniment import Details, MunimentError
from muniment._status import BY_CODE, BY_REASON
from muniment.mcp.failures import report_errors
from tests.support.each import for_each


def text_of(error: MunimentError) -> str:
    """The text that a model gets for *error*."""

    def tool() -> None:
        raise error

    with pytest.raises(ToolError) as raised:
        report_errors(tool)()
    assert raised.value.__cause__ is None
    return str(raised.value)


@for_each("reason", BY_REASON)
def test_every_reason_is_named_with_what_to_do(reason):
    said = text_of(BY_REASON[reason](grpc.StatusCode.UNKNOWN, reason, "it cannot be done"))

    assert said.startswith(f"{reason}: it cannot be done. ")
    assert len(said) > len(f"{reason}: it cannot be done. ") + 10


@pytest.mark.parametrize("code", BY_CODE)
def test_so_is_every_status_that_comes_from_elsewhere(code):
    assert text_of(BY_CODE[code](code, "", "no")).startswith(f"{code.name}: no. ")


def test_a_fault_names_its_request_once_and_a_refusal_never():
    """So that a model reads the same text for the same refusal."""
    details = Details(incident="7f3a", request_id="7f3a")

    fault = text_of(muniment.InternalError(grpc.StatusCode.INTERNAL, "INTERNAL", "internal error", details))
    refusal = text_of(muniment.MemoryNotFound(grpc.StatusCode.NOT_FOUND, "MEMORY_NOT_FOUND", "none", details))

    assert fault.startswith("INTERNAL: internal error (request 7f3a). ")
    assert fault.count("7f3a") == 1
    assert "7f3a" not in refusal


def test_what_succeeds_is_left_alone():
    assert report_errors(lambda x: x + 1)(1) == 2
