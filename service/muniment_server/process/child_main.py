"""How every child process of the supervisor starts.

The supervisor writes one line of JSON, the assignment, to the child's standard input and keeps the pipe open. When it
closes the pipe or dies, for whatever reason, the child drains and exits.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from muniment_server.process.assignment import DUMP, DUMP_WITHOUT_INTERPRETER, READY, Assignment
from muniment_server.process.hardening import forbid_core_dumps
from muniment_server.process.stop_signal import StopSignal
from muniment_server.telemetry import logs


class Orders(NamedTuple):
    """What the supervisor wants of a child."""

    assignment: Assignment
    stop: StopSignal
    """Set when the input ends or SIGTERM arrives."""


def receive_orders(process: str) -> Orders | None:
    """Wait for the assignment of this *process*, and log as it says. None if the supervisor exited before."""
    for library in ("psycopg", "grpc"):  # they would log messages of the database, and headers that do not decode
        logging.getLogger(library).setLevel(logging.CRITICAL + 1)
    forbid_core_dumps()
    threading.Thread(target=_dump, name="dump", daemon=True).start()
    faulthandler.register(DUMP_WITHOUT_INTERPRETER, sys.stdout)
    line = sys.stdin.readline()
    if not line:
        return None
    assignment = Assignment.from_json(line)
    logs.configure(assignment.log_format, process)
    orders = Orders(assignment, StopSignal())
    signal.signal(signal.SIGTERM, lambda *_: orders.stop.set())
    threading.Thread(target=_read_input, args=(orders,), daemon=True).start()
    return orders


def report_ready() -> None:
    """Report to the supervisor. If it has died, the input has ended, and this child stops anyway."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(f"{READY}\n")
        sys.stdout.flush()


def beat_while(is_alive: Callable[[], bool]) -> None:
    """Tell the supervisor every second that this child is alive, while *is_alive* says so. After `report_ready`."""
    threading.Thread(target=_beat, args=(is_alive,), name="heartbeat", daemon=True).start()


def _dump() -> None:
    """Write where all threads stand whenever the supervisor asks for it. Its signal is blocked for other threads."""
    while True:
        signal.sigwait([DUMP])
        faulthandler.dump_traceback(sys.stdout)


def _beat(is_alive: Callable[[], bool]) -> None:
    while True:
        if is_alive():
            with contextlib.suppress(BrokenPipeError):
                os.write(sys.stdout.fileno(), b"\n")
        time.sleep(1.0)


def _read_input(orders: Orders) -> None:
    sys.stdin.read()
    orders.stop.set()
