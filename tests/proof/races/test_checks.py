"""What `muniment doctor` asks of the rows, while many write."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.inspection import broken_index, broken_ledgers, broken_storage
from muniment_server.domain.classification import Label
from tests.support.answers import LEVELS

_WRITERS = 6
_CHECKS = 3


def test_what_is_written_meanwhile_looks_neither_lost_nor_miscounted(service):
    """On a cluster, too, where steps of a statement see what was written since the steps before them."""
    sessions = [service.session(LEVELS[number % len(LEVELS)]) for number in range(_WRITERS)]
    done = Event()

    def write(number: int) -> None:
        for call in itertools.count():
            if done.is_set():
                return
            sessions[number].save_memory(key=f"{number} {call}", content="text")
            sessions[number].save_memory(key=f"{number} {call}", content="newer text")
            sessions[number].store_passage(content=f"text {call}")

    with ThreadPoolExecutor(_WRITERS) as pool, connect_operator(service.database.admin) as operator:
        writing = [pool.submit(write, number) for number in range(_WRITERS)]
        try:
            found = [
                count
                for _ in range(_CHECKS)
                for check in (broken_ledgers, broken_index, broken_storage)
                for count in check(operator).values()
            ]
        finally:
            done.set()
        for each in writing:
            each.result()

    assert found == [0] * _CHECKS * 3 * len(Label)
