"""The seals of the audit log, what `muniment audit verify` finds with them, and what `muniment audit purge` removes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest

from muniment.cli.failures import Failure
from muniment_server.admin.audit import audit_checkpoints, checkpoint_of, remove_audit_events, verify_audit
from muniment_server.admin.connection import connect_operator
from muniment_server.admin.sealing import Checkpoint, Verified
from muniment_server.background.sealer import BEGINNING, Position, Raced, Sealer, last_seals, seal_tenant, tenants
from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.errors import Unavailable
from muniment_server.postgres import roles
from muniment_server.postgres.epochs import EpochGuard
from muniment_server.postgres.placement import ONLY, PlacedDatabase
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from tests.support.answers import CONFIDENTIAL, PUBLIC
from tests.support.clock import Clock
from tests.support.databases import Database, cloned
from tests.support.services import Service, serving

LATER = timedelta(days=400)


@dataclass(frozen=True)
class Log:
    """The audit log of the tenant acme."""

    service: Service

    @property
    def database(self) -> Database:
        return self.service.database

    def write(self, *, level: Classification | Label = CONFIDENTIAL, keys: Sequence[str] = ("a", "b", "c")) -> None:
        """Write memories, each with an event, which a read follows where reads are recorded."""
        session = self.service.session(level)
        for key in keys:
            session.save_memory(key=key, content="one")
            session.get_memory(key=key)

    def seal(self) -> None:
        """Seal what is not sealed, as the sealer does."""
        with self.database.connect(roles.AUDITOR) as auditor:
            for tenant in tenants(auditor):
                list(seal_tenant(auditor, tenant, BEGINNING))

    def checkpoints(self) -> list[Checkpoint]:
        with connect_operator(self.database.admin) as operator:
            return audit_checkpoints(operator, "acme")

    def verify(self, checkpoints: Sequence[Checkpoint] = ()) -> list[Verified]:
        with connect_operator(self.database.admin) as operator:
            return list(verify_audit(operator, "acme", checkpoints))

    def problems(self, checkpoints: Sequence[Checkpoint] = ()) -> list[str]:
        return [problem for found in self.verify(checkpoints) for problem in found.problems]

    def notes(self) -> list[str]:
        return [note for found in self.verify() for note in found.notes]

    def purge(self, *, before: datetime) -> int:
        with connect_operator(self.database.admin) as operator:
            return sum(removed.events for removed in remove_audit_events(operator, "acme", before=before))

    def tamper(self, statement: str) -> int:
        """Change the database as its superuser; return how many rows were changed."""
        with self.database.as_admin() as admin:
            return admin.execute(statement.encode()).rowcount


@pytest.fixture(scope="module")
def sealed(postgres) -> Iterator[Database]:
    """A sealed log: two seals of sessions and hosts at most levels, and of sessions of each trusted label."""
    with cloned(postgres) as database:
        with serving(database) as service:
            log = Log(service)
            for label in Label:
                log.write(level=label)
            log.seal()
            log.write(keys=("d", "e"))
            log.seal()
        yield database


@pytest.fixture
def log(postgres, sealed) -> Iterator[Log]:
    """Such a log of one test."""
    with cloned(postgres, sealed.name) as database, serving(database) as service:
        yield Log(service)


def test_what_was_sealed_is_verified(log):
    found = log.verify(log.checkpoints())

    assert [(one.classification, one.problems, one.notes) for one in found] == [(label, [], []) for label in Label]
    assert sum(one.unsealed for one in found) == 0
    counted = {one.classification: one.event_count for one in log.checkpoints()}
    assert {one.classification: one.events for one in found} == counted
    assert all(counted.values())


def test_every_event_is_sealed_once(log):
    with log.database.as_owner() as owner:
        events = owner.execute("SELECT by_host, event_id, chain FROM muniment_auditor.audit ORDER BY 1, 2").fetchall()
        sealed = owner.execute(
            "SELECT by_host, event_id, level FROM muniment_auditor.sealed_event ORDER BY 1, 2"
        ).fetchall()

    assert len(events) > 20
    assert sealed == events


def test_a_host_gets_the_checkpoint_that_an_operator_gets(log):
    host = log.service.host()
    seen = {
        label: host.get_audit_checkpoint(classification=label.level, integrity=label.integrity).checkpoint
        for label in Label
    }

    assert {label: (one.classification, one.integrity) for label, one in seen.items()} == {
        label: (label.level, label.integrity) for label in Label
    }
    assert {label: (one.seal_number, one.event_count, one.head_hash) for label, one in seen.items()} == {
        one.classification: (one.seal_number, one.event_count, one.head_hash) for one in log.checkpoints()
    }


def test_a_level_without_events_has_an_empty_checkpoint(database):
    with serving(database) as service:
        seen = service.host().get_audit_checkpoint(classification=PUBLIC).checkpoint

    assert (seen.classification, seen.seal_number, seen.event_count, seen.head_hash, seen.HasField("time")) == (
        PUBLIC, 0, 0, "", False
    )  # fmt: skip


CONFIDENTIAL_EVENT = (
    "(SELECT event_id FROM muniment_confidential.audit WHERE method = 'SaveMemory' ORDER BY time LIMIT 1)"
)
FIRST_SEAL = "level = 3 AND number = 1"
LAST_SEAL = "(level, number) = (SELECT 3, max(number) FROM muniment_auditor.seal WHERE level = 3)"
REMOVAL = """
INSERT INTO muniment_control.audit (tenant, event_id, level, method, outcome, reason)
SELECT 1, gen_random_uuid(), 4, 'audit purge', 'OK', 'seals of CONFIDENTIAL up to ' || number
       || ', hash {}, by postgres'
  FROM muniment_auditor.seal
 WHERE level = 3 AND number = 1
