"""The processes that the supervisor starts: workers, and those beside them."""

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
from pathlib import Path
from typing import IO

from muniment_server.process.assignment import DUMP, DUMP_WITHOUT_INTERPRETER, READY, Assignment
from muniment_server.process.backoff import StartBackoff
from muniment_server.runtime.child_log import ChildLog
from muniment_server.runtime.configuration import ServerConfig, child_environment
from muniment_server.telemetry.logs import fields

_MODULES = {
    "worker": "muniment_server.runtime.worker",
    "worker_with_traces": "muniment_server.runtime.worker_with_traces",
    "embedder": "muniment_server.embedder.main",
    "gateway": "muniment_http.child",
    "identities": "muniment_identity.refresher",
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


REPLACED: Counter[tuple[str, str]] = Counter()
"""How many processes were replaced since the supervisor started: by name, and `hangs` or `memory`."""


class ChildFailed(RuntimeError):
    """A process exited before it was ready. Its error is in the log."""


class Child:
    """A worker, the embedder or the gateway. Restarted when it dies. It loads its code while the database starts."""

    def __init__(self, name: str, config: ServerConfig) -> None:
        self.starts = 1
        """How often the process was started."""
        self.name = name
        self.is_ready = False
        """Whether the process has said that it serves."""
        self._max_mebibytes = config.max_worker_memory if name == "worker" else 0
        self._silent_looks = -_START_LOOKS
        self._module = _MODULES["worker_with_traces" if name == "worker" and config.traces else name]
        self._drain_seconds = config.drain_seconds
        self._assignment: Assignment | None = None
        self._backoff = StartBackoff()
        self._is_kept_alive = True
        self._end_by = math.inf
        """When the process is killed, if it was asked to make room for another."""
        self._reports_handshakes = name == "worker" and config.tls is not None
        self._environment = child_environment(
            config.metrics.directory if config.metrics else None, reports_handshakes=self._reports_handshakes
        )
        self._log: ChildLog | None = None
        self._process = self._start()

    def assign(self, assignment: Assignment) -> None:
        """Send the process its assignment."""
        self._assignment = assignment
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died: the supervisor notices
            self._process.stdin.write(f"{assignment.to_json()}\n")
            self._process.stdin.flush()

    def wait_until_ready(self) -> None:
        """Wait until the process says that it is ready. Raises ChildFailed."""
        if self._output.readline().strip() != READY:
            raise ChildFailed(f"the {self.name} did not start: see the log above")
        self.is_ready, self._silent_looks = True, 0

    def replace(self, assignment: Assignment | None = None) -> None:
        """Ask the process to drain and to exit. `keep_alive` starts another one, with a new *assignment* if given."""
        self._assignment = assignment or self._assignment
        self.is_ready = False
        self._end_by = time.monotonic() + self._drain_seconds + _KILL_AFTER_DRAIN
        self._close_input()

    def keep_alive(self) -> None:
        """Start another process if this one has ended, and kill it if it hangs, or is too large.

        To be called every WATCH_SECONDS.
        """
        if self._log is not None:
            self._log.report_repeats()
        if self._assignment is None or not self._is_kept_alive:
            return
        if self.has_ended:
            self._start_another(self._assignment)
        else:
            self._kill_if_overdue()
            self._kill_if_hanging()
            self._kill_if_too_large()

    def _start_another(self, assignment: Assignment) -> None:
        """After a process that was replaced: at once. After one that died: after a delay that grows each time."""
        if self._end_by == math.inf:
            if self._backoff.remaining:
                return
            self._backoff.begin()
            _LOG.error("%s died with status %s: restarting it", self.name, self._process.returncode)
        self._end_by = math.inf
        self._process = self._start()
        self.is_ready = False
        self.starts += 1
        self._silent_looks = -_START_LOOKS
        self.assign(assignment)

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
        return self.is_ready and 0 < self._max_mebibytes < self.mebibytes

    @property
    def has_ended(self) -> bool:
        """Whether the process has exited."""
        return self._process.poll() is not None

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
        if not self._has_output:
            return ""
        text = os.read(self._output.fileno(), _PIPE_BYTES).decode(errors="replace")
        self.is_ready = self.is_ready or READY in text.split()
        return text

    @property
    def _has_output(self) -> bool:
        return bool(select.select([self._output], [], [], 0.0)[0])

    def _kill_if_too_large(self) -> None:
        """Kill a process that grows faster than it can be replaced: it would take the memory of all others."""
        if 0 < 4 * self._max_mebibytes < self.mebibytes:
            _LOG.critical("%s has grown to %d MiB: killing it", self.name, self.mebibytes)
            REPLACED[self.name, "memory"] += 1
            self._process.kill()

    def _kill_if_overdue(self) -> None:
        if time.monotonic() > self._end_by:
            _LOG.error("%s did not drain in time: killing it", self.name)
            self._process.kill()

    def stop(self) -> None:
        """Ask the process to drain and exit."""
        self._is_kept_alive = False
        self._close_input()

    def _close_input(self) -> None:
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


def drain(children: list[Child]) -> None:
    """Stop all *children* and wait for them. May be called twice."""
    for child in children:
        child.stop()
    for child in children:
        child.wait_until_stopped()


def _start_process(module: str, environment: Mapping[str, str], *, pipes_errors: bool = False) -> subprocess.Popen[str]:
    """Start a child in a session of its own, so that Ctrl-C reaches only the supervisor, which stops it in order.

    Until it has that session, a Ctrl-C would kill it. So it starts with SIGINT blocked, and stays so. It also blocks
    SIGHUP, which some init systems send to all processes of a service: it is the supervisor's to act on. It waits
    for DUMP.
    """
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGHUP, DUMP])
    try:
        return subprocess.Popen(
            [sys.executable, "-m", module],
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
