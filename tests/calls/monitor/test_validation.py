"""How a request that breaks the rules of the contract is refused."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.v1.agent_pb2 import AgentLimits
from muniment.v1.agent_service_pb2 import UpdateAgentRequest
from muniment.v1.memory_service_pb2 import SaveMemoryRequest
from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.monitor.validation import Validator, load_pool


def violations_of(request: Any) -> tuple[FieldViolation, ...]:
    name = request.DESCRIPTOR.full_name
    with pytest.raises(InvalidArgument) as caught:
        Validator(load_pool(), [name]).parse(name, request.SerializeToString())
    return caught.value.violations


@pytest.mark.parametrize("field", ["calls_per_second", "max_items", "max_bytes", "max_revisions"])
def test_a_limit_that_is_out_of_range_is_said_to_be(field):
    request = UpdateAgentRequest(agent_id="alice", limits=AgentLimits(**dict[str, Any]({field: -1})))

    assert violations_of(request) == (FieldViolation(f"limits.{field}", "is out of range"),)


def test_too_many_entries_are_refused_before_any_rule_is_checked():
    request = SaveMemoryRequest(key="", content="x", tags=["a"] * 257)

    assert violations_of(request) == (FieldViolation("tags", "has too many entries"),)
