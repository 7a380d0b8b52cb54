"""Page tokens."""

from __future__ import annotations

import base64
import json

import pytest

from muniment_server.domain.classification import Label
from muniment_server.domain.errors import InvalidPageToken, TaintChanged
from muniment_server.monitor.paging import Pager

PAGER = Pager(b"hash of a token", "ListMemories", ("tag",), Label.INTERNAL)


def flipped(token: str) -> list[str]:
    """*token* with each of its bits flipped once, and cut short by one character."""
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    masks = (1 << bit for bit in range(len(raw) * 8))
    number = int.from_bytes(raw)
    changed = [(number ^ mask).to_bytes(len(raw)) for mask in masks]
    return [*(base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in changed), token[:-1], token + "A"]


def test_a_page_token_gives_back_what_it_names():
    assert PAGER.last(PAGER.token("நினைவு", "b")) == ["நினைவு", "b"]


def test_no_page_token_means_the_first_page():
    assert PAGER.last("") is None


def test_c31_a_page_token_with_any_bit_flipped_is_refused():
    for token in flipped(PAGER.token("plan")):
        with pytest.raises(InvalidPageToken):
            PAGER.last(token)


def test_c31_a_page_token_in_another_spelling_is_refused():
    """Base64 has spare bits and padding: only the spelling that was given out counts."""
    token = PAGER.token("plans")
    spare = base64.urlsafe_b64encode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))).decode()

    for other in (token + "=", token + "\n", spare.replace("=", "") + "==", " " + token):
        with pytest.raises(InvalidPageToken):
            PAGER.last(other)


@pytest.mark.parametrize(
    "other",
    [
        Pager(b"hash of another", "ListMemories", ("tag",), Label.INTERNAL),
        Pager(b"hash of a token", "ListNotes", ("tag",), Label.INTERNAL),
        Pager(b"hash of a token", "ListMemories", (None,), Label.INTERNAL),
        Pager(b"hash of a token", "ListMemories", ("tag", None), Label.INTERNAL),
        Pager(b"hash of a token", "ListMemories", (), Label.INTERNAL),
    ],
    ids=["credential", "method", "filter", "more filters", "fewer filters"],
)
def test_c31_a_page_token_of_another_call_is_refused(other):
    with pytest.raises(InvalidPageToken):
        PAGER.last(other.token("plan"))


@pytest.mark.parametrize("label", [label for label in Label if label is not Label.INTERNAL])
def test_a_page_token_of_another_taint_says_so(label):
    other = Pager(b"hash of a token", "ListMemories", ("tag",), label)

    with pytest.raises(TaintChanged):
        PAGER.last(other.token("plan"))


@pytest.mark.parametrize(
    ("method", "filters"), [("A", ("b,c",)), ("A", ("bc",)), ("A", ("bc", "")), ("A", ("", "bc")), ("Ab", ("c",))]
)
def test_method_and_filters_cannot_pose_as_each_other(method, filters):
    """What is hashed is unambiguous."""
    one, other = Pager(b"k", method, filters), Pager(b"k", "A", ("b", "c"))

    with pytest.raises(InvalidPageToken):
        one.last(other.token("x"))


def test_a_page_token_shows_no_more_than_the_last_key():
    raw = base64.urlsafe_b64decode(PAGER.token("plan") + "==")

    assert json.loads(raw[16:]) == [Label.INTERNAL.chain, "plan"]