"""
EARLIER = "time = (time AT TIME ZONE 'UTC' - interval '{}') AT TIME ZONE 'UTC'"
"""In UTC, since a Citus cluster changes columns by immutable functions only."""
NEW_EVENT = """
INSERT INTO muniment_confidential.audit
       (tenant, agent, event_id, time, session_id, method, outcome, kind, item_id, revision)
SELECT tenant, agent, gen_random_uuid(), {}, session_id, method, outcome, kind, item_id, revision
  FROM muniment_confidential.audit
 LIMIT 1
"""
MOVE = """
WITH moved AS (DELETE FROM muniment_confidential.{0} WHERE {1} RETURNING *)
INSERT INTO muniment_public.{0} ({2}) SELECT {3} FROM moved
"""
ITEM = "tenant, agent, kind, name, item_id, revision, change_id, tier, content, tags, create_time, update_time"
SOME_EVENT = "(SELECT min(event_id::text)::uuid FROM muniment_public.audit)"
EVENT = "tenant, agent, event_id, time, session_id, method, outcome, kind, item_id, revision, result_count"
_TRUSTED = "_confidential_trusted."
TAMPERED = {
    "a field of an event": [
        f"UPDATE muniment_confidential.audit SET outcome = 'WRITE_LEVEL_MISMATCH' WHERE event_id = {CONFIDENTIAL_EVENT}"
    ],
    "the time of an event": [
        f"UPDATE muniment_confidential.audit SET {EARLIER.format('1 us')} WHERE event_id = {CONFIDENTIAL_EVENT}"
    ],
    "the reason that a host gave": [
        "UPDATE muniment_control.audit SET reason = 'none' WHERE event_id = (SELECT min(event_id::text)::uuid "
        "FROM muniment_control.audit WHERE level = 3)"
    ],
    "who acted": ["UPDATE muniment_confidential.audit SET session_id = event_id WHERE method = 'GetMemory'"],
    "an event removed": [f"DELETE FROM muniment_confidential.audit WHERE event_id = {CONFIDENTIAL_EVENT}"],
    "an event removed with what says that it was sealed": [
        f"DELETE FROM muniment_auditor.sealed_event WHERE event_id = {CONFIDENTIAL_EVENT}",
        f"DELETE FROM muniment_confidential.audit WHERE event_id = {CONFIDENTIAL_EVENT}",
    ],
    "an event added to a seal": [
        NEW_EVENT.format("now() - interval '30 days'"),
        "INSERT INTO muniment_auditor.sealed_event (tenant, level, number, by_host, event_id) "
        "SELECT tenant, 3, 1, false, event_id FROM muniment_confidential.audit ORDER BY time LIMIT 1",
    ],
    "an event moved to another level": [MOVE.format("audit", f"event_id = {CONFIDENTIAL_EVENT}", EVENT, EVENT)],
    "an item moved to another level": [MOVE.format("item", "name = 'd'", ITEM, ITEM)],
    "an item moved to another level with the event of another": [
        MOVE.format("item", "name = 'd'", ITEM, ITEM.replace("change_id", SOME_EVENT))
    ],
    "an event of an untrusted session moved to those of trusted ones": [
        MOVE.format("audit", f"event_id = {CONFIDENTIAL_EVENT}", EVENT, EVENT).replace("_public.", _TRUSTED)
    ],
    "an item that is said to be trusted": [MOVE.format("item", "name = 'd'", ITEM, ITEM).replace("_public.", _TRUSTED)],
    "an item that is said to be trusted with the event of another": [
        MOVE.format("item", "name = 'd'", ITEM, ITEM.replace("change_id", SOME_EVENT)).replace("_public.", _TRUSTED)
    ],
    "an item without an event": [
        f"INSERT INTO muniment_public.item ({ITEM}) SELECT tenant, agent, kind, 'x', gen_random_uuid(), 1, "
        "gen_random_uuid(), 1, content, tags, create_time, update_time FROM muniment_public.item WHERE name = 'a'"
    ],
    "the time of a seal": [f"UPDATE muniment_auditor.seal SET {EARLIER.format('2 years')} WHERE {FIRST_SEAL}"],
    "the count of a seal": [f"UPDATE muniment_auditor.seal SET event_count = event_count + 1 WHERE {LAST_SEAL}"],
    "the hash of a seal": [f"UPDATE muniment_auditor.seal SET hash = sha256(hash) WHERE {LAST_SEAL}"],
    "the hash of a seal's events": [f"UPDATE muniment_auditor.seal SET events_hash = sha256(hash) WHERE {FIRST_SEAL}"],
    "a seal in the middle removed": [
        f"DELETE FROM muniment_auditor.sealed_event WHERE {FIRST_SEAL}",
        f"DELETE FROM muniment_auditor.seal WHERE {FIRST_SEAL}",
    ],
    "a seal added at the end": [
        "INSERT INTO muniment_auditor.seal SELECT tenant, 3, 1000, time, by_host, event_count, events_hash, hash "
        "FROM muniment_auditor.seal WHERE level = 2 AND number = 1"
    ],
    "a removal that names another hash": [
        REMOVAL.format("'||repeat('0', 64)||'"),
        "DELETE FROM muniment_confidential.audit",
    ],
    "events of hosts removed as if purged": [
        REMOVAL.replace("{}", "' || encode(hash, 'hex') || '"),
        "DELETE FROM muniment_auditor.sealed_event WHERE level = 3 AND by_host",
    ],
    "some events of a seal removed as if purged": [
        REMOVAL.replace("{}", "' || encode(hash, 'hex') || '"),
        f"DELETE FROM muniment_confidential.audit WHERE event_id = {CONFIDENTIAL_EVENT}",
    ],
}


@pytest.mark.parametrize("statements", TAMPERED.values(), ids=TAMPERED)
def test_tampering_is_found(log, statements):
    changed = [log.tamper(statement) for statement in statements]

    assert all(changed)
    assert log.problems()


def test_an_event_that_is_missing_is_reported_as_missing_and_not_as_changed(log):
    log.tamper(f"DELETE FROM muniment_confidential.audit WHERE event_id = {CONFIDENTIAL_EVENT}")

    assert [
        " of which " in problem for problem in log.problems() if "under seal" in problem or "covers" in problem
    ] == [True]


def test_a_checkpoint_with_another_hash_or_count_is_found(log):
    kept = log.checkpoints()
    changed = [replace(kept[2], head_hash="0" * 64), replace(kept[2], event_count=kept[2].event_count + 1)]

    assert log.problems(kept) == []
    assert ["is not that of the checkpoint" in problem for problem in log.problems(changed)] == [True, True]


def test_a_removed_end_of_the_log_is_found_with_a_checkpoint(log):
    kept = log.checkpoints()
    last = f"SELECT event_id FROM muniment_auditor.sealed_event WHERE {LAST_SEAL}"
    for table in ("muniment_confidential.audit", "muniment_control.audit"):
        log.tamper(f"DELETE FROM {table} WHERE event_id IN ({last})")
    log.tamper("DELETE FROM muniment_confidential.item WHERE name IN ('d', 'e')")
    log.tamper("DELETE FROM muniment_confidential.revision WHERE name IN ('d', 'e')")
    for table in ("sealed_event", "seal"):
        log.tamper(f"DELETE FROM muniment_auditor.{table} WHERE {LAST_SEAL}")

    assert log.problems() == []
    assert any("the checkpoint names seal" in problem for problem in log.problems(kept))


def test_a_log_that_was_rewritten_and_sealed_anew_is_found_with_any_earlier_checkpoint(log):
    early = log.checkpoints()
    log.write(keys=("later",))
    log.seal()
    late = log.checkpoints()
    for statement in (
        "DELETE FROM muniment_auditor.sealed_event",
        "DELETE FROM muniment_auditor.seal",
        "UPDATE muniment_confidential.audit SET outcome = 'OK', result_count = 0 WHERE method = 'GetMemory'",
    ):
        log.tamper(statement)
    log.seal()

    assert log.problems() == []
    assert log.problems(early)
    assert log.problems(late)
    assert log.problems([*log.checkpoints(), *early])
    assert log.problems([*early, *log.checkpoints()])


def test_one_id_at_two_levels_stops_no_sealer_and_is_found(log):
    log.tamper(
        f"INSERT INTO muniment_public.audit ({EVENT}) SELECT {EVENT} FROM muniment_confidential.audit "
        f"WHERE event_id = {CONFIDENTIAL_EVENT}"
    )
    log.write(keys=("afterwards",))
    log.seal()
    Clock(log.database).advance(hours=1)
    log.write(level=PUBLIC, keys=("later",))
    log.seal()

    assert [(found.classification, found.unsealed, len(found.problems)) for found in log.verify()] == [
        (label, int(label is Label.PUBLIC), int(label is Label.PUBLIC)) for label in Label
    ]


def test_one_id_at_two_levels_stops_no_sealer_if_neither_was_sealed(log):
    """As it is sealed at one of them first, the other seal covers more events than exist."""
    log.write(keys=("afterwards",))
    log.tamper(
        f"INSERT INTO muniment_public.audit ({EVENT}) SELECT {EVENT} FROM muniment_confidential.audit "
        "WHERE method = 'SaveMemory' ORDER BY time DESC LIMIT 1"
    )
    log.seal()

    assert log.problems()


def test_events_of_an_open_transaction_are_sealed_later_and_delay_no_others(log):
    with log.database.as_owner() as owner, owner.transaction():
        owner.execute(NEW_EVENT.format("now()").encode())
        log.write(keys=("meanwhile",))
        log.seal()
        assert sum(found.unsealed for found in log.verify()) == 0
    assert sum(found.unsealed for found in log.verify()) == 1
    log.seal()

    assert sum(found.unsealed for found in log.verify()) == 0
    assert log.problems() == []


def test_events_that_no_server_has_sealed_yet_are_no_problem(log):
    """Such as that of an operator's command while no server runs."""
    log.write(keys=("unsealed",))
    Clock(log.database).advance(hours=1)

    assert log.problems() == []
    assert ["are not sealed since" in note for note in log.notes()] == [True]


