"""Lists of embeddings: what a search reads of them, that they keep levels and agents apart, and how they change.

An agent has lists here from 20 embeddings on, and a search compares five vectors.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from muniment_server.admin.connection import Operator, connect_operator
from muniment_server.admin.purge import purgeable, remove_versions
from muniment_server.agents import erasing
from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.errors import Conflict
from muniment_server.domain.items import ItemKind
from muniment_server.embedder import lists as embedding_lists
from muniment_server.embedder.k_means import center, k_means
from muniment_server.embedder.lists import EmbeddingLists, ListSizes, maintain_lists
from muniment_server.monitor.host_scope import HostScope
from muniment_server.postgres import migrate
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.placement import Databases
from muniment_server.postgres.pool import SINGLE, operator_conninfo
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.process.stop_signal import StopSignal
from muniment_server.runtime import schema
from muniment_server.search import search
from muniment_server.search.embeddings import signs
from muniment_server.search.reindex import reindex
from tests.proof.noninterference.mutants.level_views import reading_above, widened
from tests.proof.noninterference.mutants.scheme import HOSTS, ITEMS, Mutant, Patch, applied, edit
from tests.support.answers import CONFIDENTIAL, INTERNAL, LEVELS, PUBLIC, RESTRICTED, keys
from tests.support.databases import Database
from tests.support.embedders import Quick, embed_all, quick
from tests.support.erasing import erase_all
from tests.support.labels import untrusted
from tests.support.services import Service, serving

SIZES = ListSizes(least=20, size=5, growth=4)
THEMES = ("dog", "car", "zebra", "whale", "budget", "sea", "doctor", "money")


class World:
    """A server with a quick embedder."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.database: Database = service.database
        self._sessions: dict[tuple[Classification, str], Any] = {}

    def at(self, level: Classification, agent: str = "alice") -> Any:
        """A session."""
        if (level, agent) not in self._sessions:
            self._sessions[level, agent] = self.service.session(level, agent_id=agent)
        return self._sessions[level, agent]

    def fill(self, level: Classification, agent: str = "alice", *, count: int = 5, word: str = "x") -> None:
        """So many memories of each theme."""
        for theme in THEMES:
            for number in range(count):
                self.at(level, agent).save_memory(
                    key=f"{theme}-{word}{number}",
                    content=f"{theme} {theme} {theme} {word}{number}",
                    tags=[f"t{number}"],
                )

    def embed(self) -> None:
        embed_all(self.database, Quick())

    def keep(self, *levels: Classification) -> None:
        """Make and complete the lists."""
        with closing(RoleDatabase(self.database.conninfo, pool_sizes=SINGLE)) as roles:
            for level in levels or tuple(Classification):
                maintain_lists(roles, untrusted(level), StopSignal(), SIZES)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with self.database.as_owner() as owner:
            return [tuple(row) for row in owner.execute(statement.encode()).fetchall()]

    def lists(self, level: Classification = PUBLIC, columns: str = "number") -> list[tuple[Any, ...]]:
        return self.rows(f"SELECT {columns} FROM {untrusted(level).role}.embedding_list ORDER BY agent, number")

    def unlisted(self, level: Classification = PUBLIC) -> list[str]:
        return [
            name
            for (name,) in self.rows(
                f"SELECT name FROM {untrusted(level).role}.meaning WHERE list IS NULL ORDER BY name"
            )
        ]

    def found(self, level: Classification, query: str, **fields: Any) -> list[str]:
        return sorted(keys(self.at(level).search_memories(query=query, max_results=100, **fields)))

    def searches(self, level: Classification) -> list[bytes]:
        """Answers, as bytes."""
        return [
            self.at(level).search_memories(query=query, **fields).SerializeToString(deterministic=True)
            for query in ("hound", "automobile", "the budget of the sea", "money")
            for fields in ({"max_results": 40}, {"max_results": 3}, {"tags": ["t1"]}, {"key_prefix": "dog"})
        ]

    def hide(self, theme: str) -> None:
        """Move the centers of a theme's lists as far as possible from it, so that a search does not read them."""
        with self.database.as_owner() as owner:
            owner.execute(
                "UPDATE muniment_public.embedding_list SET signs = ~%s::bit(384) WHERE number IN"
                " (SELECT list FROM muniment_public.meaning WHERE name LIKE %s)",
                [signs(quick(theme)), f"{theme}-%"],
            )


