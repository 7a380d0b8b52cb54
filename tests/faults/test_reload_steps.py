"""The parts of a reload: one after the other, with the schema first, across versions."""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest

from muniment_server.postgres import migrate
from muniment_server.process.assignment import Assignment
from muniment_server.runtime import child, reload
from muniment_server.runtime.child import Child, ChildFailed, drain
from muniment_server.runtime.configuration import DatabaseConfig, ServerConfig
from muniment_server.runtime.reload import ReloadFailed, Reloads, SchemaUpgrade, Steps
from tests.faults.processes import runs
from tests.support.databases import Database, other_database

_POPEN = subprocess.Popen
_ASSIGNMENT = Assignment(
    conninfo="dbname=muniment", listen="127.0.0.1:50051", threads=4, max_in_flight=512, connections=80,
    worker_connections={"muniment_public": 7}, application_name="muniment/80", drain_seconds=20.0, development=False,
    audit_reads_from=3, tls=None, epochs="/state", embedder=None,
)  # fmt: skip
_OF_TWO_SERVERS = replace(_ASSIGNMENT, servers={"a": "host=a", "b": "host=b"}, tenants={"7": "b"})


def test_a_reload_requested_while_one_runs_follows_it():
    started: list[int] = []

    def steps() -> Steps:
        started.append(len(started))
        yield

    reloads = Reloads()
    reloads.resume(steps)
    assert started == []
    reloads.request()
    reloads.resume(steps)
    for _ in range(3):
        reloads.request()
    for _ in range(10):
        reloads.resume(steps)
    assert started == [0, 1]


@pytest.mark.parametrize("failure", [ReloadFailed, ChildFailed, FileNotFoundError])
def test_a_reload_that_fails_ends(failure: type[Exception], caplog):
    def fail() -> Steps:
        yield
        raise failure("the reason")

    reloads = Reloads()
    reloads.request()
    for _ in range(3):
        reloads.resume(fail)
    assert [record.getMessage() for record in caplog.records] == [
        "the reload failed; processes that were not replaced go on: the reason"
    ]


def test_a_reload_that_is_stopped_ends_its_migration(database: Database):
    reloads, upgrade = Reloads(), SchemaUpgrade(database.admin, migrate.newest_version())
    reloads.request()
    made: list[subprocess.Popen[str]] = []

    def start(*args: Any, **options: Any) -> subprocess.Popen[str]:
        made.append(_POPEN(*args, **options))
        return made[0]

    with patch.object(subprocess, "Popen", start):
        reloads.resume(upgrade.run)
    assert made[0].poll() is None
    reloads.stop()

    assert made[0].returncode == -signal.SIGTERM


def test_a_new_worker_that_hangs_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(reload, "_START_SECONDS", 0.0)
    config = ServerConfig(DatabaseConfig(tmp_path), workers=1)
    workers = [Child("worker", config)]
    with pytest.raises(ChildFailed, match="in time"):
        list(reload.replace_workers(workers, config, _ASSIGNMENT))

    assert len(workers) == 1
    drain(workers)