def test_an_event_that_was_written_while_the_clock_was_back_is_no_problem_until_the_log_was_scanned_again(log):
    clock = Clock(log.database)
    clock.advance(days=-400)
    log.write(keys=("meanwhile",))
    clock.advance(days=400)
    log.write(keys=("afterwards",))
    _seal_what_is_new(log)

    assert log.problems() == []
    assert ["(a clock was set back, or they were added later)" in note for note in log.notes()] == [True]
    assert ["verify again after" in note for note in log.notes()] == [True]
    log.seal()
    assert sum(found.unsealed for found in log.verify()) == 0


def test_an_event_that_stays_unsealed_for_a_day_while_later_ones_are_sealed_is_a_problem(log):
    log.tamper(NEW_EVENT.format("now() - interval '1 hour'"))
    log.write(keys=("later",))
    _seal_what_is_new(log)
    assert log.problems() == []

    Clock(log.database).advance(hours=25)
    assert ["Events that were written later are sealed since" in problem for problem in log.problems()] == [True]


def test_a_seal_that_was_made_while_the_clock_was_back_says_nothing_of_how_long_others_wait(log):
    clock = Clock(log.database)
    clock.advance(days=-400)
    log.tamper(NEW_EVENT.format("now() - interval '500 days'"))
    log.write(keys=("meanwhile",))
    with log.database.connect(roles.AUDITOR) as auditor:
        (tenant,) = tenants(auditor)
        list(seal_tenant(auditor, tenant, Position(datetime.now(UTC) - timedelta(days=401), UUID(int=0))))
    clock.advance(days=400)

    assert log.problems() == []