@pytest.fixture
def world(database, monkeypatch):
    monkeypatch.setattr(search, "_COMPARED_VECTORS", 5)
    monkeypatch.setattr(search, "_FEW_COMPARED", 5)
    with serving(database, embed=quick) as service:
        yield World(service)


# What a search reads.


def test_an_agent_with_few_embeddings_has_no_lists(world):
    world.fill(PUBLIC, count=2)
    world.embed()
    before = world.searches(PUBLIC)
    world.keep()

    assert world.lists() == []
    assert world.searches(PUBLIC) == before


def test_what_is_near_is_found_in_the_nearest_lists(world):
    world.fill(PUBLIC)
    world.embed()
    before = {theme: world.found(PUBLIC, theme) for theme in THEMES}
    world.keep()

    assert len(world.lists()) == 8
    assert world.unlisted() == []
    assert {theme: world.found(PUBLIC, theme) for theme in THEMES} == before


def test_a_list_that_is_far_is_read_if_too_few_of_the_near_ones_pass(world):
    """A filter by prefix or by tag leaves too few."""
    world.fill(PUBLIC)
    world.embed()
    world.keep()
    near = world.found(PUBLIC, "hound")
    world.hide("dog")

    assert len(near) == 5
    assert all(key.startswith("dog") for key in near)
    assert world.found(PUBLIC, "hound") == []
    assert world.found(PUBLIC, "hound", key_prefix="dog") == near
    assert world.found(PUBLIC, "hound", tags=["t1"]) == ["dog-x1"]


def test_shadowed_versions_of_the_near_lists_hide_nothing(world):
    world.fill(PUBLIC)
    world.embed()
    world.keep()
    world.hide("dog")
    for theme in THEMES[1:]:
        for number in range(5):
            world.at(INTERNAL).save_memory(key=f"{theme}-x{number}", content="quartz")

    assert world.found(INTERNAL, "hound") == [f"dog-x{number}" for number in range(5)]


def test_an_embedding_without_a_list_is_always_read(world):
    world.fill(PUBLIC)
    world.embed()
    world.keep()
    world.hide("dog")
    with world.database.as_owner() as owner:
        owner.execute("UPDATE muniment_public.meaning SET list = NULL WHERE name = 'dog-x3'")

    assert world.found(PUBLIC, "hound") == ["dog-x3"]


def test_a_list_without_a_center_is_always_read(world):
    world.fill(PUBLIC)
    world.embed()
    world.keep()
    world.hide("dog")
    with world.database.as_owner() as owner:
        owner.execute("UPDATE muniment_public.embedding_list SET signs = NULL")

    assert len(world.found(PUBLIC, "hound")) == 5


def test_a_new_embedding_joins_the_nearest_list(world):
    world.fill(PUBLIC)
    world.embed()
    world.keep()
    world.at(PUBLIC).save_memory(key="dog-new", content="dog dog dog new")
    world.embed()

    assert world.unlisted() == []
    assert world.rows("SELECT list FROM muniment_public.meaning WHERE name = 'dog-new'") == world.rows(
        "SELECT number FROM muniment_public.embedding_list AS list JOIN muniment_public.meaning USING (tenant)"
        " WHERE name = 'dog-new' ORDER BY bit_count(list.signs # meaning.signs), number LIMIT 1"
    )
    assert "dog-new" in world.found(PUBLIC, "hound", key_prefix="dog-n")


# Levels and agents.


def low_answers_do_not_depend_on_what_is_above(world):
    """With lists at both levels: before the higher items are written, before and after they have lists."""
    world.fill(INTERNAL)
    world.embed()
    world.keep()
    before = world.searches(INTERNAL), world.lists(INTERNAL, "number, signs::text")
    world.fill(CONFIDENTIAL, count=8, word="y")
    world.embed()
    with_embeddings = world.searches(INTERNAL)
    world.keep()

    assert len(world.lists(CONFIDENTIAL)) == 12
    assert with_embeddings == before[0]
    assert (world.searches(INTERNAL), world.lists(INTERNAL, "number, signs::text")) == before
    assert world.searches(CONFIDENTIAL) != before[0]


def test_low_answers_do_not_depend_on_what_is_above(world):
    low_answers_do_not_depend_on_what_is_above(world)


