"""What a mutant is, and how one is made: patches of Python, edits of named queries, damage to the schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from types import ModuleType
from typing import Any

import pytest

from muniment_server.monitor.queries import (
    HOST_FILES,
    HOST_QUERIES,
    SESSION_FILES,
    SESSION_QUERIES,
    TRUSTED,
)
from muniment_server.postgres.queries import load

ITEMS, HOSTS = SESSION_QUERIES, HOST_QUERIES
OWN_TABLE = "(SELECT item.*, (SELECT session.label FROM session) AS label FROM item) AS visible"
"""What a query sees that reads the table of its own label instead of the view."""
LEVELS = ("public", "internal", "confidential", "restricted")
_OF_THE_MONITOR = re.compile(
    r"hmac$|muniment_server\.(monitor|postgres)\.|muniment_server\.domain\.(classification|ids|text)$"
)
"""What the monitor is made of, and the values that it compares: the lattice, ids and normal forms."""
_FILES = {name: file for file in (*SESSION_FILES, *HOST_FILES) for name in load(*file)}
_TEXTS = {name: text for file in (*SESSION_FILES, *HOST_FILES) for name, text in load(*file).items()}


class Place(Enum):
    """Where a guard stands."""

    MONITOR = "the monitor"
    DATABASE = "the grants and views"
    TRUSTED_QUERY = "a trusted query file"
    QUERY = "a query file of a noun"
    CODE = "the code of a noun"


@dataclass(frozen=True)
class Patch:
    """One change to Python or to a query, and where it is made."""

    place: Place
    apply: Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """One guard broken."""

    name: str
    killer: str
    patches: tuple[Patch, ...] = ()
    damage: tuple[str, ...] = ()
    probe: Callable[..., None] | None = None
    covered_by: str = ""
    about: str = "memories"
    """What the programs are about that it is shown to."""
    trusted: bool = False
    """Whether the programs that it is shown to have a trusted observer."""
    seed: int = 1
    """The first program that kills it."""

    @property
    def places(self) -> frozenset[Place]:
        """Where the guards stand that it breaks."""
        return frozenset(patch.place for patch in self.patches) | ({Place.DATABASE} if self.damage else set())

    @property
    def leaks(self) -> bool:
        """Whether a session would see what is above it, or answer differently because of it."""
        return self.killer in {"worlds", "egress"}

    @property
    def outside(self) -> Mutant:
        """The part of it that is outside of the monitor, the grants and the views: sound as far as levels go."""
        patches = tuple(patch for patch in self.patches if patch.place is not Place.MONITOR)
        return replace(self, patches=patches, damage=())

    def __str__(self) -> str:
        return self.name


def setting(owner: Any, name: str, value: object) -> Patch:
    """Replace an attribute."""
    return remembering(owner, name, lambda: value)


def remembering(owner: Any, name: str, make: Callable[[], object]) -> Patch:
    """Replace an attribute by what *make* makes each time: it remembers nothing of what was before."""
    module = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
    place = Place.MONITOR if _OF_THE_MONITOR.match(module) else Place.CODE
    return Patch(place, lambda monkeypatch: monkeypatch.setattr(owner, name, make()))


def replacing(table: Any, key: object, value: object) -> Patch:
    """Replace an entry of a table of the monitor."""
    return Patch(Place.MONITOR, lambda monkeypatch: monkeypatch.setitem(table, key, value))


def edit(queries: Mapping[str, str], query: str, old: str, new: str, *, count: int = 1) -> Patch:
    """Replace a fragment of a named query, as it is composed, which must be there *count* times."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        assert queries[query].count(old) == count, f"{query} does not hold {old!r} {count} times"
        monkeypatch.setitem(queries, query, queries[query].replace(old, new))

    if old not in _TEXTS.get(query, old):
        return Patch(Place.MONITOR, patch)
    return Patch(_place_of(query), patch)


def cut(queries: Mapping[str, str], query: str, pattern: str) -> Patch:
    """Remove what matches *pattern* from the own text of a named query."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        changed, found = re.subn(pattern, "", queries[query])
        assert found, f"{query} holds nothing like {pattern}"
        monkeypatch.setitem(queries, query, changed)

    return Patch(_place_of(query), patch)


def edit_scope(old: str, new: str) -> Patch:
    """Replace a fragment of a relation of scope.sql, in every query that is composed with it."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        changed = {query: text.replace(old, new) for query, text in ITEMS.items() if old in text}
        assert changed, f"no query holds {old!r}"
        for query, text in changed.items():
            monkeypatch.setitem(ITEMS, query, text)

    return Patch(Place.MONITOR, patch)


def _place_of(query: str) -> Place:
    """A query that is of no scope, such as those of the embedder, is no noun's."""
    return Place.QUERY if query in _FILES and _FILES[query] not in TRUSTED else Place.TRUSTED_QUERY


def view(name: str, old: str, new: str, *, options: str) -> tuple[str, ...]:
    """Damage: a fragment of a view's text replaced, at every level."""
    return tuple(
        f"""DO $$
            DECLARE found text := pg_get_viewdef('muniment_{level}.{name}'::regclass);
            BEGIN
                ASSERT found LIKE '%{old.replace("'", "''")}%', found;
                EXECUTE 'CREATE OR REPLACE VIEW muniment_{level}.{name} WITH ({options}) AS '
                     || replace(found, '{old.replace("'", "''")}', '{new.replace("'", "''")}');
            END $$"""
        for level in LEVELS
    )


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The Python and the queries of *mutant*, for as long as the block lasts."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for patch in mutant.patches:
            patch.apply(monkeypatch)
        yield
