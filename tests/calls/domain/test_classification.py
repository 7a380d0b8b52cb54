"""The lattice of labels: four levels, trusted or not."""

from __future__ import annotations

import pytest

from muniment.v1 import classification_pb2
from muniment_server.domain.classification import Classification, Integrity, Label, join, unshadowed
from tests.support.labels import untrusted

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
    assert [untrusted(level).role for level in Classification] == [
        "muniment_public",
        "muniment_internal",
        "muniment_confidential",
        "muniment_restricted",
    ]


TRUSTED, UNTRUSTED = Integrity.TRUSTED, Integrity.UNTRUSTED
LABELS_THAT_FLOW = {
    Label.PUBLIC_TRUSTED: set(Label),
    Label.PUBLIC: {Label.PUBLIC, Label.INTERNAL, Label.CONFIDENTIAL, Label.RESTRICTED},
    Label.INTERNAL_TRUSTED: set(Label) - {Label.PUBLIC_TRUSTED, Label.PUBLIC},
    Label.INTERNAL: {Label.INTERNAL, Label.CONFIDENTIAL, Label.RESTRICTED},
    Label.CONFIDENTIAL_TRUSTED: {
        Label.CONFIDENTIAL_TRUSTED, Label.CONFIDENTIAL, Label.RESTRICTED_TRUSTED, Label.RESTRICTED,
    },
    Label.CONFIDENTIAL: {Label.CONFIDENTIAL, Label.RESTRICTED},
    Label.RESTRICTED_TRUSTED: {Label.RESTRICTED_TRUSTED, Label.RESTRICTED},
    Label.RESTRICTED: {Label.RESTRICTED},
}  # fmt: skip


@pytest.mark.parametrize("source", Label)
def test_information_flows_to_a_label_if_its_level_and_its_integrity_may(source):
    assert {target for target in Label if source.can_flow_to(target)} == LABELS_THAT_FLOW[source]


def test_labels_are_in_no_order_that_could_be_mistaken_for_the_flow():
    with pytest.raises(TypeError, match="not supported"):
        assert Label.PUBLIC < Label.INTERNAL_TRUSTED  # type: ignore[operator]


@pytest.mark.parametrize("one", Label)
@pytest.mark.parametrize("other", Label)
def test_a_join_is_the_least_label_that_both_flow_to(one, other):
    above = LABELS_THAT_FLOW[one] & LABELS_THAT_FLOW[other]
    (least,) = (label for label in above if LABELS_THAT_FLOW[label] == above)

    assert join([one, other]) is least


def test_nothing_has_the_label_that_flows_everywhere():
    assert join([]) is Label.PUBLIC_TRUSTED


@pytest.mark.parametrize("label", Label)
def test_a_session_sees_its_own_version_before_all_others(label):
    visible = {source: source for source in Label if label in LABELS_THAT_FLOW[source]}

    assert unshadowed(visible) is label


def test_a_confidential_version_is_not_shadowed_by_a_public_one_that_is_untrusted():
    assert (
        unshadowed({label: label for label in (Label.CONFIDENTIAL_TRUSTED, Label.PUBLIC)}) is Label.CONFIDENTIAL_TRUSTED
    )


def test_integrity_has_the_numbers_of_the_contract():
    contract = {name.removeprefix("INTEGRITY_"): number for name, number in classification_pb2.Integrity.items()}

    assert contract == {integrity.name: integrity.value for integrity in Integrity}


def test_a_label_is_its_level_and_its_integrity():
    for level in Classification:
        for integrity in Integrity:
            label = Label.of(level, integrity)
            assert (label.level, label.integrity, label.is_trusted) == (level, integrity, integrity is TRUSTED)
    assert {label.chain for label in Label} == set(range(1, 9))
    assert [Label.of(level, UNTRUSTED).chain for level in Classification] == list(Classification)