@pytest.mark.proof
def test_that_a_level_reads_the_lists_above_is_noticed(world):
    with world.database.as_admin() as admin:
        for statement in reading_above(INTERNAL):
            admin.execute(statement.encode())
        with widened(admin, "visible_embedding_list", INTERNAL), pytest.raises(AssertionError):
            low_answers_do_not_depend_on_what_is_above(world)


def test_an_agent_has_lists_of_its_own(world):
    """Another agent's items change neither its answers nor its lists, and both have lists."""
    world.fill(PUBLIC)
    world.embed()
    world.keep()
    before = world.searches(PUBLIC), world.lists(columns="number, signs::text")
    world.fill(PUBLIC, "other", count=8, word="y")
    world.embed()
    world.keep()

    assert world.searches(PUBLIC) == before[0]
    assert set(before[1]) <= set(world.lists(columns="number, signs::text"))
    assert len(world.lists()) == 8 + 12


def test_each_level_has_other_numbers(world):
    for level in LEVELS:
        world.fill(level, count=3)
    world.embed()
    world.keep()
    numbers = [number for level in LEVELS for (number,) in world.lists(level)]

    assert len(numbers) == 4 * 4
    assert len(set(numbers)) == len(numbers)


# How lists grow.


def test_an_agent_that_has_grown_gets_more_lists(world):
    world.fill(PUBLIC, count=3)
    world.embed()
    world.keep()
    before = world.lists()
    world.fill(PUBLIC, count=12, word="y")
    world.embed()
    world.keep()

    assert len(before) == 4
    assert len(world.lists()) == (8 * 15) // 5
    assert set(before) & set(world.lists()) == set()
    assert world.unlisted() == []
    assert {key.partition("-")[0] for key in world.found(PUBLIC, "hound", key_prefix="dog")} == {"dog"}


@pytest.mark.parametrize("step", ["set_centers", "fill_lists", "drop_lists"])
def test_what_was_interrupted_is_completed(world, monkeypatch, step):
    """Whatever is found meanwhile is right: what has no list is read."""
    world.fill(PUBLIC)
    world.embed()
    before = world.searches(PUBLIC)
    with monkeypatch.context() as patched:
        patched.setitem(embedding_lists._QUERIES, step, "SELECT 1 / 0")
        with pytest.raises(psycopg.errors.DivisionByZero):
            world.keep(PUBLIC)
    meanwhile = [world.found(PUBLIC, theme, key_prefix=theme) for theme in THEMES]
    world.keep()

    assert [len(found) for found in meanwhile] == [5] * 8
    assert world.unlisted() == []
    assert all(world.lists(columns="signs IS NOT NULL AND NOT is_retired"))
    assert [answer for answer in world.searches(PUBLIC) if answer not in before] == []


def test_two_embedders_make_the_lists_of_an_agent_once(world):
    """The second one finds other lists than it had read."""
    world.fill(PUBLIC)
    world.embed()
    with closing(RoleDatabase(world.database.conninfo, pool_sizes=SINGLE)) as roles:
        sizes = SIZES
        (owner,) = world.rows("SELECT DISTINCT tenant, agent, kind::int FROM muniment_public.meaning")
        keepers = [
            embedding_lists._AgentLists(roles, Label.PUBLIC, embedding_lists._Owner(*owner), sizes, StopSignal())
            for _ in range(2)
        ]
        read = [keeper._lists() for keeper in keepers]
        for keeper, lists in zip(keepers, read, strict=True):
            keeper._grow(lists)

    assert len(world.lists()) == 8


def test_reindexing_keeps_the_lists_and_fills_them_again(world):
    world.fill(PUBLIC)
    world.embed()
    world.keep()
    before = world.lists(), world.searches(PUBLIC)
    with connect_operator(world.database.admin) as operator:
        list(reindex(operator.connection))
    world.embed()
    world.keep()

    assert world.unlisted() == []
    assert (world.lists(), world.searches(PUBLIC)) == before


@contextmanager
def kept(world: World) -> Iterator[None]:
    """The embedder keeps lists until the block ends."""
    with (
        closing(RoleDatabase(world.database.conninfo, pool_sizes=SINGLE)) as roles,
        EmbeddingLists(Databases.of_one(roles), Disk(None), SIZES).running(),
    ):
        yield