def _seal_what_is_new(log: Log) -> None:
    """As a pass of the sealer does, between two scans of the whole log."""
    with log.database.connect(roles.AUDITOR) as auditor:
        (tenant,) = tenants(auditor)
        list(seal_tenant(auditor, tenant, Position(datetime.now(UTC) - timedelta(minutes=2), UUID(int=0))))


def test_many_events_of_one_transaction_are_sealed_in_batches(log):
    log.tamper(
        f"INSERT INTO muniment_confidential.audit ({EVENT}) SELECT tenant, agent, gen_random_uuid(), time, session_id, "
        "method, outcome, kind, item_id, revision, result_count FROM muniment_confidential.audit, "
        "generate_series(1, 12000) WHERE event_id = " + CONFIDENTIAL_EVENT
    )
    log.seal()

    assert log.problems() == []
    assert {one.classification for one in log.verify() if one.events > 12000} == {Label.CONFIDENTIAL}
    with log.database.as_owner() as owner:
        (largest,) = owner.execute(
            "SELECT max(count) FROM (SELECT count(*) FROM muniment_auditor.sealed_event GROUP BY level, number) AS one"
        ).fetchone()
    assert largest in (4999, 5000)  # the event that was copied is sealed already, and may be among the second 5,000


def test_sealers_that_race_seal_each_event_once(log):
    """One of two that have read the same events finds the number taken, and seals nothing of its batch."""
    log.write(keys=("f", "g"))
    with ThreadPoolExecutor(4) as threads:
        races = [threads.submit(log.seal) for _ in range(16)]
    failed = [race.exception() for race in races if race.exception()]
    log.seal()

    assert all(isinstance(error, Raced) for error in failed)
    assert log.problems(log.checkpoints()) == []
    assert sum(found.unsealed for found in log.verify()) == 0


