"""How every child process of the supervisor starts.

The supervisor writes one line of JSON, the assignment, to the child's standard input and keeps the pipe open. When the
supervisor dies, for whatever reason, the pipe closes and the child exits.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading

from muniment_server.runtime.assignment import Assignment
from muniment_server.runtime.hardening import forbid_core_dumps
from muniment_server.runtime.stop_signal import StopSignal


def receive_assignment() -> tuple[Assignment, StopSignal] | None:
    """The assignment, and a signal that is set when the input ends or SIGTERM arrives.

    None if the supervisor exited before it sent an assignment.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    for library in ("psycopg", "grpc"):  # they would log messages of the database, and headers that do not decode
        logging.getLogger(library).setLevel(logging.CRITICAL + 1)
    forbid_core_dumps()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C the supervisor closes the input
    line = sys.stdin.readline()
    if not line:
        return None
    stop = StopSignal()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    threading.Thread(target=_wait_for_end_of_input, args=(stop,), daemon=True).start()
    return Assignment(**json.loads(line)), stop


def _wait_for_end_of_input(stop: StopSignal) -> None:
    sys.stdin.read()
    stop.set()
