"""What search finds is kept in step with what is there: after upgrades, purges, races; and whatever is not is found."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.inspection import broken_index
from muniment_server.admin.purge import Purgeable, remove_versions
from muniment_server.domain.classification import Classification, Label
from muniment_server.postgres import migrate, pool
from muniment_server.postgres.pool import operator_conninfo
from muniment_server.runtime import schema
from muniment_server.search import index
from muniment_server.search import reindex as reindexing
from muniment_server.search.reindex import Reindexed, reindex
from tests.support.clock import Clock
from tests.support.services import serving

PUBLIC, INTERNAL = Classification.PUBLIC, Classification.INTERNAL

LOSSES = [
    "DELETE FROM muniment_public.chunk",
    "DELETE FROM muniment_public.stat",
    "DELETE FROM muniment_public.meaning",
    "UPDATE muniment_public.meaning SET prior = md5(change_id::text)::uuid",
    "UPDATE muniment_public.item SET change_id = md5(change_id::text)::uuid",
    "UPDATE muniment_public.stat SET stems = stems + 1",
    "UPDATE muniment_public.item SET delete_time = now() WHERE kind = 1",
]


def filled(service):
    session = service.session(PUBLIC)
    session.save_memory(key="plan", content="a whale")
    session.add_note(content="a whale")
    session.store_passage(content="a whale " * 500, author="Ahab")
    service.session(INTERNAL).save_memory(key="plan", content="another whale")
    return session


def broken(database):
    with connect_operator(database.admin) as operator:
        return sum(broken_index(operator).values())


@pytest.mark.parametrize("loss", LOSSES)
def test_an_inconsistent_index_is_found_and_rebuilt(service, loss):
    session = filled(service)
    before = session.search_passages(query="whale ahab").SerializeToString(deterministic=True)
    assert broken(service.database) == 0
    with service.database.as_admin() as admin:
        admin.execute(loss.encode())
    assert broken(service.database) > 0

    with connect_operator(service.database.admin) as operator:
        list(reindex(operator.connection))

    assert broken(service.database) == 0
    assert session.search_passages(query="whale ahab").SerializeToString(deterministic=True) == before
    with service.database.as_owner() as owner:
        assert owner.execute("SELECT FROM vault.session WHERE expire_time = 'infinity'").fetchall() == []


def test_long_texts_are_indexed_again_in_small_statements(service, monkeypatch):
    """Their grams may take longer than a connection may be idle in a transaction, which is 5 s otherwise."""
    session = service.session(PUBLIC)
    for number in range(5):
        session.store_passage(content=f"a whale {number} " + "of words " * 10_000)
    sizes: list[int] = []
    index_statement = index.index_statement

    def counted(kind, entries):
        if not sizes:
            time.sleep(0.6)
        sizes.append(len(entries))
        return index_statement(kind, entries)

    monkeypatch.setattr(index, "index_statement", counted)
    monkeypatch.setattr(reindexing, "_BATCH_BYTES", 150_000)
    monkeypatch.setattr(pool, "SETTINGS", {**pool.SETTINGS, "idle_in_transaction_session_timeout": "500ms"})
    with connect_operator(service.database.admin) as operator:
        done = list(reindex(operator.connection))

    assert [each.items for each in done if each.classification is Label.PUBLIC] == [5]
    assert sizes == [2, 2, 1]
    assert broken(service.database) == 0


def test_an_agent_that_is_deleted_meanwhile_has_nothing_to_index(service):
    agents = {"alice", "bob"}
    for agent_id in agents:
        service.session(PUBLIC, agent_id=agent_id).save_memory(key="plan", content="a whale")

    with connect_operator(service.database.admin) as operator:
        reindexed = reindex(operator.connection)
        first = next(each for each in reindexed if each.classification is Label.PUBLIC)
        (other,) = agents - {first.agent_id}
        service.host().delete_agent(agent_id=other)
        rest = list(reindexed)

    assert first == Reindexed(Label.PUBLIC, first.agent_id, 1)
    assert [each.items for each in rest if each.agent_id == other] == [0] * 8


def test_purge_removes_expired_items_from_the_index(database):
    clock = Clock(database)
    with serving(database) as service:
        session = service.session(PUBLIC)
        session.save_memory(key="k", content="whale", expire_time=datetime.now(UTC) + timedelta(seconds=60))
        session.save_memory(key="kept", content="whale")
        clock.advance(seconds=120)
        found = session.search_memories(query="whale").results

    with connect_operator(database.admin) as operator:
        list(remove_versions(operator, Purgeable(), before=datetime.now(UTC) + timedelta(seconds=100)))

    assert [result.memory.key for result in found] == ["kept"]
    assert broken(database) == 0
    with database.as_owner() as owner:
        assert [row.name for row in owner.execute("SELECT name FROM muniment_public.chunk").fetchall()] == ["kept"]


def test_an_upgrade_indexes_existing_items(postgres, database):
    """From the schema before search: migrate once more, and everything is found."""
    name = "before_search"
    with psycopg.connect(postgres.conninfo(user="postgres", dbname="postgres"), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
        admin.execute(f"GRANT ALL ON DATABASE {name} TO muniment_owner".encode())
    old = type(database)(postgres, name)
    with psycopg.connect(operator_conninfo(old.admin)) as owner:
        for step in migrate.migrations()[:4]:
            owner.execute(step.text.encode())
            owner.execute("INSERT INTO vault.migration (version, name) VALUES (%s, %s)", [step.version, step.name])
        owner.execute("RESET search_path")
        owner.execute("INSERT INTO vault.tenant (name) VALUES ('acme')")
        owner.execute(
            "INSERT INTO vault.agent (tenant, agent, agent_id, display_name, language, memory_enabled,"
            " user_profile_enabled, memory_char_limit, user_char_limit)"
            " SELECT tenant, 5, 'alice', '', '', true, true, 1, 1 FROM vault.tenant"
        )
        owner.execute(
            "INSERT INTO muniment_public.item (tenant, agent, kind, name, item_id, change_id, content)"
            " SELECT tenant, 5, 1, 'k' || n, gen_random_uuid(), gen_random_uuid(), 'a whale ' || n"
            "   FROM vault.tenant, generate_series(1, 450) AS n"
        )

    done = schema.migrate(old.admin)

    assert done[-1] == "indexed 450 items for search"
    assert schema.migrate(old.admin) == []
    assert broken(old) == 0
    with serving(old) as service:
        assert len(service.session(PUBLIC).search_memories(query="whale", max_results=100).results) == 100