def test_a_worker_that_hangs_instead_of_leaving_is_killed(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(child, "_LEAVE_SECONDS", 0.2)
    workers = [Child("worker", ServerConfig(DatabaseConfig(tmp_path), workers=1))]
    pid = workers[0]._process.pid
    os.kill(pid, signal.SIGSTOP)
    workers[0].leave()
    for _ in reload._until_fewer(list(workers), 1, workers):
        time.sleep(0.05)

    assert workers == []
    assert not runs(pid)
    assert [record.getMessage() for record in caplog.records] == ["worker did not end in time: killing it"]


def test_an_embedder_that_hangs_is_killed_when_it_is_replaced(tmp_path, monkeypatch):
    """Its place stayed taken, no other reload could begin, and searches used words alone."""
    monkeypatch.setattr(child, "_KILL_AFTER_DRAIN", 0.2)
    monkeypatch.setattr(Child, "is_ready", lambda _: True)
    config = ServerConfig(DatabaseConfig(tmp_path), drain_seconds=0.0)
    embedders = [Child("worker", config)]
    hanging = embedders[0]
    os.kill(hanging._process.pid, signal.SIGSTOP)
    end = time.monotonic() + 20
    for _ in reload.replace_embedder(embedders, config, _ASSIGNMENT):
        assert time.monotonic() < end
        time.sleep(0.05)

    assert hanging.has_ended
    assert len(embedders) == 1
    drain(embedders)


def test_workers_that_left_are_gone_when_a_reload_fails(tmp_path, monkeypatch):
    """The next one would have replaced them again, by a worker too many each time."""
    config = ServerConfig(DatabaseConfig(tmp_path), workers=8, drain_seconds=0.0)
    workers: list[Any] = [Mock(has_ended=False, starts=1) for _ in range(8)]
    made = [Mock(has_ended=False), Mock(has_ended=False, **{"is_ready.side_effect": ChildFailed("the reason")})]
    monkeypatch.setattr(reload, "Child", Mock(side_effect=made))
    first = workers[0]
    steps = reload.replace_workers(workers, config, _ASSIGNMENT)
    next(steps)
    assert first.leave.called
    first.has_ended = True
    with pytest.raises(ChildFailed):
        list(steps)

    assert first not in workers
    assert len(workers) == 8


def test_a_worker_that_was_restarted_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    """At a Unix socket, it took the path from the new one, was asked to leave, and no caller could connect any more."""
    config = ServerConfig(DatabaseConfig(tmp_path), workers=1, drain_seconds=0.0)
    new, old = Mock(**{"is_ready.side_effect": [False, True]}), Mock(starts=1)
    workers: list[Any] = [old]
    monkeypatch.setattr(reload, "Child", Mock(return_value=new))
    steps = reload.replace_workers(workers, config, _ASSIGNMENT)
    next(steps)
    assert workers == [old, new]
    old.starts = 2
    list(steps)

    assert workers == [old]
    assert new.kill.called
    assert not old.leave.called


def test_workers_that_grow_are_replaced_one_at_a_time_and_one_a_minute(tmp_path, monkeypatch):
    """Also if the one that is started in its place fails."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    started = Mock(return_value=Mock(**{"is_ready.side_effect": ChildFailed("why")}))
    monkeypatch.setattr(reload, "Child", started)
    config, reloads, workers = ServerConfig(DatabaseConfig(tmp_path)), Reloads(), [_grown(), _grown()]
    begun: list[int] = []
    for _ in range(130):
        reloads.replace_grown(workers, config, _ASSIGNMENT)
        reloads.resume(Mock())
        begun.append(started.call_count)
        now[0] += 1.0

    assert [begun.count(number) for number in (1, 2, 3)] == [60, 60, 10]
    assert not any(worker.leave.called for worker in workers)


def _grown() -> Any:
    return Mock(has_grown=True, mebibytes=600, starts=1)


@pytest.mark.parametrize("replace_children", [reload.replace_workers, reload.replace_embedder])
def test_a_process_that_is_restarted_during_a_reload_uses_the_reloaded_servers(replace_children, tmp_path, monkeypatch):
    """Otherwise it would use the old ones, also after later crashes, and hosts of a moved tenant would get
    UNAUTHENTICATED.
    """
    with _echoing(tmp_path, monkeypatch) as old:
        monkeypatch.setattr(reload, "Child", Mock(return_value=Mock(**{"is_ready.return_value": False})))
        steps = replace_children([old], ServerConfig(DatabaseConfig(tmp_path)), _OF_TWO_SERVERS)
        next(steps)
        assert _dies_and_is_restarted_with(old) == _OF_TWO_SERVERS
        list(steps)

        assert _dies_and_is_restarted_with(old) == _OF_TWO_SERVERS


def test_a_process_that_a_failed_reload_leaves_is_restarted_with_the_servers_of_before(tmp_path, monkeypatch):
    with _echoing(tmp_path, monkeypatch) as old:
        monkeypatch.setattr(reload, "Child", Mock(return_value=Mock(**{"is_ready.side_effect": ChildFailed("why")})))
        with pytest.raises(ChildFailed):
            list(reload.replace_workers([old], ServerConfig(DatabaseConfig(tmp_path)), _OF_TWO_SERVERS))

        assert _dies_and_is_restarted_with(old) == _ASSIGNMENT


@contextmanager
def _echoing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Child]:
    """A process with an assignment. Its output is what it is sent."""

    def start(*_: object, **__: object) -> subprocess.Popen[str]:
        return _POPEN(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    monkeypatch.setattr(child, "_start_process", start)
    made = Child("worker", ServerConfig(DatabaseConfig(folder), drain_seconds=0.0))
    made.assign(_ASSIGNMENT)
    try:
        yield made
    finally:
        made.kill()


def test_a_process_that_is_silent_at_many_looks_is_replaced(tmp_path, monkeypatch, caplog):
    """Looks are counted, not seconds: while a machine is suspended, nothing looks."""
    monkeypatch.setattr(child, "_START_LOOKS", 0)
    monkeypatch.setattr(time, "monotonic", Mock(side_effect=itertools.count(step=3600.0)))
    with _echoing(tmp_path, monkeypatch) as silent:
        for _ in range(child._HANGING_LOOKS - 1):
            silent.keep_alive()
            silent._read_output()
        before_the_last_look = silent.hangs, silent.has_ended
        with silent._process:
            while silent.starts == 1:
                silent.keep_alive()

    assert before_the_last_look == (True, False)
    first, *_, last = [record.getMessage() for record in caplog.records]
    assert first == "worker hangs: killing it"
    # cat ends at the signal that asks where its threads stand, or is killed if it is not given the time.
    assert last in {f"worker died with status {-number}: restarting it" for number in (signal.SIGQUIT, signal.SIGKILL)}


def test_a_process_that_says_that_it_is_alive_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(child, "_START_LOOKS", 0)
    with _echoing(tmp_path, monkeypatch) as alive:
        for _ in range(2 * child._HANGING_LOOKS):
            alive._send("")
            select.select([alive._output], [], [], 20.0)
            alive.keep_alive()

        assert not alive.hangs
        assert not alive.has_ended


def _dies_and_is_restarted_with(process: Child) -> Assignment:
    starts, end = process.starts, time.monotonic() + 20
    with process._process as dies:
        dies.kill()
        while process.starts == starts:
            assert time.monotonic() < end
            process.keep_alive()
            time.sleep(0.02)
    return Assignment.from_json(process._output.readline())


def test_the_schema_is_migrated_by_a_process_of_its_own(database: Database):
    with database.as_owner() as owner:
        owner.execute("UPDATE vault.migration SET grants = NULL")
    list(SchemaUpgrade(database.admin, migrate.newest_version()).run())

    with database.as_owner() as owner:
        assert owner.execute("SELECT FROM vault.migration WHERE grants IS NOT NULL").fetchall() != []


def test_a_schema_that_cannot_be_migrated_ends_the_reload(database: Database):
    with pytest.raises(ReloadFailed):
        list(SchemaUpgrade(other_database(database.admin, "not_there"), migrate.newest_version()).run())


def test_the_migrations_of_a_process_stay_as_they_were_when_it_started():
    """An upgrade in place replaces the files: the gate would close until the reload."""
    assert migrate.migrations() is migrate.migrations()


def test_an_assignment_of_another_version_is_understood():
    """That of an older supervisor lacks fields, which need a default; that of a newer one has more."""
    of_first_version = replace(_ASSIGNMENT, replaces=True)
    assert Assignment.from_json(of_first_version.to_json()) == of_first_version

    fields = asdict(of_first_version)
    del fields["replaces"]
    assert Assignment.from_json(json.dumps({**fields, "later": 1})) == _ASSIGNMENT
