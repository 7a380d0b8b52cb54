"""The interceptors that every call passes, in one order."""

from __future__ import annotations

from uuid import UUID

import pytest

from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.ids import AgentNumber, RandomIds, SessionId, TenantNumber
from muniment_server.domain.items import PAGE_BYTES
from muniment_server.domain.principals import SessionIdentity
from muniment_server.monitor.gate import Gate
from muniment_server.monitor.interceptors import (
    Authenticate,
    Authorize,
    EgressFilter,
    MapErrors,
    StateIntegrity,
    Validate,
)
from muniment_server.monitor.retry import RetryOnTaintChange
from muniment_server.monitor.scopes import Scopes
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.placement import Databases
from muniment_server.postgres.pool import SINGLE, Database
from muniment_server.search.embeddings import no_embedder
from muniment_server.search.search import Searcher
from muniment_server.transport import server
from muniment_server.transport.admission.pools import Limits, Pools
from muniment_server.transport.admission.rates import CountCalls
from muniment_server.transport.dispatch import Dispatcher
from muniment_server.transport.full_disk import RefuseWhenFull
from muniment_server.transport.server import Server

ORDER = [
    MapErrors, CountCalls, Gate, Authenticate, RetryOnTaintChange, Authorize, Validate, EgressFilter, StateIntegrity,
    RefuseWhenFull,
]  # fmt: skip


@pytest.fixture
def scopes():
    """Scopes over no database: nothing is asked of it."""
    database = Database(lambda _: "", pool_sizes=SINGLE)
    yield Scopes(Databases.of_one(database), RandomIds(), audit_reads_from=Classification.CONFIDENTIAL)
    database.close()


@pytest.fixture
def dispatcher(monkeypatch, scopes):
    """The dispatcher that a server is made with."""
    made = []

    class Spy(Dispatcher):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            made.append(self)

    monkeypatch.setattr(server, "Dispatcher", Spy)
    Server(scopes, Searcher(no_embedder), disk=Disk(None), limits=Limits(), open_reflection=False)
    (only,) = made
    return only


def test_every_call_of_a_server_passes_the_interceptors_in_the_pinned_order(dispatcher):
    """Errors are mapped outermost; who calls is known before what is asked is looked at; behind the filter, a call is
    only refused.
    """
    assert [type(interceptor) for interceptor in dispatcher._interceptors] == ORDER


def test_every_method_of_the_contract_is_known_to_the_dispatcher(dispatcher):
    assert set(dispatcher._methods) == {
        f"/{service.full_name}/{method.name}" for service in server.SERVICES for method in service.methods
    }


def test_calls_that_may_take_long_run_on_threads_of_their_own(dispatcher):
    """A search or a rendering must not hold every thread. No other call may hold those of searches."""
    public = Label.PUBLIC
    pools, session = (
        Pools.of(Limits()),
        SessionIdentity(TenantNumber(1), SessionId(UUID(int=1)), public, AgentNumber(0), 1),
    )
    of_sessions = {
        method.name: pools.pool_for(session, method) for method in dispatcher._methods.values() if method.for_sessions
    }
    pools.stop()

    assert {name for name, pool in of_sessions.items() if pool is pools.long} == {
        name for name in of_sessions if name.startswith(("Search", "Render"))
    }


def test_c53_channelz_is_off_and_never_served():
    assert server._OPTIONS["grpc.enable_channelz"] == 0
    assert not [service for service in server.SERVICES if "channelz" in service.full_name]


def test_c52_a_page_fits_into_a_message():
    assert server._OPTIONS["grpc.max_send_message_length"] >= PAGE_BYTES + 512 * 1024
