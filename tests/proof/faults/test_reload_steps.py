"""How processes are replaced: one after the other; and how one that hangs is noticed."""

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
from unittest.mock import Mock, call

import pytest

from muniment_server.postgres import migrate
from muniment_server.process.assignment import Assignment
from muniment_server.runtime import child
from muniment_server.runtime.child import Child
from muniment_server.runtime.configuration import DatabaseConfig, ServerConfig
from muniment_server.runtime.replacement import Replacements

_POPEN = subprocess.Popen
_ASSIGNMENT = Assignment(
    conninfo="dbname=muniment", listen="127.0.0.1:50051", threads=4, max_in_flight=512, connections=80,
    worker_connections={"muniment_public": 7}, application_name="muniment/80", drain_seconds=20.0, development=False,
    audit_reads_from=3, tls=None, epochs="/state", embedder=None,
)  # fmt: skip
_OF_TWO_SERVERS = replace(_ASSIGNMENT, servers={"a": "host=a", "b": "host=b"}, tenants={"7": "b"})


def _worker(*, grown: bool = False) -> Any:
    return Mock(is_ready=True, has_grown=grown, mebibytes=600)


def test_processes_are_replaced_one_at_a_time(caplog):
    """The next one drains once the one before serves again."""
    caplog.set_level("INFO")
    first, second, replacements = _worker(), _worker(), Replacements()
    replacements.reload([first, second], _ASSIGNMENT)
    replacements.advance([])
    first.is_ready = False
    replacements.advance([])
    began = first.replace.call_args, second.replace.call_args
    first.is_ready = True
    for _ in range(2):
        replacements.advance([])

    assert began == (call(_ASSIGNMENT), None)
    assert second.replace.call_args == call(_ASSIGNMENT)
    assert [record.getMessage() for record in caplog.records] == ["reloaded"]


def test_a_reload_takes_the_place_of_one_whose_process_does_not_start(caplog):
    """Otherwise the file that is wrong could not be corrected. The process that does not serve comes first."""
    caplog.set_level("INFO")
    broken, serving, replacements = _worker(), _worker(), Replacements()
    replacements.reload([broken, serving], _ASSIGNMENT)
    replacements.advance([])
    broken.is_ready = False
    replacements.advance([])
    replacements.reload([serving, broken], _OF_TWO_SERVERS)
    replacements.advance([])
    replaced = broken.replace.call_args, serving.replace.call_args
    broken.is_ready = True
    for _ in range(2):
        replacements.advance([])

    assert replaced == (call(_OF_TWO_SERVERS), None)
    assert serving.replace.call_args == call(_OF_TWO_SERVERS)
    assert [record.getMessage() for record in caplog.records] == ["reloaded"]


def test_a_reload_that_changes_nothing_lets_the_one_that_runs_go_on():
    waiting, replacements = _worker(), Replacements()
    replacements.reload([_worker(), waiting], _ASSIGNMENT)
    replacements.advance([])
    replacements.reload([], _ASSIGNMENT)
    replacements.advance([])

    assert waiting.replace.called


def test_a_request_is_taken_once():
    replacements = Replacements()
    taken = [replacements.takes_request()]
    for _ in range(2):
        replacements.request()
    taken += [replacements.takes_request() for _ in range(2)]

    assert taken == [False, True, False]


def test_workers_that_grow_are_replaced_one_at_a_time_and_one_a_minute(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    replacements, workers = Replacements(), [_worker(grown=True), _worker(grown=True)]
    begun: list[int] = []
    for _ in range(130):
        replacements.advance(workers)
        begun.append(workers[0].replace.call_count)
        now[0] += 1.0

    assert [begun.count(number) for number in (1, 2, 3)] == [60, 60, 10]
    assert not workers[1].replace.called


def test_a_process_that_is_replaced_drains_and_the_next_has_the_new_assignment(tmp_path, monkeypatch, caplog):
    with _echoing(tmp_path, monkeypatch) as old:
        old.replace(_OF_TWO_SERVERS)
        assert _restarted_with(old) == _OF_TWO_SERVERS
        assert _dies_and_is_restarted_with(old) == _OF_TWO_SERVERS

    assert [record.getMessage() for record in caplog.records] == ["worker died with status -9: restarting it"]


def test_a_process_that_does_not_drain_in_time_is_killed(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(child, "_KILL_AFTER_DRAIN", 0.0)
    with _echoing(tmp_path, monkeypatch) as hanging:
        os.kill(hanging._process.pid, signal.SIGSTOP)
        hanging.replace()
        assert _restarted_with(hanging) == _ASSIGNMENT

    assert {record.getMessage() for record in caplog.records} == {"worker did not drain in time: killing it"}


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
    # cat ends at a signal that asks where its threads stand, or is killed if it is not given the time.
    deadly = (signal.SIGQUIT, signal.SIGUSR1, signal.SIGKILL)
    assert last in {f"worker died with status {-number}: restarting it" for number in deadly}


def test_a_process_that_says_that_it_is_alive_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(child, "_START_LOOKS", 0)
    with _echoing(tmp_path, monkeypatch) as alive:
        for _ in range(2 * child._HANGING_LOOKS):
            assert alive._process.stdin is not None
            alive._process.stdin.write("\n")
            alive._process.stdin.flush()
            select.select([alive._output], [], [], 20.0)
            alive.keep_alive()

        assert not alive.hangs
        assert not alive.has_ended


def _dies_and_is_restarted_with(process: Child) -> Assignment:
    process._process.kill()
    return _restarted_with(process)


def _restarted_with(process: Child) -> Assignment:
    """What the process that is started next is sent."""
    starts, end = process.starts, time.monotonic() + 20
    with process._process:
        while process.starts == starts:
            assert time.monotonic() < end
            process.keep_alive()
            time.sleep(0.02)
    return Assignment.from_json(process._output.readline())


def test_the_migrations_of_a_process_stay_as_they_were_when_it_started():
    """An upgrade in place replaces the files: the gate would close until the reload."""
    assert migrate.migrations() is migrate.migrations()


def test_an_assignment_of_another_version_is_understood():
    """That of an older supervisor lacks fields, which need a default; that of a newer one has more."""
    fields = asdict(_ASSIGNMENT)
    del fields["servers"]
    assert Assignment.from_json(json.dumps({**fields, "later": 1})) == _ASSIGNMENT
