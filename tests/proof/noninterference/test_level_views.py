"""Every view and every statistic of a level ends at its level and at its agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass

from muniment_server.domain.classification import Classification
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.monitor import grants
from tests.proof.noninterference.level_views import (
    LOWER,
    Below,
    what_another_agent_holds_changes_nothing,
    what_is_above_changes_nothing_below,
)
from tests.proof.noninterference.mutants.level_views import COVERED, WIDENED, reading_above, widened
from tests.proof.noninterference.values import METHODS
from tests.proof.noninterference.worlds import World, world
from tests.support.labels import untrusted


@pytest.fixture(scope="module")
def sound(postgres: EmbeddedPostgres) -> Iterator[World]:
    with world(postgres) as only:
        yield only


_SAMPLED = [pytest.mark.proof, pytest.mark.sampled]
ONE_AT_FIRST = [low if low is Classification.INTERNAL else pytest.param(low, marks=_SAMPLED) for low in LOWER]
"""`make test` runs only INTERNAL, which has levels above and below."""


@pytest.mark.parametrize("low", ONE_AT_FIRST, ids=lambda level: level.name)
def test_c34_fifty_items_above_change_nothing_below(sound: World, low: Classification):
    what_is_above_changes_nothing_below(sound, low)


@pytest.mark.parametrize("level", ONE_AT_FIRST, ids=lambda level: level.name)
def test_c34_fifty_items_of_another_agent_change_nothing(sound: World, level: Classification):
    what_another_agent_holds_changes_nothing(sound, level)


def test_the_searches_below_find_items_by_words_and_by_embeddings(sound: World):
    """Empty answers would be equal, too."""
    found = _found(sound)

    assert all(answer.semantic and answer.results for answer in found)
    assert any(0.3 < result.score < 1 for answer in found for result in answer.results)


def _found(world: World) -> list[Any]:
    below = Below(world, Classification.INTERNAL)
    world.embed(untrusted(below.level).value)
    return [GetMessageClass(METHODS[rpc].output_type).FromString(one.response) for rpc, one in below.searches()]


def test_every_view_of_a_level_is_widened_or_says_why_not():
    assert sorted((*WIDENED, *COVERED)) == sorted(grants._LABEL_VIEWS)


@pytest.fixture(scope="module", params=LOWER, ids=lambda level: level.name)
def watched(request: pytest.FixtureRequest, postgres: EmbeddedPostgres) -> Iterator[tuple[World, Below]]:
    """A world whose level may read the one above, but whose views do not; fifty items are above."""
    low: Classification = request.param
    with world(postgres, damage=reading_above(low)) as only:
        below = Below(only, low)
        below.write_above()
        yield only, below


@pytest.mark.proof
@pytest.mark.parametrize("relation", WIDENED)
def test_a_view_that_reads_the_level_above_is_noticed(watched: tuple[World, Below], relation: str):
    only, below = watched
    before = below.observe()
    assert below.observe() == before

    with only.database.as_admin() as admin, widened(admin, relation, below.level):
        assert below.observe() != before
