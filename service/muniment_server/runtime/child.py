"""The processes that the supervisor starts: workers and the embedder."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO

from muniment_server.process.assignment import DUMP, DUMP_WITHOUT_INTERPRETER, LEAVE, READY, Assignment
from muniment_server.process.backoff import StartBackoff
from muniment_server.runtime.child_log import ChildLog
from muniment_server.runtime.configuration import ServerConfig, child_environment
from muniment_server.telemetry.logs import fields

_MODULES = {
    "worker": "runtime.worker",
    "worker_with_traces": "runtime.worker_with_traces",
    "embedder": "embedder.main",
}
"""The program of each process."""
_LOG = logging.getLogger("muniment.supervisor")
WATCH_SECONDS = 0.2
"""How often the supervisor looks at its processes. Each tells it every second that it is alive."""
_SILENT_LOOKS = round(5 / WATCH_SECONDS)
"""A process that was silent at so many looks in a row counts as hanging. Looks are counted, not seconds: when a machine
that was suspended goes on, its clock may say that all processes were silent for hours."""
_HANGING_LOOKS = round(20 / WATCH_SECONDS)
"""After so many, it is asked where its threads stand, and killed two seconds later."""
_START_LOOKS = round(120 / WATCH_SECONDS)
"""How much longer a process may be silent while it starts."""
_PIPE_BYTES = 64 * 1024
_KILL_AFTER_DRAIN = 5.0
"""How many seconds after the drain a process that is still running is killed."""
_LEAVE_SECONDS = 15 * 60.0
"""How long a leaving worker may take, in seconds: longer than it waits for its callers and then drains."""


REPLACED: Counter[tuple[str, str]] = Counter()
"""How many processes were replaced since the supervisor started: by name, and `hangs` or `memory`."""


class ChildFailed(RuntimeError):
    """A process exited before it was ready. Its error is in the log."""


class Child:
    """A worker or the embedder. It is restarted when it dies. It loads its code while the database starts."""

    def __init__(self, name: str, config: ServerConfig, *, replaces: bool = False) -> None:
        """If *replaces*, the process takes over from another, and is not restarted until it has been ready."""
        self.starts = 1
        """How often the process was started."""
        self.name = name
        self._max_mebibytes = config.max_worker_memory if name == "worker" else 0
        self._silent_looks = -_START_LOOKS
        self._module = _MODULES["worker_with_traces" if name == "worker" and config.traces else name]
        self._drain_seconds = config.drain_seconds
        self._assignment: Assignment | None = None
        self._next_assignment: Assignment | None = None
        self._backoff = StartBackoff()
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
        if not self._has_output:
            return False
        self.wait_until_ready()
        return True

    def wait_until_ready(self) -> None:
        """Wait until the process says that it is ready. Raises ChildFailed."""
        if self._output.readline().strip() != READY:
            raise ChildFailed(f"the {self.name} did not start: see the log above")
        self._replaces, self._is_kept_alive, self._silent_looks = False, True, 0

    def keep_alive(self) -> None:
        """Restart the process if it has died, after a delay that grows each time. Kill it if it hangs, or is too large.

        To be called every WATCH_SECONDS.
        """
        if self._log is not None:
            self._log.report_repeats()
        if self._assignment is None or self._replaces:
            return
        if not self.has_ended:
            self._kill_if_hanging()
            self._kill_if_too_large()
        elif self._is_kept_alive and not self._backoff.remaining:
            self._backoff.begin()
            _LOG.error("%s died with status %s: restarting it", self.name, self._process.returncode)
            self._process = self._start()
            self.starts += 1
            self._silent_looks = -_START_LOOKS
            self.assign(self._next_assignment or self._assignment)

    @property
    def hangs(self) -> bool:
        """Whether the process has been silent for seconds."""
        return self._silent_looks > _SILENT_LOOKS

    @property
    def mebibytes(self) -> int:
        """The memory of the process. 0 if it has ended, or the system does not tell."""
        with contextlib.suppress(OSError):
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE") // (1024 * 1024)
        return 0

    @property
    def has_grown(self) -> bool:
        """Whether the process serves, and has more memory than it should: it is to be replaced."""
        return self._is_kept_alive and 0 < self._max_mebibytes < self.mebibytes

    def _kill_if_hanging(self) -> None:
        """Kill the process, once it had two seconds to write where its threads stand."""
        is_asked = self._silent_looks >= _HANGING_LOOKS
        self._silent_looks = 0 if not is_asked and self._read_output() else self._silent_looks + 1
        match self._silent_looks - _HANGING_LOOKS:
            case 0:
                _LOG.critical("%s hangs: killing it", self.name, extra=fields(pid=self._process.pid))
                REPLACED[self.name, "hangs"] += 1
                for number in (DUMP, signal.SIGCONT):
                    self._process.send_signal(number)
            case 5 if not self._has_output:
                self._process.send_signal(DUMP_WITHOUT_INTERPRETER)
            case 10:
                stack = self._read_output() or "not known: it reacts to no signal"
                _LOG.critical("where its threads stood", extra=fields(pid=self._process.pid, stack=f"\n{stack}"))
                self._process.kill()

    def _read_output(self) -> str:
        """What the process has written since. Does not wait."""
        return os.read(self._output.fileno(), _PIPE_BYTES).decode(errors="replace") if self._has_output else ""

    @property
    def _has_output(self) -> bool:
        return bool(select.select([self._output], [], [], 0.0)[0])

    def _kill_if_too_large(self) -> None:
        """Kill a process that grows faster than it can be replaced: it would take the memory of all others."""
        if 0 < 4 * self._max_mebibytes < self.mebibytes:
            _LOG.critical("%s has grown to %d MiB: killing it", self.name, self.mebibytes)
            REPLACED[self.name, "memory"] += 1
            self._process.kill()

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
            _LOG.error("%s did not end in time: killing it", self.name)
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
            _LOG.error("%s did not drain in time: killing it", self.name)
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
    SIGHUP, which some init systems send to all processes of a service: the supervisor replaces it in order. It waits
    for DUMP.
    """
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGHUP, DUMP])
    try:
        return subprocess.Popen(
            [sys.executable, "-m", f"muniment_server.{module}"],
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
