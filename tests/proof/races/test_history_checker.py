"""The checker of histories accepts good ones and rejects bad ones."""

from __future__ import annotations

import pytest

from tests.proof.races.histories import Operation, order_of

_TAINTS = {"low": 1, "high": 2}


def _save(start: float, end: float, content: str, level: int = 1, conversation: str = "low") -> Operation:
    return Operation(start, end, "SaveMemory", conversation, level, content)


def _get(start: float, end: float, content: str, level: int = 1, conversation: str = "low") -> Operation:
    return Operation(start, end, "GetMemory", conversation, level, content)


def _delete(start: float, end: float, *, deleted: bool, conversation: str = "low") -> Operation:
    return Operation(start, end, "DeleteMemory", conversation, deleted=deleted)


def _raise(start: float, end: float, level: int, conversation: str = "low") -> Operation:
    return Operation(start, end, "RaiseTaint", conversation, level)


GOOD = {
    "nothing": [],
    "one after the other": [_save(0, 1, "a"), _get(2, 3, "a"), _delete(4, 5, deleted=True), _get(6, 7, "", 0)],
    "a read beside a save sees the old text": [_save(0, 1, "a"), _save(2, 5, "b"), _get(3, 4, "a")],
    "a read beside a save sees the new text": [_save(0, 1, "a"), _save(2, 5, "b"), _get(3, 4, "b")],
    "saves at once, in the order that reads show": [_save(0, 5, "a"), _save(0, 5, "b"), _get(6, 7, "a")],
    "the higher version shadows the lower": [
        _save(0, 1, "a"), _save(2, 3, "b", 2, "high"), _get(4, 5, "b", 2, "high"), _get(4, 5, "a"),
    ],
    "a save beside a raise, at the old level": [_save(0, 5, "a"), _raise(1, 2, 2)],
    "a save beside a raise, at the new level": [_save(0, 5, "a", 2), _raise(1, 2, 2)],
    "a read after a raise sees more": [_save(0, 1, "b", 2, "high"), _raise(2, 3, 2), _get(4, 5, "b", 2)],
    "a raise to a lower level changes nothing": [_raise(0, 1, 1, "high"), _save(2, 3, "a", 2, "high")],
}  # fmt: skip
BAD = {
    "a stale read": [_save(0, 1, "a"), _save(2, 3, "b"), _get(4, 5, "a")],
    "a lost update": [_save(0, 1, "a"), _get(2, 3, "", 0)],
    "a text that was never saved": [_save(0, 1, "a"), _get(2, 3, "b")],
    "two reads that disagree about the order": [
        _save(0, 9, "a"), _save(0, 9, "b"), _get(10, 11, "a"), _get(12, 13, "b"), _get(14, 15, "a"),
    ],
    "a text that is back after its deletion": [_save(0, 1, "a"), _delete(2, 3, deleted=True), _get(4, 5, "a")],
    "two deletions of one version": [_save(0, 1, "a"), _delete(2, 3, deleted=True), _delete(4, 5, deleted=True)],
    "a write below the taint": [_save(0, 1, "a", 1, "high")],
    "a write above the taint": [_save(0, 1, "a", 2)],
    "a write at the old level after a raise": [_raise(0, 1, 2), _save(2, 3, "a")],
    "a read above the taint": [_save(0, 1, "b", 2, "high"), _get(2, 3, "b", 2)],
    "a lower version seen through a higher one": [
        _save(0, 1, "a"), _save(2, 3, "b", 2, "high"), _get(4, 5, "a", 1, "high"),
    ],
    "a taint that falls": [_raise(0, 1, 3), _save(2, 3, "a", 3), _raise(4, 5, 2), _save(6, 7, "b", 2)],
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_has_an_order(name: str) -> None:
    history = GOOD[name]

    order = order_of(history, _TAINTS)

    assert order is not None
    assert sorted(map(id, order)) == sorted(map(id, history))


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_has_none(name: str) -> None:
    assert order_of(BAD[name], _TAINTS) is None
