"""The walls that every call passes stand in one order."""

from __future__ import annotations

import pytest
from muniment_server.monitor.store import Store

from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import RandomIds
from muniment_server.monitor.interceptors import (
    Authenticate,
    Authorize,
    FollowTaint,
    Gate,
    GuardEgress,
    TellErrors,
    Validate,
)
from muniment_server.postgres.pool import Database
from muniment_server.transport import server
from muniment_server.transport.dispatch import _LONG, PutBehindWalls
from muniment_server.transport.server import Limits, Server


@pytest.fixture
def interceptor(monkeypatch):
    """The interceptor that a server is made with."""
    made = []

    class Spy(PutBehindWalls):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            made.append(self)

    monkeypatch.setattr(server, "PutBehindWalls", Spy)
    store = Store(Database(lambda _: "", pool_size=1), RandomIds(), audit_reads_from=Classification.CONFIDENTIAL)
    Server(store, limits=Limits(), open_reflection=False)
    (only,) = made
    return only


def test_the_walls_stand_in_the_pinned_order(interceptor):
    """Errors are told outermost; who calls is known before what is asked is looked at; egress is guarded innermost."""
    assert [type(wall) for wall in interceptor._walls] == [
        TellErrors,
        Gate,
        Authenticate,
        FollowTaint,
        Authorize,
        Validate,
        GuardEgress,
    ]


def test_every_method_of_the_contract_is_known_to_the_interceptor(interceptor):
    assert set(interceptor._methods) == {
        f"/{service.full_name}/{method.name}" for service in server.SERVICES for method in service.methods
    }


def test_searches_and_renderings_run_on_threads_of_their_own():
    """They may take long, and so may not hold every thread."""
    long = {
        f"/{service.full_name}/{method.name}"
        for service in server.SERVICES
        for method in service.methods
        if method.name.startswith(("Search", "Render"))
    }

    assert long == _LONG


def test_c53_channelz_is_off_and_never_served():
    assert server._OPTIONS["grpc.enable_channelz"] == 0
    assert not [service for service in server.SERVICES if "channelz" in service.full_name]


def test_c52_a_page_fits_into_a_message():
    assert server._OPTIONS["grpc.max_send_message_length"] >= 3 * 1024 * 1024 + 512 * 1024
