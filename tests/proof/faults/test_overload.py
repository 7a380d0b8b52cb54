"""More calls than a server takes on: the excess is refused at once, and says when to come again."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import grpc
import psycopg
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from muniment.v1.memory_service_pb2 import SaveMemoryRequest, SaveMemoryResponse
from muniment.v1.memory_service_pb2_grpc import MemoryServiceStub
from muniment_server.domain.classification import Classification
from muniment_server.postgres import pool
from muniment_server.transport.admission.pools import Limits
from tests.proof.faults.load import channel_to
from tests.proof.faults.processes import wait_until
from tests.support.databases import Database
from tests.support.services import Caller, Service, serving

_CALLS = 300
_IN_FLIGHT = 4
_SECONDS = 20.0
_SAVE = "/muniment.v1.MemoryService/SaveMemory"


@pytest.fixture
def small(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A server with one thread, that takes on four calls of one session. It waits long for locks."""
    monkeypatch.setattr(pool, "SETTINGS", {**pool.SETTINGS, "lock_timeout": "1min"})
    with serving(database, limits=Limits(threads=1, max_in_flight=12 * _IN_FLIGHT)) as served:
        yield served


def test_the_excess_is_refused_at_once_and_the_rest_is_served(small: Service) -> None:
    session = small.session(Classification.PUBLIC)
    with _row_held(small) as row, _channels(small) as channels:
        begun = time.monotonic()
        calls = [_save(session, channels[number % len(channels)], number) for number in range(_CALLS)]
        wait_until(lambda: sum(call.done() for call in calls) >= _CALLS - _IN_FLIGHT, "the excess is refused")
        took = time.monotonic() - begun
        refused = [call for call in calls if call.done()]
        row.rollback()
        served = [call.result().memory.content for call in calls if call not in refused]

    assert Counter(map(_answered, refused)) == {("RESOURCE_EXHAUSTED", True): _CALLS - _IN_FLIGHT}
    assert served == ["x"] * _IN_FLIGHT
    print(f"overload: {len(refused)} of {_CALLS} refused in {took:.2f} s, with RetryInfo")


@contextmanager
def _channels(service: Service) -> Iterator[list[grpc.Channel]]:
    """Connections for 75 calls each: of more than 100 on one, the protocol itself refuses some."""
    with ExitStack() as stack:
        yield [stack.enter_context(channel_to(service.address)) for _ in range(_CALLS // 75)]


def _save(session: Caller, channel: grpc.Channel, number: int) -> Any:
    request = SaveMemoryRequest(key=f"{number}", content="x")
    return MemoryServiceStub(channel).SaveMemory.future(request, metadata=session.metadata, timeout=120)


def _answered(call: Any) -> tuple[str, bool]:
    """The code of a refused call, and whether it says when to come again."""
    status = rpc_status.from_call(call.exception())
    details = status.details if status is not None else []
    return call.code().name, any(detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR) for detail in details)


@contextmanager
def _row_held(service: Service) -> Iterator[psycopg.Connection[Any]]:
    """Every write waits, until the connection is rolled back."""
    with service.database.as_owner() as owner:
        owner.execute("BEGIN")
        owner.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # on a busy machine the block may take long
        owner.execute("SELECT FROM vault.conversation FOR UPDATE")
        yield owner


@pytest.mark.parametrize("timeout", [1.0, None], ids=["with a deadline", "without a deadline"])
def test_a_client_that_never_sends_its_request_does_not_stop_the_others(timeout: float | None, small: Service) -> None:
    """It sends the headers of a call, and nothing more: the server's one thread must not wait for it for long."""
    session = small.session(Classification.PUBLIC)
    with _stalled(session, timeout):
        saved = session.save_memory(key="plan", content="x", timeout=_SECONDS)

    assert saved.memory.content == "x"


@contextmanager
def _stalled(session: Caller, timeout: float | None) -> Iterator[None]:
    """A call whose message does not come."""
    end = threading.Event()

    def never() -> Iterator[SaveMemoryRequest]:
        end.wait()
        yield from ()

    stub: Callable[..., Any] = session.channel.stream_unary(
        _SAVE,
        request_serializer=SaveMemoryRequest.SerializeToString,
        response_deserializer=SaveMemoryResponse.FromString,
    )
    call = stub.future(never(), metadata=session.metadata, timeout=timeout)  # type: ignore[attr-defined]
    time.sleep(0.2)
    try:
        yield
    finally:
        end.set()
        call.cancel()
