"""What search finds while and after many write the same names: no version that is not there, counts that fit."""

from __future__ import annotations

import itertools
import random
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import grpc

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.inspection import broken_index
from muniment_server.domain.classification import Classification
from muniment_server.search.reindex import reindex

PUBLIC = Classification.PUBLIC
WRITERS, CALLS, KEYS = 8, 60, 3


def test_writers_of_the_same_names_leave_one_version_of_each_in_the_index(service):
    """From conversations of their own, so that they wait for each other at the item only."""
    sessions = [service.session(PUBLIC) for _ in range(WRITERS)]
    ids = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(KEYS)]

    def write(number: int) -> None:
        pen, session = random.Random(number), sessions[number]
        for call in range(CALLS):
            key, text = f"k{pen.randrange(KEYS)}", f"whale writer{number} call{call}"
            match pen.randrange(5):
                case 0:
                    session.observe("DeleteMemory", key=key)
                case 1:
                    session.observe("StorePassage", passage_id=pen.choice(ids), content=text, thread="t")
                case 2:
                    session.observe("DeletePassage", passage_id=pen.choice(ids))
                case _:
                    assert session.observe("SaveMemory", key=key, content=text).code is grpc.StatusCode.OK
            for result in session.search_memories(query="whale").results:
                assert result.snippet == result.memory.content

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))

    with connect_operator(service.database.admin) as operator:
        assert set(broken_index(operator).values()) == {0}


def test_the_index_is_rebuilt_beside_writers(service):
    sessions = [service.session(PUBLIC) for _ in range(WRITERS)]
    for number in range(100):
        sessions[0].save_memory(key=f"k{number}", content=f"whale {number}")
    done = Event()

    def write(number: int) -> None:
        pen, session = random.Random(number), sessions[number]
        for call in itertools.count():
            if done.is_set():
                return
            old, new = f"k{pen.randrange(100)}", f"n{number}-{call}"
            session.observe("SaveMemory", key=pen.choice([old, new]), content=f"whale writer{number} call{call}")
            session.observe("StorePassage", content=f"whale writer{number} call{call}", thread="t")
            session.observe("DeleteMemory", key=pen.choice([old, new]))

    with ThreadPoolExecutor(WRITERS) as pool, connect_operator(service.database.admin) as operator:
        writing = [pool.submit(write, number) for number in range(WRITERS)]
        try:
            for _ in range(4):
                list(reindex(operator.connection))
        finally:
            done.set()
        for each in writing:
            each.result()
        assert set(broken_index(operator).values()) == {0}