def test_a_sealer_that_finds_its_number_taken_seals_nothing(log, monkeypatch):
    """Another sealer adds a seal after it has read which is the last one."""

    def overtaken(connection, tenant):
        last = last_seals(connection, tenant)
        monkeypatch.undo()
        log.write(keys=("f",))
        log.seal()
        log.write(keys=("g",))
        return last

    monkeypatch.setattr("muniment_server.background.sealer.last_seals", overtaken)
    with pytest.raises(Raced):
        log.seal()


def test_late_seals_are_noted(log):
    log.tamper(NEW_EVENT.format("now() - interval '1 hour'"))
    Clock(log.database).advance(days=2)
    log.seal()

    assert log.problems() == []
    assert any("events that were sealed more than a day after their time: 1" in note for note in log.notes())


@pytest.mark.parametrize(
    ("time", "note"),
    [
        ("now() - interval '20 years'", "events that are more than a day older than the first seal: 1"),
        ("now() + interval '30 days'", "events that were sealed before their time: 1"),
    ],
)
def test_times_that_no_server_wrote_are_noted(log, time, note):
    assert log.notes() == []
    log.tamper(NEW_EVENT.format(time))
    log.seal()

    assert log.problems() == []
    assert [note in found for found in log.notes()] == [True]


def test_purged_events_are_gone_and_the_rest_is_verified(log):
    kept = log.checkpoints()
    Clock(log.database).advance(days=500)
    log.write(keys=("new",))
    log.seal()
    removed = log.purge(before=datetime.now(UTC) + LATER)
    log.seal()

    found = log.verify(kept)
    assert removed == sum(one.removed for one in found) > 10
    assert [one.problems for one in found] == [[]] * 8
    assert all("were removed" in one.notes[0] for one in found)
    with log.database.as_owner() as owner:
        left = owner.execute("SELECT DISTINCT method FROM muniment_confidential.audit").fetchall()
        hosts = owner.execute("SELECT count(*) FROM muniment_control.audit WHERE method = 'OpenSession'").fetchone()
    assert sorted(left) == [("GetMemory",), ("SaveMemory",)]
    assert hosts == (10,)


