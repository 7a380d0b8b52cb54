"""What a mutant is, and how one is made: patches of Python, edits of named queries, damage to the schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from muniment_server.monitor import host_scope, session_scope

Patch = Callable[[pytest.MonkeyPatch], None]
ITEMS, HOSTS = session_scope._QUERIES, host_scope.QUERIES
LEVELS = ("public", "internal", "confidential", "restricted")


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
    seed: int = 1
    """The first program that kills it."""

    def __str__(self) -> str:
        return self.name


def setting(owner: object, name: str, value: object) -> Patch:
    """Replace an attribute."""
    return lambda monkeypatch: monkeypatch.setattr(owner, name, value)


def edit(queries: Mapping[str, str], query: str, old: str, new: str, *, count: int = 1) -> Patch:
    """Replace a fragment of a named query, which must be there *count* times."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        assert queries[query].count(old) == count, f"{query} does not hold {old!r} {count} times"
        monkeypatch.setitem(queries, query, queries[query].replace(old, new))

    return patch


def cut(queries: Mapping[str, str], query: str, pattern: str) -> Patch:
    """Remove what matches *pattern* from a named query."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        changed, found = re.subn(pattern, "", queries[query])
        assert found, f"{query} holds nothing like {pattern}"
        monkeypatch.setitem(queries, query, changed)

    return patch


def window(name: str, old: str, new: str, *, options: str) -> tuple[str, ...]:
    """Damage: a fragment of a window's text replaced, at every level."""
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
            patch(monkeypatch)
        yield
