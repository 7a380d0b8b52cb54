"""What every process that the supervisor starts does first.

The supervisor writes one line of JSON, the assignment, and keeps the pipe open: when the supervisor dies, however
it dies, the pipe ends and so does its child.
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


def begin() -> tuple[Assignment, StopSignal] | None:
    """What there is to do, and what is set at the end of the input or by SIGTERM.

    None: the supervisor gave up before it had anything to do.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    for library in ("psycopg", "grpc"):  # they would log what the driver says, and headers that do not decode
        logging.getLogger(library).setLevel(logging.CRITICAL + 1)
    forbid_core_dumps()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor, which ends the input
    line = sys.stdin.readline()
    if not line:
        return None
    ended = StopSignal()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    threading.Thread(target=_wait_for_end, args=(ended,), daemon=True).start()
    return Assignment(**json.loads(line)), ended


def _wait_for_end(ended: StopSignal) -> None:
    sys.stdin.read()
    ended.set()
