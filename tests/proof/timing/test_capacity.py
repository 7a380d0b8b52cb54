"""The estimate of a capacity finds what is there, and nothing else."""

from __future__ import annotations

import random

import pytest

from tests.proof.timing.capacity import capacity, interval, shuffled


def received(error, count, seed):
    """Bits, and a feature that tells each with this probability of an error, beside one that tells nothing."""
    dice = random.Random(seed)
    sent = [dice.random() < 0.5 for _ in range(count)]
    received_bits = [bit ^ (dice.random() < error) for bit in sent]
    return {"sent": [bit + dice.random() / 2 for bit in received_bits], "noise": [dice.random() for _ in sent]}, sent


def test_an_exact_channel_has_one_bit_in_each_slot():
    found = capacity(*received(0.0, 200, 1))

    assert (found.bits, found.feature) == (1.0, "sent")
    assert 0.75 < found.low < found.high == 1.0


def test_an_inverted_channel_is_found_too():
    features, sent = received(0.0, 200, 1)

    assert capacity(features, [not bit for bit in sent]).bits == 1.0


def test_a_rule_that_is_wrong_more_often_than_right_says_nothing_but_might():
    """As it is chosen on the even slots, which this channel inverts."""
    features, sent = received(0.0, 200, 1)
    found = capacity(features, [bit ^ (slot % 2 == 0) for slot, bit in enumerate(sent)])

    assert (found.bits, found.low) == (0.0, 0.0)
    assert found.high == 1.0


def test_where_nothing_is_sent_nothing_is_found():
    """In 100 experiments the interval misses zero five times at most; and shuffled bits say nothing either."""
    found = [capacity(*received(0.5, 200, seed)) for seed in range(100)]

    assert sum(each.low > 0 for each in found) <= 5
    assert sum(each.bits for each in found) / 100 < 0.02
    assert shuffled(*received(0.0, 100, 1)) < 0.03


@pytest.mark.parametrize(("error", "bits"), [(0.1, 0.531), (0.25, 0.189)])
def test_the_interval_holds_the_capacity_of_a_channel_with_errors(error, bits):
    found = [capacity(*received(error, 400, seed)) for seed in range(30)]

    assert sum(each.low <= bits <= each.high for each in found) >= 26


def test_of_a_weak_channel_no_more_is_found_than_there_is():
    """The receiver may choose a bad rule there, and then learns less."""
    found = [capacity(*received(0.4, 400, seed)) for seed in range(30)]

    assert sum(each.low > 0.029 for each in found) <= 2


@pytest.mark.parametrize(
    ("errors", "tested", "least", "most"),
    [(0, 10, 0.0, 0.3085), (5, 10, 0.1871, 0.8129), (10, 10, 0.6915, 1.0), (3, 50, 0.0125, 0.1655)],
)
def test_the_interval_is_that_of_clopper_and_pearson(errors, tested, least, most):
    """The values of published tables."""
    assert interval(errors, tested) == pytest.approx((least, most), abs=0.0001)
