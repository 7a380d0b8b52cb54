"""SIGTERM: what is in flight finishes, nothing new begins, the exit status is 0."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from muniment.v1.memory_service_pb2 import GetMemoryRequest, SaveMemoryRequest
from muniment.v1.memory_service_pb2_grpc import MemoryServiceStub
from muniment_server.domain.classification import Classification
from tests.proof.faults import promises
from tests.proof.faults.load import Load, bearer
from tests.proof.faults.processes import ServerProcess, wait_until

_WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.mark.proof
def test_under_load_a_drain_exits_with_0_and_loses_nothing(server: ServerProcess, load: Load) -> None:
    with load.running():
        wait_until(lambda: len(load.acknowledged) > 50, "writes before")
        status = server.terminate()

    assert status == 0
    assert load.surprises == []
    server.start()
    with server.as_owner() as owner:
        assert promises.broken(owner, load) == []
    print(f"SIGTERM under load: exit {status}, {len(load.acknowledged)} saves kept, {dict(load.codes)}")


def test_a_call_in_flight_finishes(server: ServerProcess, load: Load) -> None:
    """One that waits for a lock, which is let go only after SIGTERM, and after new callers are turned away.

    It may wait for five seconds, the server's `lock_timeout`. So nothing in between is slow on a busy machine.
    """
    metadata = bearer(load.open_session(Classification.INTERNAL, "drained")[1])
    stub = MemoryServiceStub(load.channel)
    with _in_the_way(server, "drained") as waiting:
        saving = stub.SaveMemory.future(SaveMemoryRequest(key="plan", content="x"), metadata=metadata, timeout=60)
        wait_until(waiting, "the save waits")
        server.ask_to_end()
        wait_until(lambda: _is_turned_away(server), "new callers are turned away")
        assert not saving.done()

    assert saving.result().memory.content == "x"
    assert server.wait_for_end() == 0
    server.start()
    assert stub.GetMemory(GetMemoryRequest(key="plan"), metadata=metadata, wait_for_ready=True).memory.content == "x"


@contextmanager
def _in_the_way(server: ServerProcess, conversation_id: str) -> Iterator[Callable[[], int]]:
    """Hold a conversation's row; give a question: whether somebody waits for it."""
    with server.as_owner() as other, server.as_owner() as owner, owner.transaction():
        owner.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # on a busy machine the block may take long
        owner.execute("SELECT FROM vault.conversation WHERE conversation_id = %s FOR UPDATE", [conversation_id])
        yield lambda: int(other.execute(_WAITING).fetchone()[0])  # type: ignore[index]


def _is_turned_away(server: ServerProcess) -> bool:
    """Whether a new connection is refused. As long as one of the workers listens, it may be accepted."""
    if server.listening():
        return False
    host, _, port = server.address.rpartition(":")
    with socket.socket() as new:
        return new.connect_ex((host, int(port))) == errno.ECONNREFUSED
