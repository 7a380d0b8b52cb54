"""Replaces the workers and the embedder while the server serves: for new code, and for new TLS files.

A reload is a generator. The supervisor resumes it each time it has checked its processes.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import TypeAlias

from muniment_server.process.assignment import Assignment
from muniment_server.runtime.child import REPLACED, Child, ChildFailed
from muniment_server.runtime.configuration import ServerConfig, child_environment

_LOG = logging.getLogger("muniment.supervisor")
_START_SECONDS = 120.0
"""How long a new process may take to start."""
_REPLACEMENT_SECONDS = 60.0

Steps: TypeAlias = "Generator[None, None, None]"
"""What a reload does: it pauses wherever it would wait."""


class ReloadFailed(RuntimeError):
    """The reload ends before all processes are replaced."""


class Reloads:
    """Runs reloads one after the other."""

    def __init__(self) -> None:
        self._requested = False
        self._running: Steps | None = None
        self._next_replacement = 0.0

    def request(self) -> None:
        """Request a reload; one more if one is running. May be called by a signal handler."""
        self._requested = True

    def resume(self, start: Callable[[], Steps]) -> None:
        """Advance the running reload to its next pause. If none runs and one was requested, begin it with *start*."""
        if self._running is None and self._requested:
            self._requested, self._running = False, start()
        if self._running is not None:
            try:
                next(self._running)
            except StopIteration:
                self._running = None
            except (ReloadFailed, ChildFailed, OSError) as error:
                self._running = None
                _LOG.error("the reload failed; processes that were not replaced go on: %s", error)

    def replace_grown(self, workers: list[Child], config: ServerConfig, assignment: Assignment) -> None:
        """Begin to replace a worker that has grown, unless a reload runs, or this was done less than a minute ago.

        Otherwise, workers that grow again and again would make the server start processes all the time.
        """
        if self._running is not None or time.monotonic() < self._next_replacement:
            return
        for grown in [worker for worker in workers if worker.has_grown][:1]:
            _LOG.warning("a worker has grown to %d MiB: replacing it", grown.mebibytes)
            REPLACED[grown.name, "memory"] += 1
            self._next_replacement = time.monotonic() + _REPLACEMENT_SECONDS
            self._running = replace_workers(workers, config, assignment, grown)

    def stop(self) -> None:
        """End the reload that is running. Its processes are the supervisor's to stop."""
        if self._running is not None:
            self._running.close()


class SchemaUpgrade:
    """Migrates the embedded database with the code that is installed now, if the running workers can go on with it."""

    def __init__(self, admin: str | None, version: int) -> None:
        """*admin* is None for a database that the operator migrates. *version* is what the running workers need."""
        self._admin = admin
        self._version = version

    def run(self) -> Steps:
        """Migrate in a process of its own. Raises ReloadFailed."""
        if self._admin is None:
            return
        process = subprocess.Popen(
            [sys.executable, "-m", "muniment_server.runtime.schema"],
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process:
            try:
                with suppress(BrokenPipeError):  # it has exited: its status says so
                    process.stdin.write(json.dumps({"admin": self._admin, "beside": self._version}))
                    process.stdin.close()
                while process.poll() is None:
                    yield
            finally:
                process.terminate()  # if the server stops meanwhile
            if process.returncode != 0:
                raise ReloadFailed("the schema was not migrated: see the log above")
            self._version = int(process.stdout.read())


def replace_workers(
    workers: list[Child], config: ServerConfig, assignment: Assignment, grown: Child | None = None
) -> Steps:
    """Replace each worker, or only the one that has *grown*, once another one serves in its place. Raises ChildFailed.

    *workers* always has all processes, those that start or leave too, so that the supervisor can stop them.
    """
    leaving: list[Child] = []
    try:
        for old in [grown] if grown else list(workers):
            new = Child("worker", config, replaces=True)
            new.assign(assignment)
            if not (yield from _takes_over(new, old, workers, assignment)):
                continue
            old.leave()
            leaving.append(old)
            yield from _until_fewer(leaving, config.replaced_at_once, workers)
    except (ChildFailed, OSError):  # the next reload must not replace those that have been replaced
        yield from _until_fewer(leaving, 1, workers)
        raise
    yield from _until_fewer(leaving, 1, workers)


def replace_embedder(embedders: list[Child], config: ServerConfig, assignment: Assignment) -> Steps:
    """Replace the embedder, if there is one, once another one has loaded its model. Raises ChildFailed."""
    for old in list(embedders):
        new = Child("embedder", config, replaces=True)
        if not (yield from _takes_over(new, old, embedders, assignment)):
            continue
        old.stop()
        yield from _until_fewer([old], 1, embedders)
        new.assign(assignment)


def _takes_over(new: Child, old: Child, children: list[Child], assignment: Assignment) -> Generator[None, None, bool]:
    """Wait until *new* is ready; return whether it takes over. If *old* was restarted meanwhile, *new* is killed.

    Both would take over the path of a Unix socket, and callers find only the last one, which might be asked to leave.
    A restart replaces *old* just as well: it loads the current code and files, and uses *assignment*.
    """
    children.append(new)
    old.restart_with(assignment)
    starts, end = old.starts, time.monotonic() + _START_SECONDS
    try:
        while old.starts == starts:
            if new.is_ready():
                return True
            if time.monotonic() > end:
                raise ChildFailed("a new process did not start in time")
            yield
    except ChildFailed:
        old.restart_with(None)  # it may be the assignment that fails
        _discard(new, children)
        raise
    _discard(new, children)
    return False


def _discard(child: Child, children: list[Child]) -> None:
    children.remove(child)
    child.kill()


def _until_fewer(ending: list[Child], count: int, children: list[Child]) -> Steps:
    """Wait until fewer than *count* of the *ending* processes run."""
    while True:
        for child in ending:
            child.kill_if_overdue()
        for child in [child for child in ending if child.has_ended]:
            ending.remove(child)
            children.remove(child)
            child.wait_until_stopped()
        if len(ending) < count:
            return
        yield
