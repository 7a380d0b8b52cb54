"""Taint survives a failover, if the standby is synchronous and no server that was overtaken is used again.

The second half is the server's work, and needs a state directory. The first is the operator's: the last tests show what
an asynchronous standby loses.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import grpc
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import Unavailable
from muniment_server.postgres import pool, roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.epochs import EpochGuard
from muniment_server.postgres.migrate import migrate
from muniment_server.postgres.placement import ONLY, Placement
from muniment_server.postgres.pool import SINGLE, RoleConnection, WrongRole, verify
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.runtime import databases
from muniment_server.runtime.databases import NotReady
from tests.support.answers import events, refusal
from tests.support.commands import SYSTEM_POSTGRES, run
from tests.support.databases import Database
from tests.support.services import Caller, Service, serving
from tests.support.standby import Alone, Cluster, Pair, running_pair

pytestmark = pytest.mark.skipif(not SYSTEM_POSTGRES, reason="NO SYSTEM POSTGRES in /usr/lib/postgresql: not tested")

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
ROUNDS = 10


def _database(hosts: Pair | Alone) -> Database:
    """As much of a database as a server needs."""
    return cast(Database, hosts)


def _served(call: Callable[..., Any], **fields: Any) -> Any:
    """The answer to a call that is repeated until the service is available."""
    end = time.monotonic() + 20
    while True:
        try:
            return call(**fields)
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.UNAVAILABLE  # noqa: PT017 - any other is a failure of the test
            assert time.monotonic() < end, "the promoted server is not found"


def _levels(session: Caller, pair: Pair) -> set[int]:
    """The levels that *session* has and writes at, while connections are made anew and the server chooses the host."""
    seen = set()
    for number in range(ROUNDS):
        seen.add(_served(session.get_session).session.taint)
        seen.add(_served(session.save_memory, key=f"{number}", content="x").memory.classification)
        for cluster in (pair.primary, pair.standby):
            cluster.end_connections()
    return seen


@contextmanager
def caught_connections(kept: list[RoleConnection]) -> Iterator[None]:
    """Keep every connection that is verified in the block."""
    with patch.object(pool, "verify", lambda connection, _: kept.append(connection)):
        yield


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A migrated database on a primary and a standby."""
    with running_pair() as made:
        migrate(made.admin, passwords=dict.fromkeys(roles.SERVING, "trusted"))
        made.caught_up()
        yield made


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state directory of the server."""
    return tmp_path / "state"


@pytest.fixture
def service(pair: Pair, state: Path) -> Iterator[Service]:
    """A server with both hosts in its URL."""
    with serving(_database(pair), epochs=EpochGuard(state)) as served:
        yield served


@pytest.fixture
def raised(service: Service, pair: Pair) -> Caller:
    """A session that was raised after a failover. Then the old primary came back, and all connections were ended."""
    session = service.session(PUBLIC)
    pair.caught_up()
    pair.primary.kill()
    pair.standby.promote()
    _served(session.get_session)
    service.host().raise_taint(session_id=session.session_id, taint=CONFIDENTIAL)
    pair.primary.start()
    pair.standby.end_connections()
    return session


@pytest.mark.proof
def test_the_old_primary_would_say_a_lower_taint(service: Service, pair: Pair, raised: Caller) -> None:
    """What epochs are for: without them, the same calls find the taint of before."""
    with serving(_database(Alone(pair.primary))) as unguarded:
        stale = Caller(unguarded.channel, raised.token)

        assert stale.get_session().session.taint == PUBLIC


def test_taint_does_not_fall_when_the_old_primary_comes_back(service: Service, pair: Pair, raised: Caller) -> None:
    """And the promoted one is found in spite of it."""
    assert _levels(raised, pair) == {CONFIDENTIAL}


def test_the_old_primary_alone_is_refused(
    pair: Pair, state: Path, raised: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    """After a restart too: what was seen is in the state directory."""
    with serving(_database(Alone(pair.primary)), epochs=EpochGuard(state)) as again:
        stale = Caller(again.channel, raised.token)

        assert {refusal(stale.get_session) for _ in range(3)} == {"UNAVAILABLE UNAVAILABLE"}
        assert refusal(stale.save_memory, key="plan", content="x") == "UNAVAILABLE UNAVAILABLE"
    found = [record for record in caplog.records if record.levelname == "CRITICAL"]
    assert ["is on timeline 1, and timeline 2 was seen" in record.message for record in found] == [True]


def test_a_refused_connection_is_closed(pair: Pair, state: Path, raised: Caller) -> None:
    """Or the old primary fills with them."""
    stale = RoleDatabase(Alone(pair.primary).conninfo, pool_sizes=SINGLE, epochs=EpochGuard(state))
    kept: list[RoleConnection] = []
    with caught_connections(kept), pytest.raises(Unavailable), stale.connection(roles.CONTROL, Deadline(5.0)):
        pass
    stale.close()

    assert [connection.closed for connection in kept] == [True] * len(kept) != []


@pytest.mark.proof
def test_a_server_does_not_start_on_the_old_primary(pair: Pair, state: Path, raised: Caller) -> None:
    with pytest.raises(NotReady, match=r"timeline 2 was seen.*muniment database adopt"):
        databases.require_ready(Placement({ONLY: Alone(pair.primary).url}), connections=10, epochs=state)

    databases.require_ready(Placement({ONLY: Alone(pair.standby).url}), connections=10, epochs=state)


@contextmanager
def split(pair: Pair, state: Path) -> Iterator[Caller]:
    """A session on a server with good connections to the old primary, raised by another server on the promoted one.

    Both primaries live, as after a partition of the network.
    """
    with serving(_database(Alone(pair.primary)), epochs=EpochGuard(state)) as behind:
        session = behind.session(PUBLIC)
        assert session.get_session().session.taint == PUBLIC
        pair.caught_up()
        pair.standby.promote()
        with serving(_database(Alone(pair.standby)), epochs=EpochGuard(state)) as ahead:
            ahead.host().raise_taint(session_id=session.session_id, taint=CONFIDENTIAL)
        yield session


@pytest.mark.proof
def test_a_server_leaves_the_old_primary_once_another_process_has_seen_the_new_one(pair: Pair, state: Path) -> None:
    with split(pair, state) as session:
        assert refusal(session.get_session) == "UNAVAILABLE UNAVAILABLE"
        assert refusal(session.save_memory, key="plan", content="x") == "UNAVAILABLE UNAVAILABLE"


@pytest.mark.proof
def test_taint_would_fall_without_the_check_of_pooled_connections(pair: Pair, state: Path) -> None:
    """The proof that the test above can fail."""
    with patch.object(EpochGuard, "is_behind", return_value=False), split(pair, state) as session:
        assert session.get_session().session.taint == PUBLIC
        assert session.save_memory(key="plan", content="x").memory.classification == PUBLIC


def test_c73_a_connection_to_a_standby_is_refused(pair: Pair) -> None:
    """It has the taint of a while ago."""
    conninfo = Alone(pair.standby).url.replace("//", f"//{roles.CONTROL}@")
    with RoleConnection.connect(conninfo, autocommit=True) as connection, pytest.raises(WrongRole):
        verify(connection, roles.CONTROL)


@pytest.mark.proof
def test_an_operator_may_adopt_the_old_primary(pair: Pair, state: Path, raised: Caller, tmp_path: Path) -> None:
    """Then no session of before goes on, each with its audit row."""
    alone = Alone(pair.primary)
    options = ("--database-url", alone.admin, "--state-dir", str(state))
    refused = run(tmp_path, "database", "adopt", *options)
    assert refused.returncode == 1, refused
    assert "to confirm, give --yes" in refused.stderr
    assert json.loads((state / "epoch.json").read_text())["timeline"] == 2

    done = run(tmp_path, "database", "adopt", "--yes", *options)

    assert done.returncode == 0, done.stderr
    with serving(_database(alone), epochs=EpochGuard(state)) as again:
        assert refusal(Caller(again.channel, raised.token).get_session) == "UNAUTHENTICATED CREDENTIAL_INVALID"
        adopted = [event for event in events(again.host()) if event.method == "database adopt"]
        assert [(event.session_id, event.outcome) for event in adopted] == [(raised.session_id, "CLOSED")]


@pytest.mark.proof
def test_an_operators_command_refuses_the_old_primary_and_a_standby(
    pair: Pair, state: Path, service: Service, tmp_path: Path
) -> None:
    """It finds the promoted server once that is the one in the URL."""

    def listed(cluster: Cluster) -> tuple[int, str]:
        options = ("--database-url", Alone(cluster).admin, "--state-dir", str(state))
        done = run(tmp_path, "host-key", "list", *options)
        return done.returncode, done.stderr

    service.host()
    _served(service.host().get_agent, agent_id=service.agent())
    assert listed(pair.primary) == (0, "")
    assert "it is a standby: connect to the primary" in listed(pair.standby)[1]
    pair.standby.promote()
    pair.primary.kill()
    _served(service.host().get_agent, agent_id="alice")
    pair.primary.start()

    assert "it is on timeline 1, and timeline 2 was seen" in listed(pair.primary)[1]
    assert listed(pair.standby) == (0, "")


@pytest.mark.proof
def test_a_synchronous_standby_has_every_acknowledged_raise(service: Service, pair: Pair) -> None:
    """A raise is acknowledged only when the standby has it. Then the primary dies, and later it comes back."""
    session = service.session(PUBLIC)
    pair.make_synchronous()
    with ThreadPoolExecutor(1) as pool:
        with pair.partitioned():
            raising = pool.submit(service.host().raise_taint, session_id=session.session_id, taint=CONFIDENTIAL)
            assert not wait([raising], timeout=1.0).done
        raising.result(20)
    pair.primary.kill()
    pair.standby.promote()

    assert _served(session.get_session).session.taint == CONFIDENTIAL
    pair.primary.start()
    assert _levels(session, pair) == {CONFIDENTIAL}


@pytest.mark.proof
def test_a_raise_that_no_synchronous_standby_has_is_not_acknowledged(service: Service, pair: Pair) -> None:
    """The host gets an error, so it must not reveal what it raised the session for."""
    session = service.session(PUBLIC)
    pair.make_synchronous()
    with pair.partitioned():
        refused = refusal(service.host().raise_taint, session_id=session.session_id, taint=CONFIDENTIAL, timeout=1.0)

    assert refused.startswith("DEADLINE_EXCEEDED")


@pytest.mark.proof
def test_an_asynchronous_standby_may_lack_an_acknowledged_raise(service: Service, pair: Pair) -> None:
    """What the documents warn of: this is why law 4 needs a synchronous standby."""
    session = service.session(PUBLIC)
    pair.caught_up()
    with pair.partitioned():
        service.host().raise_taint(session_id=session.session_id, taint=CONFIDENTIAL)
        pair.primary.kill()
        pair.standby.promote()

    assert _served(session.get_session).session.taint == PUBLIC
