"""What is kept of the epochs of a database: it only rises, whatever happens to whom."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import psycopg
import pytest

from muniment_server.domain.errors import AgentNotFound, Unavailable
from muniment_server.engines.citus import cluster as citus
from muniment_server.postgres import epochs, pool, roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.epochs import Epoch, EpochGuard, WrongEpoch
from muniment_server.postgres.pool import SINGLE, Database, epoch_of
from tests.support.clock import StoppedClock

SYSTEM = "7711140972050166738"


def at(timeline, system=SYSTEM):
    return Epoch(system, timeline)


@pytest.fixture
def guard(tmp_path):
    """One of a new directory."""
    return EpochGuard(tmp_path / "state")


def test_the_first_server_is_admitted(guard):
    assert guard.highest() is None
    guard.admit(at(3))

    assert guard.highest() == at(3)


@pytest.mark.parametrize("directory", ["kept", "none"])
def test_a_lower_timeline_is_refused(tmp_path, directory):
    guard = EpochGuard(tmp_path if directory == "kept" else None)
    guard.admit(at(1))
    guard.admit(at(3))
    with pytest.raises(WrongEpoch, match="timeline 2, and timeline 3 was seen"):
        guard.admit(at(2))

    assert guard.highest() == at(3)


def test_another_system_is_refused_even_on_a_higher_timeline(guard):
    guard.admit(at(1))
    with pytest.raises(WrongEpoch, match="system 9, and system 7711140972050166738 was used before"):
        guard.admit(at(2, "9"))


def test_what_was_seen_survives_a_restart(guard, tmp_path):
    guard.admit(at(2))
    with pytest.raises(WrongEpoch):
        EpochGuard(tmp_path / "state").admit(at(1))


def test_what_one_process_has_seen_others_know(guard, tmp_path):
    other = EpochGuard(tmp_path / "state")
    guard.admit(at(1))
    other.admit(at(1))
    assert not guard.is_behind(at(1))
    other.admit(at(2))

    assert guard.is_behind(at(1))
    assert not guard.is_behind(at(2))


@pytest.fixture
def clock(monkeypatch):
    """A clock on which time passes only while the code waits."""
    stopped = StoppedClock()

    def sleep(seconds):
        stopped.seconds += seconds

    monkeypatch.setattr(epochs, "time", SimpleNamespace(monotonic=stopped, sleep=sleep))
    return stopped


def test_for_a_moment_the_file_is_not_looked_at_again(guard, tmp_path, clock):
    guard.admit(at(1))
    assert not guard.is_behind(at(1))
    (tmp_path / "state" / "epoch.json").write_text("")
    assert not guard.is_behind(at(1))
    clock.seconds += 0.01

    assert guard.is_behind(at(1))


@pytest.mark.parametrize("wrote", ["itself", "another"])
def test_a_process_that_finds_a_new_epoch_waits_until_no_other_trusts_the_old_one(guard, tmp_path, clock, wrote):
    other = EpochGuard(tmp_path / "state")
    for one in (guard, other):
        one.admit(at(1))
    clock.seconds += 1
    assert not guard.is_behind(at(1))
    if wrote == "another":
        (tmp_path / "state" / "epoch.json").write_text(f'{{"system": "{SYSTEM}", "timeline": 2}}')
    other.admit(at(2))

    assert guard.is_behind(at(1))


def test_a_process_that_adopts_a_server_waits_until_no_other_trusts_the_old_one(guard, tmp_path, clock):
    guard.admit(at(2))
    clock.seconds += 1
    assert not guard.is_behind(at(2))
    EpochGuard(tmp_path / "state").adopt(at(1))

    assert guard.is_behind(at(2))


def test_what_a_thread_read_before_a_change_does_not_replace_what_another_read_after_it(
    guard, tmp_path, clock, monkeypatch
):
    """Or the process would trust the old epoch for longer than others wait."""
    guard.admit(at(1))
    read, has_read, may_go_on = epochs._read, threading.Event(), threading.Event()

    def read_slowly(file):
        found = read(file)
        if threading.current_thread().name.startswith("slow"):
            has_read.set()
            assert may_go_on.wait(20)
        return found

    monkeypatch.setattr(epochs, "_read", read_slowly)
    with ThreadPoolExecutor(1, "slow") as slow, ThreadPoolExecutor(1, "quick") as quick:
        first = slow.submit(guard.highest)
        assert has_read.wait(20)
        EpochGuard(tmp_path / "state").admit(at(2))
        second = quick.submit(guard.is_behind, at(1))
        wait([second], timeout=0.3)
        may_go_on.set()
        wait([first], timeout=20)
        assert second.result(20)

    assert guard.is_behind(at(1))


def test_what_is_kept_only_rises_whoever_comes_last(tmp_path):
    def admit(timeline):
        with contextlib.suppress(WrongEpoch):
            EpochGuard(tmp_path).admit(at(timeline))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(admit, [*range(1, 60), *range(59, 0, -1)]))

    assert EpochGuard(tmp_path).highest() == at(59)


def test_processes_take_turns(guard, tmp_path):
    """Or one that was slow to write would lower what another has written."""
    guard.admit(at(1))
    with ThreadPoolExecutor(1) as pool, (tmp_path / "state" / "epoch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        slow = pool.submit(guard.admit, at(2))
        assert not wait([slow], timeout=0.3).done
        (tmp_path / "state" / "epoch.json").write_text(f'{{"system": "{SYSTEM}", "timeline": 3}}')
        fcntl.flock(lock, fcntl.LOCK_UN)
        with pytest.raises(WrongEpoch, match="timeline 3 was seen"):
            slow.result(20)


@pytest.mark.parametrize(
    "damage", ["", "{}", "[]", '{"system": "1", "timeline": "x"}', '{"system": "1", "timeline": 1, "nodes": {"1": 2}}']
)
def test_a_damaged_file_admits_nothing_until_a_server_is_adopted(guard, tmp_path, damage):
    guard.admit(at(1))
    (tmp_path / "state" / "epoch.json").write_text(damage)
    assert guard.is_behind(at(1))
    with pytest.raises(WrongEpoch, match="damaged"):
        EpochGuard(tmp_path / "state").admit(at(1))
    guard.adopt(at(1))

    guard.admit(at(1))


def test_what_was_seen_holds_though_the_file_is_deleted(guard, tmp_path):
    """As by a program that cleans temporary directories. The file is written again for the next connection."""
    guard.admit(at(2))
    shutil.rmtree(tmp_path / "state")
    assert guard.is_behind(at(1))
    assert not guard.is_behind(at(2))
    with pytest.raises(WrongEpoch):
        guard.admit(at(1))
    guard.admit(at(2))

    assert EpochGuard(tmp_path / "state").highest() == at(2)


def test_what_cannot_be_kept_is_not_admitted(guard):
    """Or it would be forgotten with this process."""
    guard.admit(at(1))
    with patch.object(os, "fsync", side_effect=OSError(errno.ENOSPC, "no space")):
        for _ in range(2):
            with pytest.raises(WrongEpoch):
                guard.admit(at(2))

    assert guard.highest() == at(1)


def test_a_directory_that_cannot_be_written_admits_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WrongEpoch):
        EpochGuard(tmp_path / "file").admit(at(1))


def test_an_operator_may_adopt_a_lower_one(guard):
    guard.admit(at(3))
    guard.adopt(at(1, "9"))

    guard.admit(at(2, "9"))


def test_a_refusal_is_logged_once(guard, caplog):
    guard.admit(at(2))
    for _ in range(3):
        with pytest.raises(WrongEpoch):
            guard.admit(at(1))

    assert [record.levelno for record in caplog.records] == [logging.CRITICAL]


def with_nodes(**timelines):
    """The epoch of a cluster, whose nodes each are a system of their own."""
    return Epoch(SYSTEM, 1, {group: Epoch(group * 9, timeline) for group, timeline in timelines.items()})


def test_a_node_of_a_cluster_on_a_lower_timeline_is_refused(guard, tmp_path):
    guard.admit(with_nodes(a=1, b=1))
    guard.admit(with_nodes(a=1, b=2))
    for other in (guard, EpochGuard(tmp_path / "state")):
        with pytest.raises(WrongEpoch, match="its node of group b is on timeline 1, and timeline 2 was seen"):
            other.admit(with_nodes(a=1, b=1))

    assert guard.highest() == with_nodes(a=1, b=2)
    assert guard.is_behind(with_nodes(a=1, b=1))


def test_a_node_that_is_another_system_or_a_standby_is_refused(guard):
    guard.admit(with_nodes(a=1))
    with pytest.raises(WrongEpoch, match="its node of group a is system 9"):
        guard.admit(Epoch(SYSTEM, 1, {"a": Epoch("9", 5)}))
    with pytest.raises(WrongEpoch, match="its node of group c is a standby"):
        guard.admit(with_nodes(a=1, c=0))


def test_nodes_that_are_added_away_or_removed_are_no_reason_to_refuse_the_others(guard):
    """They are remembered: a server that takes the place of one must not be behind it."""
    assert guard.admit(at(1)) == at(1)
    assert guard.admit(with_nodes(a=1)) == with_nodes(a=1)
    assert guard.admit(with_nodes(b=3)) == with_nodes(a=1, b=3)
    with pytest.raises(WrongEpoch, match="its node of group a is a standby"):
        guard.admit(with_nodes(a=0))

    assert guard.highest() == with_nodes(a=1, b=3)


def test_an_operator_may_adopt_a_node_on_a_lower_timeline(guard):
    guard.admit(with_nodes(a=2, b=2))
    guard.adopt(with_nodes(a=1, b=2))

    assert guard.admit(with_nodes(a=1, b=2)) == with_nodes(a=1, b=2)


def test_adopting_keeps_what_is_known_of_nodes_that_did_not_answer(guard):
    guard.admit(with_nodes(a=2, b=2))
    guard.adopt(with_nodes(a=1))

    with pytest.raises(WrongEpoch, match="its node of group b is on timeline 1"):
        guard.admit(with_nodes(a=1, b=1))
    guard.adopt(Epoch("9", 1, {"a": Epoch("8", 1)}))
    assert guard.highest() == Epoch("9", 1, {"a": Epoch("8", 1)})


def test_a_node_that_is_a_standby_is_not_adopted(guard):
    guard.admit(with_nodes(a=2))
    with pytest.raises(WrongEpoch, match="its node of group a is a standby"):
        guard.adopt(with_nodes(a=0))

    assert guard.highest() == with_nodes(a=2)


@pytest.fixture
def cluster(migrated, guard, monkeypatch):
    """A database that is taken for one of a cluster. Its nodes are asked before each call."""
    monkeypatch.setattr(citus, "is_cluster", lambda _: True)
    monkeypatch.setattr(pool, "_NODES_SECONDS", 0.0)
    with contextlib.closing(Database(migrated.conninfo, pool_sizes=SINGLE, epochs=guard)) as database:
        yield database


def backend(database):
    with database.connection(roles.CONTROL, Deadline()) as connection:
        return connection.info.backend_pid


def test_a_connection_that_finds_a_promoted_node_is_not_used(cluster, monkeypatch):
    """Through its coordinator it may still reach the server that was overtaken."""
    monkeypatch.setattr(pool, "epoch_of", lambda *_, **__: with_nodes(a=1))
    first, again = backend(cluster), backend(cluster)
    monkeypatch.setattr(pool, "epoch_of", lambda *_, **__: with_nodes(a=2))

    assert first == again != backend(cluster)


def test_a_node_that_is_silent_stops_no_one(cluster, monkeypatch):
    monkeypatch.setattr(pool, "epoch_of", lambda *_, **__: with_nodes(a=1))
    before = backend(cluster)

    def wait(*_, **__):
        raise psycopg.errors.QueryCanceled

    monkeypatch.setattr(pool, "epoch_of", wait)
    assert backend(cluster) == before


def test_nothing_that_was_found_after_an_unconfirmed_commit_is_answered(cluster, monkeypatch):
    monkeypatch.setattr(pool, "epoch_of", lambda *_, **__: with_nodes(a=1))

    def commit_and_read():
        with cluster.connection(roles.CONTROL, Deadline()) as connection:
            connection.execute("DO $$ BEGIN RAISE WARNING 'failed to commit transaction on worker:5432'; END $$")
            raise AgentNotFound

    with pytest.raises(Unavailable):
        commit_and_read()


def test_a_connection_to_a_server_that_was_overtaken_is_not_used_again(migrated, guard, tmp_path):
    """Its server still answers. A new connection is refused, too."""
    with contextlib.closing(Database(migrated.conninfo, pool_sizes=SINGLE, epochs=guard)) as database:
        before = backend(database)
        assert backend(database) == before
        promoted = replace(guard.highest(), timeline=2)
        EpochGuard(tmp_path / "state").admit(promoted)

        with pytest.raises(Unavailable):
            backend(database)


def test_without_nodes_the_file_is_what_earlier_versions_wrote(guard, tmp_path):
    guard.admit(at(1))

    assert (tmp_path / "state" / "epoch.json").read_text() == f'{{"system": "{SYSTEM}", "timeline": 1}}'


@pytest.mark.parametrize("role", roles.SERVING)
def test_every_role_may_ask(migrated, role):
    with migrated.connect(role) as connection, migrated.as_admin() as admin:
        found = epoch_of(connection)

        assert found == epoch_of(admin)
        assert found.timeline == 1
        assert found.system.isdecimal()


def test_the_epoch_is_read_once_for_each_connection(migrated, guard):
    """Not for each call: that would cost a round trip."""
    database = Database(migrated.conninfo, pool_sizes=SINGLE, epochs=guard)
    with contextlib.closing(database), patch.object(pool, "epoch_of", side_effect=epoch_of) as read:
        for _ in range(20):
            with database.connection(roles.CONTROL, Deadline()) as connection:
                connection.execute("SELECT 1")

        assert read.call_count == 1