def wait_until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_the_embedder_makes_the_lists_of_each_level(world, monkeypatch):
    monkeypatch.setattr(embedding_lists, "_POLL_SECONDS", 0.01)
    for level in (PUBLIC, RESTRICTED):
        world.fill(level)
    world.embed()
    with kept(world):
        wait_until(lambda: not world.unlisted() and not world.unlisted(RESTRICTED))

    assert (len(world.lists(PUBLIC)), len(world.lists(RESTRICTED))) == (8, 8)


def test_a_level_that_fails_stops_no_other(world, monkeypatch, caplog):
    """What the error says may quote a text: it is not logged."""
    compute, text = embedding_lists.maintain_lists, "my secret"

    def fail_below(database, label, *arguments):
        if label is Label.PUBLIC:
            raise psycopg.DataError(text)
        compute(database, label, *arguments)

    monkeypatch.setattr(embedding_lists, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(embedding_lists, "maintain_lists", fail_below)
    for level in (PUBLIC, INTERNAL):
        world.fill(level)
    world.embed()
    with kept(world):
        wait_until(lambda: not world.unlisted(INTERNAL))

    assert world.lists() == []
    assert "DataError" in caplog.text
    assert "secret" not in caplog.text


def test_an_agent_whose_lists_fail_does_not_stop_those_after_it(world, monkeypatch):
    for agent in ("first", "second"):
        world.fill(PUBLIC, agent)
    world.embed()
    (first,), (second,) = world.rows("SELECT DISTINCT agent FROM muniment_public.meaning ORDER BY agent")
    grow = embedding_lists._AgentLists._grow

    def fail_first(keeper, lists):
        if keeper._owner["agent"] == first:
            raise psycopg.DataError
        return grow(keeper, lists)

    monkeypatch.setattr(embedding_lists._AgentLists, "_grow", fail_first)
    with pytest.raises(psycopg.DataError):
        world.keep(PUBLIC)

    assert set(world.lists(columns="agent")) == {(second,)}


def test_lists_that_are_filled_in_several_turns_are_whole_in_the_end(world, monkeypatch):
    """After so many embeddings the next agent gets its turn."""
    monkeypatch.setattr(embedding_lists, "_CHUNKS_AT_ONCE", 10)
    monkeypatch.setattr(embedding_lists, "_MOST_MOVED", 10)
    world.fill(PUBLIC)
    world.embed()
    left = []
    for _ in range(4):
        world.keep(PUBLIC)
        left.append(len(world.unlisted()))

    assert left == [30, 20, 10, 0]


def test_no_more_embeddings_are_sampled_than_the_lists_need(world, monkeypatch):
    """Callers choose the names, on which the sample depends."""
    given = []

    def compute(sample, count):
        given.append(len(sample))
        return k_means(sample, count)

    monkeypatch.setattr(embedding_lists, "SAMPLE_OF_LIST", 1)
    monkeypatch.setattr(embedding_lists, "k_means", compute)
    monkeypatch.setitem(
        embedding_lists._QUERIES,
        "sample_signs",
        embedding_lists._QUERIES["sample_signs"].replace("%% %(stride)s", "* 0 * %(stride)s"),
    )
    world.fill(PUBLIC)
    world.embed()
    world.keep(PUBLIC)

    assert given == [2 * 8]


def test_a_list_of_many_equal_embeddings_costs_no_more_than_its_first_ones(world, monkeypatch):
    """Callers choose the texts, and may store the same one a million times."""
    world.fill(PUBLIC)
    world.embed()
    world.keep()
    world.service.host().erase_items(agent_id="alice", kind=ItemKind.MEMORY, name="dog-x1")
    given = []

    def compute(found):
        given.append(len(found))
        return center(found)

    monkeypatch.setattr(embedding_lists, "_MOST_OF_LIST", 2)
    monkeypatch.setattr(embedding_lists, "center", compute)
    world.keep(PUBLIC)

    assert max(given) == 2
    assert None not in [made for (made,) in world.lists(columns="signs::text")]


# What is erased.


def an_erasure_clears_the_centers(world):
    """Of the kind at the level, until they are computed from what is left."""
    world.fill(PUBLIC)
    world.fill(INTERNAL)
    world.embed()
    world.keep()
    before = world.lists(columns="signs::text")
    world.service.host().erase_items(agent_id="alice", kind=ItemKind.MEMORY, name="dog-x1")
    cleared = world.lists(columns="signs::text"), world.lists(INTERNAL, "signs::text")
    world.keep()

    assert cleared == ([(None,)] * 8, [(None,)] * 8)
    assert None not in [center for (center,) in world.lists(columns="signs::text")]
    assert world.lists(columns="signs::text") != before


def test_an_erasure_clears_the_centers(world):
    an_erasure_clears_the_centers(world)


def test_what_is_erased_at_one_level_of_every_agent_clears_no_center_at_another(world):
    world.fill(PUBLIC)
    world.embed()
    world.keep()
    before = world.lists(columns="number, version, signs")
    world.at(CONFIDENTIAL).save_memory(key="about", content="quartz", tags=["subject:ada"])

    world.service.host().erase_items(every_agent=True, kind=ItemKind.MEMORY, tag="subject:ada")

    assert keys(world.at(CONFIDENTIAL).list_memories(key_prefix="about")) == []
    assert world.lists(columns="number, version, signs") == before


@pytest.mark.parametrize("is_erased", [True, False], ids=["erased", "deleted"])
def test_an_embedding_loses_its_list_with_the_text_that_it_includes(world, is_erased):
    """A short turn of a thread is embedded together with the one before it."""
    session = world.at(PUBLIC)
    first, *_ = [
        session.store_passage(content=f"{theme} {number}", thread=theme).passage.passage_id
        for theme in THEMES
        for number in range(5)
    ]
    world.embed()
    world.keep(PUBLIC)
    assert world.unlisted() == []

    if is_erased:
        world.service.host().erase_items(agent_id="alice", kind=ItemKind.PASSAGE, name=first)
    else:
        session.delete_passage(passage_id=first)

    assert world.rows("SELECT prior, list FROM muniment_public.meaning WHERE embedder IS NULL") == [(None, None)]


def a_center_that_is_computed_during_an_erasure_is_not_stored(world):
    world.fill(PUBLIC)
    world.embed()
    compute = k_means

    def compute_and_erase(*arguments):
        found = compute(*arguments)
        world.service.host().erase_items(agent_id="alice", kind=ItemKind.MEMORY, name="dog-x1")
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(embedding_lists, "k_means", compute_and_erase)
        world.keep(PUBLIC)

    assert world.lists(columns="signs") == [(None,)] * 8


def test_a_center_that_is_computed_during_an_erasure_is_not_stored(world):
    a_center_that_is_computed_during_an_erasure_is_not_stored(world)


def a_purge_clears_the_centers(world):
    world.fill(PUBLIC)
    world.embed()
    world.keep()
    world.at(PUBLIC).delete_memory(key="dog-x1")
    with connect_operator(world.database.admin) as operator:
        what = purgeable(operator, tenant="acme", agent_id="alice", kind=None, name=None)
        with world.database.as_owner() as owner:
            (now,) = owner.execute("SELECT now() + interval '1 second' AS now").fetchone()
        list(remove_versions(operator, what, before=now))

    assert world.lists(columns="signs") == [(None,)] * 8


@contextmanager
def lists_made_during(world) -> Iterator[Callable[[], None]]:
    """Yields a function that starts making lists and returns once the centers are computed.

    They are stored when the block ends.
    """
    sampled, ended = threading.Event(), threading.Event()

    def compute_late(*arguments):
        found = k_means(*arguments)
        sampled.set()
        assert ended.wait(60)
        return found

    keeper = threading.Thread(target=world.keep, args=(PUBLIC,))

    def make():
        if keeper.ident is None:
            keeper.start()
            assert sampled.wait(60)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(embedding_lists, "k_means", compute_late)
        yield make
        ended.set()
        keeper.join()


def lists_that_are_made_during_an_erasure_keep_nothing_of_it(world, *, runs_again):
    """There was no center to clear, and the sample has what is not yet committed as erased.

    If the transaction of the erasure runs again, its first step would clear what this is about: it is left out then.
    """
    world.fill(PUBLIC)
    world.embed()
    execute = HostScope.execute
    with lists_made_during(world) as make, pytest.MonkeyPatch.context() as patched:
        steps = []

        def execute_and_make(scope, query, **parameters):
            if query == "unindex_erased":
                make()
            if query == "clear_centers" and "item_ids" in parameters and "unindex_erased" in steps:
                return
            steps.append(query)
            if query == "unindex_erased" and runs_again and steps.count(query) == 1:
                raise Conflict
            execute(scope, query, **parameters)

        patched.setattr(HostScope, "execute", execute_and_make)
        world.service.host().erase_items(agent_id="alice", kind=ItemKind.MEMORY, name="dog-x1")

    assert world.lists(columns="signs") == [(None,)] * 8


@pytest.mark.parametrize("runs_again", [False, True])
def test_lists_that_are_made_during_an_erasure_keep_nothing_of_it(world, runs_again):
    lists_that_are_made_during_an_erasure_keep_nothing_of_it(world, runs_again=runs_again)


@pytest.mark.proof
@pytest.mark.parametrize("runs_again", [False, True])
def test_that_the_centers_are_not_cleared_once_more_is_noticed(world, monkeypatch, runs_again):
    monkeypatch.setattr(erasing._Level, "clear_centers", lambda _: None)
    with pytest.raises(AssertionError):
        lists_that_are_made_during_an_erasure_keep_nothing_of_it(world, runs_again=runs_again)


def lists_that_are_made_during_a_purge_keep_nothing_of_it(world):
    world.fill(PUBLIC)
    world.embed()
    world.at(PUBLIC).delete_memory(key="dog-x1")
    one, purged = Operator.one, []
    with (
        lists_made_during(world) as make,
        pytest.MonkeyPatch.context() as patched,
        connect_operator(world.database.admin) as operator,
    ):

        def purge_and_make(self, query, *arguments, **parameters):
            found = one(self, query, *arguments, **parameters)
            if query == "purge":
                purged.append(found)
                if len(purged) == Label.PUBLIC.value:  # labels are purged in the order of their numbers
                    make()
            return found

        what = purgeable(operator, tenant="acme", agent_id="alice", kind=None, name=None)
        with world.database.as_owner() as owner:
            (now,) = owner.execute("SELECT now() + interval '1 second' AS now").fetchone()
        patched.setattr(Operator, "one", purge_and_make)
        list(remove_versions(operator, what, before=now))

    assert set(world.lists(columns="signs")) == {(None,)}


def test_lists_that_are_made_during_a_purge_keep_nothing_of_it(world):
    lists_that_are_made_during_a_purge_keep_nothing_of_it(world)


@pytest.mark.proof
def test_that_the_centers_are_not_cleared_once_more_after_a_purge_is_noticed(world, monkeypatch):
    execute = Operator.execute

    def execute_others(self, query, **parameters):
        if query != "clear_centers_of_purged":
            execute(self, query, **parameters)

    monkeypatch.setattr(Operator, "execute", execute_others)
    with pytest.raises(AssertionError):
        lists_that_are_made_during_a_purge_keep_nothing_of_it(world)


def test_a_purge_clears_the_centers(world):
    a_purge_clears_the_centers(world)


def test_an_agent_that_is_deleted_leaves_no_list(world):
    for level in LEVELS:
        world.fill(level)
    world.embed()
    world.keep()
    world.service.host().delete_agent(agent_id="alice")
    erase_all(world.database)

    assert [row for level in LEVELS for row in world.lists(level)] == []


def test_a_list_that_has_become_empty_goes_with_its_center(world):
    world.fill(PUBLIC)
    world.embed()
    world.keep()
    for number in range(5):
        world.at(PUBLIC).delete_memory(key=f"dog-x{number}")
    world.service.host().erase_items(agent_id="alice", kind=ItemKind.MEMORY, name="dog-x1")
    world.keep()

    assert len(world.lists()) < 8
    assert all(world.lists(columns="signs IS NOT NULL"))


def test_embeddings_from_before_there_were_lists_are_found(postgres, database):
    """After the migration that adds lists, they are in none until the embedder makes some."""
    name = "before_lists"
    with psycopg.connect(postgres.conninfo(user="postgres", dbname="postgres"), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
        admin.execute(f"GRANT ALL ON DATABASE {name} TO muniment_owner".encode())
    old = type(database)(postgres, name)
    with psycopg.connect(operator_conninfo(old.admin)) as owner:
        for step in migrate.migrations()[:23]:
            owner.execute(step.text.encode())
            owner.execute("INSERT INTO vault.migration (version, name) VALUES (%s, %s)", [step.version, step.name])
        owner.execute("RESET search_path")
        owner.execute("INSERT INTO vault.tenant (name) VALUES ('acme')")
        owner.execute(
            "INSERT INTO vault.agent (tenant, agent, agent_id, display_name, language, memory_enabled,"
            " user_profile_enabled, memory_char_limit, user_char_limit)"
            " SELECT tenant, 5, 'alice', '', '', true, true, 1, 1 FROM vault.tenant"
        )
        for table, columns, values in (
            ("item", "item_id, content", "gen_random_uuid(), 'a dog'"),
            (
                "chunk",
                "piece, is_whole, start, size, tier, tags, sample, language, stems, grams, stem_count, gram_count",
                "0, true, 0, 5, 1, '{}', 1, 'english', $$'@5:1'$$, $$'@5:1'$$, 1, 0",
            ),
            ("stat", "language, chunks, stems, grams", "'english', 1, 1, 0"),
            ("meaning", "piece, embedder, signs, vector", "0, 1, %(signs)s::bit(384), %(vector)s"),
        ):
            named, key = ("", "") if table == "stat" else ("name, ", "'k' || n, ")
            owner.execute(
                f"INSERT INTO muniment_public.{table} (tenant, agent, kind, {named}change_id, {columns})"
                f" SELECT tenant, 5, 1, {key}lpad(n::text, 32, '0')::uuid, {values}"
                "   FROM vault.tenant, generate_series(1, 30) AS n".encode(),
                {"signs": signs(quick("dog")), "vector": list(quick("dog"))},
            )

    schema.migrate(old.admin)

    with serving(old, embed=quick) as service:
        world = World(service)
        before, unlisted = world.found(PUBLIC, "hound"), world.unlisted()
        world.keep()

        assert len(before) == len(unlisted) == 30
        assert world.found(PUBLIC, "hound") == before
        assert world.unlisted() == []


# Centers.


def test_a_center_has_the_signs_that_most_have():
    assert center(["11000000" * 8, "10100000" * 8, "10000001" * 8]) == "10000000" * 8


def test_the_same_signs_have_the_same_centers_in_any_order():
    sample = [signs(quick(f"{theme} {number}")) for theme in THEMES for number in range(20)]

    assert k_means(sample, 8) == k_means(sample[::-1], 8)
    assert len(k_means(sample, 8)) == 8
    assert len(k_means(sample[:3], 8)) == 3


# Guards, broken.

_BROKEN: Mapping[str, tuple[Callable[[World], None], tuple[Patch, ...]]] = {
    "an erasure leaves the centers": (
        an_erasure_clears_the_centers,
        (
            edit(
                HOSTS, "clear_centers", "(cleared.embedder, cleared.number) = (locked.embedder, locked.number)", "FALSE"
            ),
        ),
    ),
    "a center is stored whatever was erased meanwhile": (
        a_center_that_is_computed_during_an_erasure_is_not_stored,
        (edit(embedding_lists._QUERIES, "set_centers", "USING (number, version)", "USING (number)"),),
    ),
    "lists of any agent are read": (
        test_an_agent_has_lists_of_its_own,
        (
            edit(
                ITEMS,
                "search_embeddings",
                " AND visible_embedding_list.agent = (SELECT session.agent FROM session)",
                "",
            ),
        ),
    ),
    "far lists are never read": (
        test_a_list_that_is_far_is_read_if_too_few_of_the_near_ones_pass,
        (edit(ITEMS, "search_embeddings", "EXISTS (SELECT FROM list WHERE NOT list.is_near)", "FALSE"),),
    ),
    "what has no list is not read": (
        test_an_embedding_without_a_list_is_always_read,
        (edit(ITEMS, "search_embeddings", "AND built_in.list IS NULL", "AND FALSE"),),
    ),
    "lists without a center are not read": (
        test_a_list_without_a_center_is_always_read,
        (edit(ITEMS, "search_embeddings", "list.signs IS NULL OR", ""),),
    ),
}


@pytest.mark.proof
@pytest.mark.parametrize("name", _BROKEN)
def test_a_guard_that_is_missing_is_noticed(request, name):
    noticed_by, patches = _BROKEN[name]
    with applied(Mutant(name, "", patches)):
        world = request.getfixturevalue("world")
        with pytest.raises(AssertionError):
            noticed_by(world)
