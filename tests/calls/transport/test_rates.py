"""Calls a second: who is refused, who is not, and what is kept of it."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2

from muniment.v1.passage_service_pb2 import ImportPassagesRequest, StorePassageRequest
from muniment_server.domain.errors import Refusal, Unauthenticated, Unavailable
from muniment_server.domain.ids import AgentNumber, SessionId, TenantNumber
from muniment_server.domain.principals import SessionIdentity
from muniment_server.monitor.policy import Method
from muniment_server.transport.admission import admission, rates
from muniment_server.transport.admission.rates import Buckets, CountCalls, Rates
from tests.support.answers import CONFIDENTIAL, PUBLIC, RESTRICTED, detail
from tests.support.clock import StoppedClock
from tests.support.services import Caller, Service, failure_of, reason_of, serving

ROOM = 10
"""How many calls a session may make at once whose agent may make one a second."""


@pytest.fixture
def stopped() -> StoppedClock:
    return StoppedClock()


@pytest.fixture
def slow(database, stopped) -> Iterator[Service]:
    """A server on whose clock no time passes, with an agent that may make one call a second."""
    with serving(database, clock=stopped) as service:
        service.host().create_agent(agent_id="alice", limits={"calls_per_second": 1})
        yield service


def calls(session: Caller, count: int) -> None:
    """Calls that must succeed."""
    for _ in range(count):
        session.list_memories()


def refused(session: Caller) -> bool:
    try:
        session.list_memories()
    except grpc.RpcError as error:
        return error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    return False


def test_a_session_may_make_up_for_ten_seconds_and_is_then_refused_until_time_has_passed(slow, stopped):
    session = slow.session(PUBLIC)
    calls(session, ROOM)

    outcome = failure_of(session.list_memories)
    stopped.seconds += 1
    calls(session, 1)

    assert reason_of(outcome) == "RATE_LIMITED"
    assert detail(outcome, error_details_pb2.RetryInfo).retry_delay.seconds == 1
    assert refused(session)


def test_the_sessions_of_an_agent_at_one_level_share_its_limit(slow):
    calls(slow.session(PUBLIC), ROOM - 1)
    other = slow.session(PUBLIC)

    calls(other, 1)

    assert refused(other)


def test_another_level_another_agent_and_the_host_are_not_refused(slow):
    full = slow.session(PUBLIC)
    calls(full, ROOM)
    assert refused(full)

    calls(slow.session(CONFIDENTIAL), 1)
    calls(slow.session(PUBLIC, agent_id="bob"), ROOM + 1)
    for _ in range(2 * ROOM):
        slow.host().get_session(session_id=full.session_id)
    slow.host().raise_taint(session_id=full.session_id, taint=RESTRICTED)
    slow.host().close_session(session_id=full.session_id)


def test_refused_calls_and_those_of_other_methods_count_too(slow):
    session = slow.session(PUBLIC)
    for _ in range(ROOM // 2):
        failure_of(session.save_memory, key="", content="x")
        failure_of(session.get_agent, agent_id="alice")

    assert refused(session)


def test_calls_of_a_raised_session_do_not_count_at_the_level_that_a_server_remembers(slow, stopped):
    """What a session that has seen secrets does must not refuse a call of one that has not."""
    with serving(slow.database, clock=stopped) as other:
        raised, low = _through(other, slow.session(PUBLIC)), _through(other, slow.session(PUBLIC))
        calls(raised, 1)
        slow.host().raise_taint(session_id=raised.session_id, taint=RESTRICTED)
        calls(raised, ROOM - 2)

        calls(low, ROOM - 1)

        assert refused(low)


def _through(service: Service, session: Caller) -> Caller:
    return Caller(service.channel, session.token, session.session_id)


def test_a_session_that_was_raised_is_not_refused_for_what_others_do_at_its_old_level(slow, stopped, monkeypatch):
    monkeypatch.setattr(admission, "_CONFIRMED_SECONDS", 0.0)
    with serving(slow.database, clock=stopped) as other:
        raised, low = _through(other, slow.session(PUBLIC)), _through(other, slow.session(PUBLIC))
        calls(raised, 1)
        slow.host().raise_taint(session_id=raised.session_id, taint=RESTRICTED)
        calls(low, ROOM - 1)
        assert refused(low)

        calls(raised, 1)


def test_a_higher_limit_takes_effect_once_the_session_may_be_looked_up_again(slow, stopped, monkeypatch):
    session = slow.session(PUBLIC)
    calls(session, ROOM)
    slow.host().update_agent(agent_id="alice", limits={"calls_per_second": 2})
    stopped.seconds += 0.5
    assert refused(session)

    monkeypatch.setattr(admission, "_CONFIRMED_SECONDS", 0.0)

    calls(session, 1)


def test_a_lower_limit_takes_effect_once_it_is_no_longer_remembered(slow, monkeypatch):
    slow.host().update_agent(agent_id="alice", limits={"calls_per_second": 100})
    session = slow.session(PUBLIC)
    calls(session, ROOM)
    slow.host().update_agent(agent_id="alice", limits={"calls_per_second": 1})
    calls(session, ROOM)

    monkeypatch.setattr(admission, "REMEMBERED_SECONDS", 0.0)
    calls(session, ROOM)

    assert refused(session)


@pytest.mark.parametrize("passages", [[], ["first"]], ids=["nothing sent", "one passage"])
def test_an_import_that_ends_after_a_raise_does_not_count_below(slow, passages):
    """The raised session chooses when it ends."""
    importing, low = slow.session(PUBLIC), slow.session(PUBLIC)
    going_on = threading.Event()
    answer = open_import(importing, passages, going_on)
    slow.host().raise_taint(session_id=importing.session_id, taint=RESTRICTED)
    going_on.set()
    with contextlib.suppress(grpc.RpcError):
        answer.result()

    calls(low, ROOM)

    assert refused(low)


def open_import(session: Caller, passages: list[str], going_on: threading.Event) -> Any:
    """Begin an import that sends *passages*, and ends later."""
    begun = threading.Event()

    def messages() -> Iterator[bytes]:
        for content in passages:
            yield ImportPassagesRequest(passage=StorePassageRequest(content=content)).SerializeToString()
        begun.set()
        going_on.wait(20)

    call: Any = session.channel.stream_unary("/muniment.v1.PassageService/ImportPassages")
    answer = call.future(messages(), metadata=session.metadata, timeout=20)
    assert begun.wait(20)
    time.sleep(0.5)  # for the server to take it up
    return answer


def test_what_an_agent_owes_is_forgotten_after_ten_seconds(stopped):
    counting = Rates(stopped)
    for _ in range(30 * ROOM):
        counting.count_ended(_identity(1, per_second=1))
    assert not counting.admit(_identity(2, per_second=1))

    stopped.seconds += ROOM + 1

    assert counting.admit(_identity(2, per_second=1))


def test_of_unconfirmed_calls_one_a_minute_counts_however_many_sessions_there_are(stopped, monkeypatch):
    """One that no statement will ever confirm is forgotten then, as is the level that was remembered."""
    monkeypatch.setattr(rates, "_MOST_BUCKETS", 10)
    counting = Rates(stopped)
    first = [counting.admit_unconfirmed(_identity(number)) for number in range(20)]
    again = [counting.admit_unconfirmed(_identity(number)) for number in range(19, 10, -1)]
    stopped.seconds += 60

    assert (first, again) == ([True] * 20, [False] * 9)
    assert counting.admit_unconfirmed(_identity(19))
    assert len(counting._unconfirmed._empty_until) == 1


def test_a_new_limit_begins_anew(stopped):
    counting = Rates(stopped)
    for _ in range(ROOM):
        counting.count_ended(_identity(1, per_second=1))

    assert not counting.admit(_identity(2, per_second=1))
    assert counting.admit(_identity(2, per_second=2))


@pytest.mark.parametrize("error", [Unauthenticated(), Unavailable()], ids=lambda error: type(error).__name__)
def test_a_call_that_no_statement_has_confirmed_counts_for_its_session_only(stopped, error):
    counting, session = Rates(stopped), _identity(1)
    _end(CountCalls(counting), session, error)
    counting.admit(session)

    assert not counting.admit(session)
    assert counting.admit(_identity(2))


def test_a_call_that_was_refused_for_a_rule_counts_for_its_agent(stopped):
    counting = Rates(stopped)
    for _ in range(ROOM):
        _end(CountCalls(counting), _identity(1, per_second=1), Refusal())

    assert not counting.admit(_identity(2, per_second=1))


def _identity(number: int, per_second: int = 0) -> SessionIdentity:
    """A session of one agent. Its buckets hold one call, unless a rate is given."""
    rate: Any = per_second or 1 / ROOM
    return SessionIdentity(TenantNumber(1), SessionId(number), PUBLIC, AgentNumber(1), rate)  # type: ignore[arg-type]


def _end(interceptor: Any, session: SessionIdentity, error: Exception) -> None:
    class Called:
        principal = session
        method = Method.outside_the_contract("Called", for_sessions=True)

    def fail(_: Any) -> Any:
        raise error

    with contextlib.suppress(type(error)):
        interceptor(Called(), fail)


def test_a_full_bucket_is_forgotten(stopped):
    buckets = Buckets(stopped)
    buckets.take("one", 1)
    stopped.seconds += 1.5
    buckets.take("other", 1)

    assert list(buckets._empty_until) == ["other"]


def test_a_bucket_that_has_just_been_used_is_kept_while_time_passes():
    """A fast clock: a bucket of a million a second is full again before the next look at the time."""
    seconds = itertools.count()
    buckets = Buckets(lambda: float(next(seconds)))

    buckets.take("one", 1_000_000)

    assert list(buckets._empty_until) == ["one"]


def test_no_more_buckets_are_kept_than_a_fixed_number(stopped, monkeypatch):
    monkeypatch.setattr(rates, "_MOST_BUCKETS", 3)
    buckets = Buckets(stopped)
    for key in "abcab":
        buckets.take(key, 1)
    buckets.take("d", 1)

    assert list(buckets._empty_until) == ["a", "b", "d"]


def test_calls_from_many_threads_are_all_counted(stopped):
    counting, session = Rates(stopped), _identity(1, per_second=100)

    def count() -> None:
        for _ in range(100):
            counting.admit(session)

    threads = [threading.Thread(target=count) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not counting.admit(session)
