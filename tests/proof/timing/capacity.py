"""How much is learned from what a receiver saw in each slot of time: a lower bound, with a confidence interval.

A threshold on one feature is chosen on half of the slots and tested on the other half. The receiver is then a binary
symmetric channel with the crossover probability of its errors. A rule that is wrong in more than half of the tested
slots counts as one that says nothing, but the upper end of the interval is what its complement might say. A cleverer
receiver may learn more.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

_CONFIDENCE = 0.95
_SHUFFLES = 200
_BISECTIONS = 40

Features = Mapping[str, Sequence[float]]
"""For each feature, its value in each slot."""


class Capacity(NamedTuple):
    """Bits in each slot, with the ends of the 95 % confidence interval."""

    bits: float
    low: float
    high: float
    errors: int
    tested: int
    feature: str
    """The one that the receiver chose."""


class _Rule(NamedTuple):
    """Take the bit for 1 if the feature is above the threshold; or below it, if inverted."""

    feature: str
    threshold: float
    inverted: bool

    def errors(self, features: Features, sent: Sequence[bool], slots: Sequence[int]) -> int:
        values = features[self.feature]
        return sum((values[slot] > self.threshold) == self.inverted for slot in slots if sent[slot]) + sum(
            (values[slot] > self.threshold) != self.inverted for slot in slots if not sent[slot]
        )


def capacity(features: Features, sent: Sequence[bool]) -> Capacity:
    """Choose a rule on the even slots, and test it on the odd ones."""
    train, test = range(0, len(sent), 2), range(1, len(sent), 2)
    rule = min(_rules(features, train), key=lambda rule: rule.errors(features, sent, train))
    errors = rule.errors(features, sent, test)
    least, most = interval(errors, len(test))
    return Capacity(
        bits=_bits(min(errors / len(test), 0.5)),
        low=_bits(min(most, 0.5)),
        high=max(_bits(least), _bits(most)),
        errors=errors,
        tested=len(test),
        feature=rule.feature,
    )


def shuffled(features: Features, sent: Sequence[bool], seed: int = 1) -> float:
    """The mean of what the same estimate finds for bits in another order: what it finds where nothing is."""
    dice = random.Random(seed)
    return math.fsum(capacity(features, dice.sample(sent, len(sent))).bits for _ in range(_SHUFFLES)) / _SHUFFLES


def interval(errors: int, tested: int) -> tuple[float, float]:
    """The interval of Clopper and Pearson for a probability."""
    tail = (1 - _CONFIDENCE) / 2
    least = 0.0 if errors == 0 else _root(lambda p: 1 - _at_most(errors - 1, tested, p) - tail)
    most = 1.0 if errors == tested else _root(lambda p: tail - _at_most(errors, tested, p))
    return least, most


def _rules(features: Features, slots: Sequence[int]) -> list[_Rule]:
    return [
        _Rule(name, threshold, inverted)
        for name, values in features.items()
        for threshold in sorted({values[slot] for slot in slots})
        for inverted in (False, True)
    ]


def _bits(error: float) -> float:
    """The capacity of a binary symmetric channel, which is the same for a probability and for its complement."""
    return 1 + sum(p * math.log2(p) for p in (error, 1 - error) if p > 0)


def _at_most(errors: int, tested: int, p: float) -> float:
    return math.fsum(math.comb(tested, n) * p**n * (1 - p) ** (tested - n) for n in range(errors + 1))


def _root(rising: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return low
