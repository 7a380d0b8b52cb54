"""Taint survives a failover: a server that was overtaken is not used again, whichever process looks, and whenever.

A standby follows asynchronously, as most do. What it had not received when the primary died is lost: that is said in
the documents, and not tested. What was acknowledged by the promoted one is not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
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
from muniment_server.postgres.pool import SINGLE, RoleConnection, WrongRole, verify
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.runtime import databases
from muniment_server.runtime.databases import NotReady
from tests.support.answers import events, refusal
from tests.support.commands import SYSTEM_POSTGRES, run
from tests.support.databases import Database
from tests.support.services import Caller, Service, serving
from tests.support.standby import Alone, Pair, running_pair

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
    """A session that was raised after a failover. Then the old primary came back, and all connections ended."""
    session = service.session(PUBLIC)
    pair.caught_up()
    pair.primary.kill()
    pair.standby.promote()
    _served(session.get_session)
    service.host().raise_taint(session_id=session.session_id, taint=CONFIDENTIAL)
    pair.primary.start()
    pair.standby.end_connections()
    return session


def test_the_old_primary_would_say_a_lower_taint(service: Service, pair: Pair, raised: Caller) -> None:
    """What epochs are for: without them, the same calls find the taint of before."""
    with serving(_database(Alone(pair.primary))) as unguarded:
        stale = Caller(unguarded.channel, raised.token)

        assert stale.get_session().session.taint == PUBLIC


def test_taint_does_not_fall_when_the_old_primary_comes_back(service: Service, pair: Pair, raised: Caller) -> None:
    """And the promoted one is found in spite of it."""
    seen = set()
    for number in range(ROUNDS):
        seen.add(_served(raised.get_session).session.taint)
        seen.add(_served(raised.save_memory, key=f"{number}", content="x").memory.classification)
        pair.standby.end_connections()

    assert seen == {CONFIDENTIAL}


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
    with caught_connections(kept), pytest.raises(Unavailable), stale.connection(roles.CONTROL, Deadline(0.5)):
        pass
    stale.close()

    assert [connection.closed for connection in kept] == [True] * len(kept) != []


def test_a_server_does_not_start_on_the_old_primary(pair: Pair, state: Path, raised: Caller) -> None:
    with pytest.raises(NotReady, match=r"timeline 2 was seen.*muniment database adopt"):
        databases.require_ready(Alone(pair.primary).url, connections=10, epochs=EpochGuard(state))

    databases.require_ready(Alone(pair.standby).url, connections=10, epochs=EpochGuard(state))


def test_a_worker_leaves_the_old_primary_once_another_has_seen_the_new_one(pair: Pair, state: Path) -> None:
    """Though its own connection is good: both primaries live, as after a partition of the network."""
    of_one, of_other = (
        RoleDatabase(Alone(cluster).conninfo, pool_sizes=SINGLE, epochs=EpochGuard(state))
        for cluster in (pair.primary, pair.standby)
    )
    with of_one.connection(roles.CONTROL, Deadline()) as connection:
        connection.execute("SELECT 1")
    pair.standby.promote()
    with of_one.connection(roles.CONTROL, Deadline()) as connection:
        connection.execute("SELECT 1")
    with of_other.connection(roles.CONTROL, Deadline()) as connection:
        connection.execute("SELECT 1")
    with pytest.raises(Unavailable), of_one.connection(roles.CONTROL, Deadline()):
        pass
    of_one.close()
    of_other.close()


def test_c73_a_connection_to_a_standby_is_refused(pair: Pair) -> None:
    """It has the taint of a while ago."""
    conninfo = Alone(pair.standby).url.replace("//", f"//{roles.CONTROL}@")
    with RoleConnection.connect(conninfo, autocommit=True) as connection, pytest.raises(WrongRole):
        verify(connection, roles.CONTROL)


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
