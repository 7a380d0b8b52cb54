"""What a level observes through each view and each statistic, while the level above writes fifty items with its words.

A fixed set of reads is observed, the level above writes and searches, and the same reads are observed again: scores,
snippets, order, counts, pages, budgets and quotas must be the same bytes.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from muniment_server.domain.classification import Classification
from muniment_server.search import ranking, search
from tests.proof.noninterference.probes import Probed
from tests.proof.noninterference.programs.alphabets import IDS
from tests.proof.noninterference.replay import BEGINNING, derived
from tests.proof.noninterference.worlds import World
from tests.support.labels import untrusted
from tests.support.services import Outcome, reason_of

LOWER = tuple(Classification)[:-1]
"""The levels that have one above them."""
MANY = 50
_MEMORY = 1
_QUERIES = ("whale budget", "budgets", "the user", "whale")
"""By words, by stems, by embeddings alone (see worlds.py), and one word that is rare below."""
_ITEMS = 3 * MANY + 10
"""How many items an agent may store at a level: what the level above stores leaves no room for both."""
_EARLIER, _LATER = ({"seconds": int(BEGINNING.timestamp()) + seconds} for seconds in (-3600, 3600))

FEW = ((search, "MAX_SAMPLED", 4), (search, "FEW_SAMPLED", 2), (search, "MAX_STEMS_COUNTED", 1),
       (search, "MAX_GRAMS_COUNTED", 1), (search, "_CANDIDATE_LIMITS", ((3, 15), (None, 100))),
       (search, "_COMPARED_VECTORS", 2),
       (ranking, "MIN_FIRST", 2), (ranking, "MAX_FIRST", 4))  # fmt: skip
"""Bounds that a few items reach, in the place of those that only thousands would."""


@contextlib.contextmanager
def few_are_many() -> Iterator[None]:
    """Counts are estimated from samples, and candidates are limited, among a few items."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for module, name, value in FEW:
            monkeypatch.setattr(module, name, value)
        yield


