"""The lattice of four levels."""

from __future__ import annotations

import pytest

from muniment.v1 import classification_pb2
from muniment_server.domain.classification import Classification

FLOWS = {
    (1, 1): True, (1, 2): True, (1, 3): True, (1, 4): True,
    (2, 1): False, (2, 2): True, (2, 3): True, (2, 4): True,
    (3, 1): False, (3, 2): False, (3, 3): True, (3, 4): True,
    (4, 1): False, (4, 2): False, (4, 3): False, (4, 4): True,
}  # fmt: skip


@pytest.mark.parametrize(("source", "target"), FLOWS)
def test_information_flows_to_its_own_level_and_up(source, target):
    assert FLOWS[source, target] == Classification(source).can_flow_to(Classification(target))


def test_there_are_exactly_four_levels_with_the_numbers_of_the_contract():
    contract = {
        name.removeprefix("CLASSIFICATION_"): number
        for name, number in classification_pb2.Classification.items()
        if number
    }

    assert contract == {level.name: level.value for level in Classification}


@pytest.mark.parametrize("number", [-1, 0, 5, 2**31 - 1])
def test_there_is_no_unknown_level(number):
    """What is not a level cannot be compared: it cannot be made."""
    with pytest.raises(ValueError, match="is not a valid Classification"):
        Classification(number)


def test_a_level_is_served_by_the_role_named_after_it():
    assert [level.role for level in Classification] == [
        "muniment_public",
        "muniment_internal",
        "muniment_confidential",
        "muniment_restricted",
    ]
