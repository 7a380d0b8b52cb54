"""The gate closes while the grants in the database are not as they must be, and opens when they are again.

A worker looks once a minute. Here its look is called directly, on a real server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from muniment_server.domain.classification import Classification
from muniment_server.monitor.gate import Gate
from muniment_server.postgres.placement import Databases
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from tests.support.databases import Database
from tests.support.services import Caller, Service, set_gate

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
_SERVING, _NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
_BREACHES = {
    "a grant too many": (
        "GRANT SELECT ON muniment_restricted.item TO muniment_public",
        "REVOKE SELECT ON muniment_restricted.item FROM muniment_public",
    ),
    "a right on one column": (
        "GRANT UPDATE (taint) ON vault.conversation TO muniment_internal",
        "REVOKE UPDATE (taint) ON vault.conversation FROM muniment_internal",
    ),
    "a grant too few": (
        "REVOKE INSERT ON muniment_public.audit FROM muniment_public",
        "GRANT INSERT ON muniment_public.audit TO muniment_public",
    ),
    "a view without barrier": (
        "ALTER VIEW muniment_public.session SET (security_barrier = false)",
        "ALTER VIEW muniment_public.session SET (security_barrier = true)",
    ),
    "no right to look": (
        "REVOKE SELECT ON vault.migration FROM muniment_control",
        "GRANT SELECT ON vault.migration TO muniment_control",
    ),
    "a level that is not pinned": (
        "ALTER TABLE muniment_public.item DROP CONSTRAINT item_is_public",
        "ALTER TABLE muniment_public.item ADD CONSTRAINT item_is_public CHECK (level = 1)",
    ),
}


@pytest.fixture
def look(service: Service, database: Database) -> Iterator[Callable[[], None]]:
    """What a worker does once a minute."""
    connections = RoleDatabase(database.conninfo, pool_sizes=SINGLE)
    yield lambda: service.server.check(Databases.of_one(connections), connections=10)
    connections.close()


def test_many_problems_are_counted(
    database: Database, look: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    """A node of a cluster that is added has hundreds, and a worker looks every second while they close the gate."""
    with database.as_owner() as owner:
        owner.execute("REVOKE ALL ON ALL TABLES IN SCHEMA muniment_restricted FROM muniment_restricted")

    look()

    lines = [record.getMessage() for record in caplog.records if "closed" in record.getMessage()]
    assert len(lines) == 21
    assert re.fullmatch(r"gate closed: further problems, which `muniment doctor` names: \d+", lines[-1])


def _health(service: Service) -> int:
    health: Any = health_pb2_grpc.HealthStub(service.channel)  # the stubs of its types know no methods
    return int(health.Check(health_pb2.HealthCheckRequest()).status)


def _codes(service: Service, session: Caller) -> set[grpc.StatusCode]:
    """The statuses of a few calls of everybody."""
    return {
        session.observe("SaveMemory", key="plan", content="x").code,
        session.observe("GetMemory", key="plan").code,
        service.host().observe("ListAgents").code,
        service.host().observe("RaiseTaint", session_id=session.session_id, taint=1).code,
    }


@pytest.mark.parametrize("breach", _BREACHES)
def test_nothing_passes_while_the_grants_are_wrong(
    breach: str, service: Service, look: Callable[[], None], at: Callable[[Classification], Caller]
) -> None:
    session = at(PUBLIC)
    down, up = _BREACHES[breach]
    look()
    assert (_codes(service, session), _health(service)) == ({grpc.StatusCode.OK}, _SERVING)

    with service.database.as_owner() as owner:
        owner.execute(down.encode())
        look()
        assert (_codes(service, session), _health(service)) == ({grpc.StatusCode.UNAVAILABLE}, _NOT_SERVING)

        owner.execute(up.encode())
        look()
        assert (_codes(service, session), _health(service)) == ({grpc.StatusCode.OK}, _SERVING)


def test_the_gate_starts_closed() -> None:
    """A worker that died while it was closed must not open it by coming back."""
    assert not Gate().open


@pytest.mark.parametrize("standing", [True, False])
def test_an_unreachable_database_leaves_the_gate_as_it_is(standing: bool, service: Service, database: Database) -> None:
    set_gate(service.server, is_open=standing)
    away = RoleDatabase(lambda role: database.conninfo(role).replace(database.name, "not_there"), pool_sizes=SINGLE)

    service.server.check(Databases.of_one(away), connections=10)
    away.close()

    assert _health(service) == (_SERVING if standing else _NOT_SERVING)