def test_a_purge_removes_nothing_that_is_not_sealed_or_too_new(log):
    log.write(keys=("unsealed",))

    assert log.purge(before=datetime.now(UTC) - timedelta(days=1)) == 0
    assert log.purge(before=datetime.now(UTC) + LATER) > 0
    with log.database.as_owner() as owner:
        left = owner.execute("SELECT count(*) FROM muniment_confidential.audit").fetchone()
    assert left == (2,)


def test_an_item_that_moves_after_a_purge_is_found_while_its_event_is_there(log):
    """The events of CONFIDENTIAL are gone, so of old items there nothing can be said; those of PUBLIC are not."""
    log.purge(before=datetime.now(UTC) + LATER)
    log.write(level=PUBLIC, keys=("x",))
    log.tamper(
        f"INSERT INTO muniment_confidential.item ({ITEM}) SELECT {ITEM} FROM muniment_public.item WHERE name = 'x'"
    )

    assert [problem for problem in log.problems() if "of another level or item" in problem]


def test_a_purge_that_says_more_than_it_was_is_found(log):
    log.purge(before=datetime.now(UTC) + LATER)
    log.seal()
    log.tamper(
        "UPDATE muniment_control.audit SET reason = regexp_replace(reason, 'up to [0-9]+', 'up to 1') "
        "WHERE method = 'audit purge' AND reason LIKE 'seals of CONFIDENTIAL up%'"
    )

    assert log.problems()


def test_a_purge_that_names_another_hash_is_found(log):
    log.purge(before=datetime.now(UTC) + LATER)
    log.tamper(
        "UPDATE muniment_control.audit "
        "SET reason = regexp_replace(reason, 'hash [0-9a-f]+', 'hash ' || repeat('0', 64)) "
        "WHERE method = 'audit purge' AND reason LIKE 'seals of CONFIDENTIAL up%'"
    )

    assert ["the purge of" in problem for problem in log.problems()] == [True]


@pytest.mark.parametrize(
    "right", ["UPDATE muniment_auditor.seal SET time = now()", "DELETE FROM muniment_auditor.seal"]
)
@pytest.mark.parametrize("role", roles.SERVING)
def test_no_role_changes_a_seal(log, role, right):
    with log.database.connect(role) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(right)


def test_positions_lead_through_the_log(log):
    """Each batch begins after the one before: an interrupted pass goes on from there."""
    log.write(keys=("h",))
    with log.database.connect(roles.AUDITOR) as auditor:
        (tenant,) = tenants(auditor)
        positions: list[Position] = list(seal_tenant(auditor, tenant, BEGINNING))
        assert list(seal_tenant(auditor, tenant, positions[-1])) == []


def sealer(database: Database) -> Sealer:
    """A sealer as a worker has it."""
    pools = RoleDatabase(database.conninfo, pool_sizes=SINGLE, epochs=EpochGuard(None))
    return Sealer(PlacedDatabase(ONLY, pools), lambda: True)


def test_an_event_of_the_future_delays_no_other(log):
    own = sealer(log.database)
    log.tamper(NEW_EVENT.format("now() + interval '30 days'"))
    Clock(log.database).advance(minutes=1)
    own.seal_all()
    log.write(keys=("afterwards",))
    Clock(log.database).advance(minutes=2)
    own.seal_all()

    assert sum(found.unsealed for found in log.verify()) == 0