class Below:
    """An agent with a few items at the level *low*, and what a session at that level observes of them."""

    def __init__(self, world: World, low: Classification) -> None:
        self.level = low
        self._probed = Probed(world)
        high = Classification(low + 1)
        for agent in ("alice", "bob"):
            self._host("CreateAgent", agent_id=agent)
            self._host("UpdateAgent", agent_id=agent, limits={"max_items": _ITEMS})
        self._host("CreateSharedBlock", owner_agent_id="bob", label="shared", content="a budget for whales")
        self._host("AttachBlock", owner_agent_id="bob", label="shared", agent_id="alice")
        self._token, self._above, self._bob, self._bob_above, self._of_bob = (
            self._probed.session(level, agent)[0]
            for level, agent in ((low, "alice"), (high, "alice"), (low, "bob"), (high, "bob"), (low, "bob"))
        )
        self._write_below()

    def observe(self, *, after: str = "") -> list[Outcome]:
        """All that is observed below. *after* is added to the queries and means nothing."""
        self._probed.world.embed(untrusted(self.level).value)
        return [*(outcome for _, outcome in self.searches(after)), *self._reads(), *self._limits()]

    def searches(self, after: str = "") -> list[tuple[str, Outcome]]:
        """The searches below, with their RPCs."""
        return self._searches(self._token, after)

    def write_above(self, *, after: str = "") -> None:
        """Fifty items of each kind with the words of the queries at the level above, which asks the same queries."""
        names = ("plan", "note", *(f"above-{number}" for number in range(MANY)))
        for name in names:
            self._do(self._above, "SaveMemory", key=name, content="a whale and a whale budget meeting", tags=["work"])
        for number in range(MANY):
            self._do(self._above, "AddNote", tier=1, content=f"whale budget {number}")
        self._import(self._above, [f"a whale, a budget {number}" for number in range(MANY)])
        self._do(self._above, "UpdateBlock", label="own", content="a whale above")
        self._do(self._bob_above, "UpdateBlock", label="shared", content="whales above")
        self._do(self._above, "SaveMemory", key="gone", content="whale")
        self._do(self._above, "DeleteMemory", key="gone")
        self._embed_above()
        self._searches(self._above, after)

    def write_elsewhere(self, *, after: str = "") -> None:
        """Fifty items with the words of the queries by another agent at the same level, which asks the same queries."""
        for number in range(MANY):
            self._do(self._of_bob, "SaveMemory", key=f"b-{number}", content="a whale and a budget", tags=["work"])
        self._import(self._of_bob, [f"a whale, a budget {number}" for number in range(MANY)])
        self._do(self._of_bob, "SaveMemory", key="gone", content="whale")
        self._do(self._of_bob, "DeleteMemory", key="gone")
        self._probed.world.embed(untrusted(self.level).value)
        self._searches(self._of_bob, after)

    def _write_below(self) -> None:
        for key, content in (
            ("other", "a budget"),
            ("plan", "the whale and the budget"),
            ("other", "a budget, and budgets again"),
            ("note", "a meeting about nothing"),
            ("long", "whale " + "and then something else happened " * 8),
            ("budget", "what costs how much"),
        ):
            self._do(self._token, "SaveMemory", key=key, content=content, tags=["work"] if key != "note" else [])
        for note_id, content in zip(IDS, ("a whale", "the budget", "a meeting", "budgets"), strict=True):
            self._do(self._token, "AddNote", tier=1, note_id=note_id, content=content)
        self._import(self._token, ["a whale was seen", "and then", "the budget", "of the meeting", "ended"])
        self._do(self._token, "UpdateBlock", label="own", content="below")

    def _import(self, token: str, contents: list[str]) -> None:
        for number, content in enumerate(contents):
            seconds = int(BEGINNING.timestamp()) + number
            turn = {"thread": "t", "event_time": {"seconds": seconds}, "tags": ["work"]}
            self._do(token, "StorePassage", content=content, passage_id=_id_of(f"{len(contents)}/{number}"), **turn)

    def _searches(self, token: str, after: str) -> list[tuple[str, Outcome]]:
        ways: tuple[tuple[str, dict[str, Any]], ...] = (
            ("SearchMemories", {}),
            ("SearchMemories", {"max_results": 2}),
            ("SearchMemories", {"tags": ["work"]}),
            ("SearchNotes", {"tier": 1}),
            ("SearchPassages", {}),
            ("SearchPassages", {"thread": "t", "max_results": 3}),
            ("SearchPassages", {"start_time": _EARLIER, "end_time": _LATER}),
        )
        return [
            (rpc, self._probed.call(token, rpc, query=query + after, **fields))
            for query in _QUERIES
            for rpc, fields in ways
        ]

    def _reads(self) -> list[Outcome]:
        return [
            self._probed.call(self._token, rpc, **fields)
            for rpc, fields in (
                ("GetMemory", {"key": "plan"}),
                ("GetMemory", {"key": "above-1"}),
                ("ListVersions", {"kind": _MEMORY, "name": "plan"}),
                ("ListVersions", {"kind": _MEMORY, "name": "above-1"}),
                ("ListVersions", {"kind": 3, "name": "shared", "owner_agent_id": "bob"}),
                ("ListVersions", {"kind": _MEMORY, "name": "other", "with_revisions": True}),
                ("ListMemories", {}),
                ("ListMemories", {"page_size": 2, "tag": "work"}),
                ("ListNotes", {"tier": 1}),
                ("ListPassages", {"page_size": 3}),
                ("ListBlocks", {}),
                ("GetBlock", {"label": "own"}),
                ("GetBlock", {"label": "shared", "owner_agent_id": "bob"}),
                ("RenderPrompt", {}),
                ("GetSession", {}),
            )
        ]

    def _limits(self) -> list[Outcome]:
        """Whether there is room for one more, and whether what was deleted elsewhere comes back. Nothing stays."""
        saved = self._probed.call(self._token, "SaveMemory", key="one-more", content="a whale")
        self._probed.call(self._token, "DeleteMemory", key="one-more")
        brought_back = self._host(
            "UndeleteItem", agent_id="alice", kind=_MEMORY, name="gone", classification=self.level
        )
        return [Outcome(one.code, reason_of(one), (), b"") for one in (saved, brought_back)]

    def _embed_above(self) -> None:
        self._probed.world.embed(untrusted(self.level + 1).value)

    def _host(self, rpc: str, **fields: Any) -> Outcome:
        return self._probed.call(self._probed.host, rpc, **fields)

    def _do(self, token: str, rpc: str, **fields: Any) -> None:
        outcome = self._probed.call(token, rpc, **fields)
        assert outcome.code.name == "OK", f"{rpc}: {outcome.code.name} {outcome.message}"


def _id_of(name: str) -> str:
    """An id of a passage, the same each time."""
    return str(uuid.UUID(bytes=derived(f"passage {name}")[:16], version=4))


def what_is_above_changes_nothing_below(world: World, low: Classification) -> None:
    """Neither a score nor a count nor an order at *low*: exactly counted, and where counts are estimated."""
    below = Below(world, low)
    _assert_unchanged(below, below.write_above)


def what_another_agent_holds_changes_nothing(world: World, low: Classification) -> None:
    """The same for another agent of the tenant, at the same level."""
    below = Below(world, low)
    _assert_unchanged(below, below.write_elsewhere)


def _assert_unchanged(below: Below, write: Callable[..., None]) -> None:
    before = below.observe()
    with few_are_many():
        estimated = below.observe()
    write(after=" &")  # whoever writes asks the same queries, before the session below asks them in this spelling
    assert below.observe(after=" &") == before
    with few_are_many():
        assert below.observe(after=" &") == estimated


def internal_ends_at_its_level(world: World) -> None:
    """What is CONFIDENTIAL changes nothing at INTERNAL."""
    what_is_above_changes_nothing_below(world, Classification.INTERNAL)


def an_agent_ends_at_itself(world: World) -> None:
    """What another agent holds at INTERNAL changes nothing."""
    what_another_agent_holds_changes_nothing(world, Classification.INTERNAL)
