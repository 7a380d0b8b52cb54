"""The processes that the supervisor starts: workers and the embedder."""

from __future__ import annotations

import contextlib
import logging
import math
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import IO

from muniment_server.runtime.assignment import LEAVE, READY, Assignment
from muniment_server.runtime.backoff import Backoff
from muniment_server.runtime.child_log import ChildLog
from muniment_server.runtime.configuration import ServerConfig, child_environment

_LOG = logging.getLogger("muniment.supervisor")
_KILL_AFTER_DRAIN = 5.0
"""How many seconds after the drain a process that is still running is killed."""
_LEAVE_SECONDS = 15 * 60.0
"""How long a leaving worker may take, in seconds: longer than it waits for its callers and then drains."""


class ChildFailed(RuntimeError):
    """A process exited before it was ready. Its error is in the log."""


class Child:
    """A worker or the embedder. It is restarted when it dies. It loads its code while the database starts."""

    def __init__(self, name: str, config: ServerConfig, *, replaces: bool = False) -> None:
        """If *replaces*, the process takes over from another, and is not restarted until it has been ready."""
        self.starts = 1
        """How often the process was started."""
        self._name = name
        self._module = "worker_with_traces" if name == "worker" and config.traces else name
        self._drain_seconds = config.drain_seconds
        self._assignment: Assignment | None = None
        self._next_assignment: Assignment | None = None
        self._backoff = Backoff()
        self._replaces = replaces
        self._is_kept_alive = not replaces
        self._end_by = math.inf
        self._reports_handshakes = name == "worker" and config.tls is not None
        self._environment = child_environment(
            config.metrics.directory if config.metrics else None, reports_handshakes=self._reports_handshakes
        )
        self._log: ChildLog | None = None
        self._process = self._start()

    def assign(self, assignment: Assignment) -> None:
        """Send the process its assignment."""
        self._assignment = assignment
        self._send(replace(assignment, replaces=self._replaces).to_json())

    def restart_with(self, assignment: Assignment | None) -> None:
        """Use *assignment* if the process is restarted.

        With None, a restart uses the assignment that the process has.
        """
        self._next_assignment = assignment

    def is_ready(self) -> bool:
        """Whether the process has said that it is ready. Does not wait. Raises ChildFailed."""
        if not select.select([self._output], [], [], 0.0)[0]:
            return False
        self.wait_until_ready()
        return True

    def wait_until_ready(self) -> None:
        """Wait until the process says that it is ready. Raises ChildFailed."""
        if self._output.readline().strip() != READY:
            raise ChildFailed(f"the {self._name} did not start: see the log above")
        self._replaces, self._is_kept_alive = False, True

    def keep_alive(self) -> None:
        """Restart the process if it has died, after a delay that grows each time. To be called often."""
        if self._log is not None:
            self._log.report_repeats()
        if self._assignment is None or not self._is_kept_alive:
            return
        if self._process.poll() is None or not self._backoff.allows_start():
            return
        _LOG.error("%s died with status %s: restarting it", self._name, self._process.returncode)
        self._process = self._start()
        self.starts += 1
        self.assign(self._next_assignment or self._assignment)

    def leave(self) -> None:
        """Ask a worker to take no new connections, and to exit when its callers have left."""
        self._is_kept_alive = False
        self._end_by = time.monotonic() + _LEAVE_SECONDS
        self._send(LEAVE)

    @property
    def has_ended(self) -> bool:
        """Whether the process has exited."""
        return self._process.poll() is not None

    def kill_if_overdue(self) -> None:
        """Kill the process if it was asked to leave or to stop and has exceeded its time limit."""
        if time.monotonic() > self._end_by and not self.has_ended:
            _LOG.error("%s did not end in time: killing it", self._name)
            self._process.kill()

    def stop(self) -> None:
        """Ask the process to drain and exit."""
        self._is_kept_alive = False
        self._end_by = min(self._end_by, time.monotonic() + self._drain_seconds + _KILL_AFTER_DRAIN)
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def wait_until_stopped(self) -> None:
        """Wait for the process to exit, and kill it if it does not."""
        try:
            self._process.wait(self._drain_seconds + _KILL_AFTER_DRAIN)
        except subprocess.TimeoutExpired:
            _LOG.error("%s did not drain in time: killing it", self._name)
        self.kill()

    def kill(self) -> None:
        """Kill the process if it still runs."""
        self.stop()
        self._process.kill()
        self._process.wait()
        self._output.close()

    def _start(self) -> subprocess.Popen[str]:
        process = _start_process(self._module, self._environment, pipes_errors=self._reports_handshakes)
        if process.stderr is not None:
            self._log = ChildLog(process.stderr)
        return process

    @property
    def _output(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died: the supervisor notices
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()


def drain(children: list[Child]) -> None:
    """Stop all *children* and wait for them. May be called twice."""
    for child in children:
        child.stop()
    for child in children:
        child.wait_until_stopped()


def _start_process(module: str, environment: Mapping[str, str], *, pipes_errors: bool = False) -> subprocess.Popen[str]:
    """Start a child in a session of its own, so that Ctrl-C reaches only the supervisor, which stops it in order.

    Until it has that session, a Ctrl-C would kill it. So it starts with SIGINT blocked, and stays so. It also blocks
    SIGHUP, which some init systems send to all processes of a service: the supervisor replaces it in order.
    """
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGHUP])
    try:
        return subprocess.Popen(
            [sys.executable, "-m", f"muniment_server.runtime.{module}"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if pipes_errors else None,
            text=True,
            errors="backslashreplace",  # what gRPC quotes may be no text
            start_new_session=True,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
