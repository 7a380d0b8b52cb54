"""What the embedder does while embeddings cannot be stored: all other levels, agents and tenants go on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from muniment_server.domain.classification import Label
from muniment_server.domain.errors import Unavailable
from muniment_server.embedder import main as embedder
from muniment_server.embedder.main import EmbeddingSchedule, embed_queued_chunks
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.placement import Databases, Placement
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.process.stop_signal import StopSignal
from muniment_server.telemetry import embedder_metrics as metrics
from muniment_server.telemetry.repeats import Repeats, log_and_count, sum_up
from tests.support.answers import INTERNAL, PUBLIC
from tests.support.databases import Database
from tests.support.embedders import quick
from tests.support.failures import embeddings_refused
from tests.support.services import Service, serving


@pytest.fixture
def service(database: Database) -> Iterator[Service]:
    with serving(database, embed=quick) as service:
        yield service


@pytest.fixture
def embed(database: Database) -> Iterator[Callable[[], None]]:
    """Embed until there is nothing to do now."""
    with closing(RoleDatabase(database.conninfo, pool_sizes=SINGLE)) as roles:
        schedule = EmbeddingSchedule(Databases.of_one(roles), quick)
        yield lambda: embed_queued_chunks(schedule, Disk(None), StopSignal())


def embedded(database: Database, label=Label.PUBLIC) -> list[str]:
    with database.as_owner() as owner:
        found = owner.execute(f"SELECT name FROM {label.role}.meaning WHERE embedder IS NOT NULL ORDER BY name")
        return [name for (name,) in found]


@pytest.mark.parametrize("sqlstate", ["55P03", "40P01", "57014", "25006", "22012"])
def test_a_failed_statement_pauses_its_own_level_alone(service, database, embed, sqlstate):
    """A lock timeout, a deadlock, a statement timeout, a failover, and an error that nothing foresees."""
    for label in Label:
        service.session(label).save_memory(key="plan", content=f"{label.name}")
    with embeddings_refused(database, sqlstate, level=INTERNAL):
        embed()

    assert [label for label in Label if not embedded(database, label)] == [Label.INTERNAL]


def test_a_chunk_for_which_the_model_fails_twice_does_not_hold_up_the_others(service, database, caplog):
    """Nothing of its text is logged."""
    session, tried = service.session(PUBLIC), []
    for key, content in {"fails": "secret", "fails once": "twice lucky", "whale": "a blue whale"}.items():
        session.save_memory(key=key, content=content)

    def embed(text):
        tried.append(text)
        if "secret" in text or ("lucky" in text and tried.count(text) == 1):
            raise RuntimeError(f"cannot embed {text}")
        return quick(text)

    before = metrics.EMBEDDING_FAILURES._value.get()
    with closing(RoleDatabase(database.conninfo, pool_sizes=SINGLE)) as roles:
        embed_queued_chunks(EmbeddingSchedule(Databases.of_one(roles), embed), Disk(None), StopSignal())

    assert embedded(database) == ["fails", "fails once", "whale"]
    assert metrics.EMBEDDING_FAILURES._value.get() - before == 1
    assert len(caplog.messages) == 1
    assert "secret" not in caplog.text
    assert len(tried) == 5


@pytest.mark.parametrize("behind", [("acme", "bob"), ("other", "alice")])
def test_whoever_comes_after_an_agent_that_cannot_be_stored_has_its_turn(service, database, embed, monkeypatch, behind):
    monkeypatch.setattr(embedder._Pause, "first", 0.0)
    tenant, agent_id = behind
    service.session(PUBLIC).save_memory(key="failing", content="text")
    service.session(PUBLIC, agent_id=agent_id, tenant=tenant).save_memory(key="behind", content="text")
    with embeddings_refused(database, "22012", name="failing"):
        embed()
        embed()
        while_refused = embedded(database)
    embed()

    assert while_refused == ["behind"]
    assert embedded(database) == ["behind", "failing"]


class Failing:
    """A database of which each connection fails."""

    def __init__(self, sqlstate: str) -> None:
        self.attempts = 0
        self._error = Unavailable()
        self._error.cause = sqlstate

    def connection(self, *_):
        self.attempts += 1
        raise self._error


def schedule_of(**servers):
    return EmbeddingSchedule(Databases(Placement(dict.fromkeys(servers, "")), servers), quick)


def test_a_server_that_is_away_is_not_asked_once_for_each_level():
    """Each attempt takes seconds, during which nothing is embedded for the other servers."""
    away, stopping, failing = Failing("none"), Failing("57P01"), Failing("55P03")
    schedule = schedule_of(away=away, stopping=stopping, failing=failing)
    schedule.embed_next_batch()
    schedule.embed_next_batch()

    assert (away.attempts, stopping.attempts, failing.attempts) == (1, 1, len(Label))


def test_an_only_server_that_is_away_is_asked_again_at_once():
    away = Failing("none")
    schedule = schedule_of(away=away)
    for _ in range(2):
        embed_queued_chunks(schedule, Disk(None), StopSignal())

    assert away.attempts == 2


def test_repeated_warnings_are_summed_up(caplog):
    now = [0.0]
    schedule = schedule_of(away=Failing("none"))
    schedule._repeats = Repeats(clock=lambda: now[0], seconds=60)
    for _ in range(100):
        now[0] += 1
        embed_queued_chunks(schedule, Disk(None), StopSignal())

    assert caplog.messages == [
        "chunks of away stay queued: Unavailable",
        "59 more times in 60 s: chunks of away stay queued: Unavailable",
    ]


def test_each_period_of_a_lasting_failure_has_one_line_and_the_end_of_it_none(caplog):
    now, log = [0.0], logging.getLogger("test")
    repeats = Repeats(clock=lambda: now[0], seconds=10)
    for second in range(60):
        now[0] = float(second)
        sum_up(log, repeats)
        if second < 25:
            log_and_count(log, repeats, logging.ERROR, "away")

    assert caplog.messages == [
        "away", "9 more times in 10 s: away", "10 more times in 10 s: away", "5 more times in 10 s: away",
    ]  # fmt: skip
    assert {record.levelname for record in caplog.records} == {"ERROR"}