def test_an_event_of_the_past_is_sealed_by_the_rescan(log):
    own = sealer(log.database)
    Clock(log.database).advance(minutes=1)
    log.tamper(NEW_EVENT.format("now() - interval '20 years'"))
    own.seal_all()

    assert sum(found.unsealed for found in log.verify()) == 0


def test_an_event_that_becomes_visible_after_a_younger_one_is_sealed_by_the_next_pass(log):
    """The rescan is over, and the next one is due in ten minutes only."""
    own = sealer(log.database)
    Clock(log.database).advance(minutes=1)
    own.seal_all()
    log.tamper(NEW_EVENT.format("now() - interval '1 minute'"))
    Clock(log.database).advance(minutes=2)
    own.seal_all()

    assert sum(found.unsealed for found in log.verify()) == 0


def _warnings_of_a_sealer(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "muniment.sealer"]


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_sealer_whose_connections_are_closed_warns_unless_it_was_ended(log, caplog, has_ended):
    own = sealer(log.database)
    own.seal_all()
    if has_ended:
        own.end()
    own._database.close()
    own.seal_all()

    assert _warnings_of_a_sealer(caplog) == (
        [] if has_ended else ["the audit log was not sealed, and will be later: Unavailable"]
    )


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_sealer_that_fails_in_the_log_of_a_tenant_warns_unless_it_was_ended(log, caplog, monkeypatch, has_ended):
    own = sealer(log.database)

    def close(*_: object) -> bool:
        if has_ended:
            own.end()
        raise Unavailable

    monkeypatch.setattr(own, "_pass", close)
    own.seal_all()

    assert _warnings_of_a_sealer(caplog) == (
        [] if has_ended else ["the audit log of a tenant was not sealed, and will be later: Unavailable"]
    )


@pytest.mark.parametrize("time", ["'infinity'", "'-infinity'", "'0001-01-01'"])
def test_a_time_that_no_client_can_read_is_refused(log, time):
    with pytest.raises(psycopg.errors.CheckViolation):
        log.tamper(f"UPDATE muniment_confidential.audit SET time = {time} WHERE event_id = {CONFIDENTIAL_EVENT}")


def test_a_host_with_a_lower_ceiling_does_not_learn_of_a_purge(log):
    log.purge(before=datetime.now(UTC) + LATER)

    seen = log.service.host(ceiling=Classification.CONFIDENTIAL).list_audit_events(page_size=250).audit_events
    assert [event for event in seen if event.method == "audit purge"] == []


def test_a_purge_keeps_what_was_sealed_while_the_clock_was_behind(log):
    Clock(log.database).advance(days=-500)
    log.write(keys=("behind",))
    log.seal()

    assert log.purge(before=datetime.now(UTC) - LATER) == 0


@pytest.mark.parametrize(
    "line",
    [
        '{"classification": "CONFIDENTIAL", "seal_number": 2, "event_count": 5, "head_hash": "AB"}',
        '{"classification": "CLASSIFICATION_CONFIDENTIAL", "sealNumber": "2", "eventCount": "5", "headHash": "ab"}',
        '{"classification": 3, "seal_number": 2, "event_count": 5, "head_hash": "ab", "time": "2026-11-24T00:00:00Z"}',
    ],
    ids=["the command's", "protobuf's", "a number"],
)
def test_a_kept_checkpoint_is_read_as_hosts_and_operators_have_it(line):
    assert checkpoint_of(line, "acme") == Checkpoint(Label.CONFIDENTIAL, 2, 5, "ab")


@pytest.mark.parametrize(
    "line", ["", "[]", "{}", "7", '{"classification": "SECRET"}', '{"classification": 3, "time": 1}']
)
def test_what_is_no_checkpoint_is_refused(line):
    with pytest.raises(Failure, match="not a checkpoint"):
        checkpoint_of(line, "acme")


def test_a_checkpoint_of_another_tenant_is_left_out():
    assert checkpoint_of('{"tenant": "globex", "classification": 1, "seal_number": 2}', "acme") is None
