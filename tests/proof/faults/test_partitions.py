"""A network between the server and its database that delays, loses, or forgets: nothing acknowledged is lost.

The proxy's own kernel acknowledges every packet, so no time-out of TCP helps here. What a kernel would notice by itself
comes sooner than what is tested.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest
from psycopg import conninfo as libpq

from muniment.v1.note_pb2 import Tier
from muniment_server.domain.classification import Classification
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.postgres import pool
from tests.proof.faults import promises
from tests.proof.faults.load import Load
from tests.proof.faults.processes import wait_until
from tests.support.databases import Database, cloned
from tests.support.proxy import ENDINGS, HELD, Direction, Proxy, running_proxy
from tests.support.services import Caller, Service, new_host_key, serving

_CHECKPOINT = 10
_SLOWEST_RECOVERY = 45.0
_LONGEST = 2.5
"""Seconds that bytes are held back. A caller gives up after two."""
_MAX_WRITES = 30
"""How many are acknowledged between two partitions, at most."""
_FORGOTTEN = 10.0
"""Seconds after which the database learns of a connection that is gone, as TCP would notice later."""
_IDLE_SECONDS = 5
"""After so long without a statement, Postgres ends a transaction: see `pool.SETTINGS`."""
_HALF_SENT = 0.5
"""Seconds after which everything that the server sends before it waits has arrived."""
_IN_TRANSACTION = b"""
SELECT pid FROM pg_stat_activity
 WHERE datname = current_database()
   AND (state LIKE 'idle in transaction%' OR (state, wait_event) = ('active', 'ClientRead'))
"""
"""For the superuser: to others, Postgres hides what a connection does."""


@dataclass(frozen=True, slots=True)
class _Proxied(Database):
    """A database that the server reaches through a proxy, and the test directly."""

    proxy: Proxy

    def conninfo(self, role: str) -> str:
        direct = super(_Proxied, self).conninfo(role)
        if role == "postgres":
            return direct
        return libpq.make_conninfo(direct, host="127.0.0.1", port=self.proxy.port, requirepeer=None)


@pytest.fixture
def database(postgres: EmbeddedPostgres) -> Iterator[_Proxied]:
    """A fresh database behind a proxy."""
    with cloned(postgres) as direct:
        host = libpq.conninfo_to_dict(direct.admin)["host"]
        with running_proxy(Path(str(host)) / ".s.PGSQL.5432") as proxy:
            yield _Proxied(direct.postgres, direct.name, proxy)


@pytest.fixture
def service(database: _Proxied) -> Iterator[Service]:
    """A server that reaches its database through the proxy."""
    with serving(database) as service:
        yield service


@pytest.fixture
def load(database: _Proxied, service: Service) -> Load:
    """Callers of the server."""
    return Load(service.address, new_host_key(database, "acme", Classification.RESTRICTED))


class Partitions:
    """Makes one partition after the other, each with another end."""

    def __init__(self, proxy: Proxy, load: Load) -> None:
        self._proxy = proxy
        self._load = load
        self._dice = random.Random(5)
        self.recoveries: dict[str, list[float]] = {ending: [] for ending in ENDINGS}
        self.noticed = 0
        """After how many partitions somebody was served again only once the database had learned of it."""

    def cycle(self, number: int) -> None:
        """One partition, and its recovery. A forgotten one lasts until all are served, or ten seconds."""
        held, ending = HELD[number // len(ENDINGS) % len(HELD)], ENDINGS[number % len(ENDINGS)]
        enough = len(self._load.acknowledged) + self._dice.randrange(_MAX_WRITES)
        wait_until(lambda: _has_acknowledged(self._load, enough), "writes between partitions")
        with ExitStack() as ghosts:
            with self._proxy.holding(*held):
                time.sleep(self._dice.uniform(0.1, _LONGEST))
                if ending == "lost":
                    self._proxy.lose()
                if ending == "forgotten":
                    ghosts.enter_context(self._proxy.ghosts())
            over = time.monotonic()
            while time.monotonic() < over + _FORGOTTEN and not self._load.recovered_since(over):
                time.sleep(0.005)
        # If only a part of what was sent at once has arrived, Postgres waits a minute for the rest.
        self.noticed += not self._load.recovered_since(over)
        wait_until(lambda: self._load.recovered_since(over), f"recovery, {held} {ending}", seconds=_SLOWEST_RECOVERY)
        self.recoveries[ending].append(time.monotonic() - over)


@pytest.mark.proof
def test_what_was_acknowledged_survives_every_partition(kills: int, database: _Proxied, load: Load) -> None:
    """And is there once; audit rows are the effects; no taint falls; no connection is left in a transaction."""
    partitions = Partitions(database.proxy, load)
    with load.running(), database.as_owner() as owner, database.as_admin() as admin:
        for number in range(max(len(ENDINGS), kills // 2)):
            partitions.cycle(number)
            if (number + 1) % _CHECKPOINT == 0:
                with load.paused():
                    wait_until(lambda: not _in_transaction(admin), "the end of every transaction")
                    assert promises.broken(owner, load) == []

    with database.as_owner() as owner, database.as_admin() as admin:
        wait_until(lambda: not _in_transaction(admin), "the end of every transaction")
        assert promises.broken(owner, load) == []
    assert load.surprises == []
    acknowledged = dict(Counter(save.kind.name.lower() for save in load.acknowledged))
    print(f"\n{acknowledged} acknowledged, {len(load.unknown)} not, {dict(load.codes)}")
    print(f"{partitions.noticed} recovered once the database had learned of it, seconds: {partitions.recoveries}")


def test_a_transaction_whose_client_is_gone_ends_by_itself(database: _Proxied, service: Service) -> None:
    """It holds the locks of its conversation. No raise would come through."""
    with database.as_admin() as admin, _forgotten_write(database, service, admin) as session:
        wait_until(lambda: _can_be_raised(service, session), "the raise", seconds=_IDLE_SECONDS + 25)


@pytest.mark.proof
def test_without_a_time_limit_it_would_stay(
    database: _Proxied, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "SETTINGS", {**pool.SETTINGS, "idle_in_transaction_session_timeout": "0"})
    with database.as_admin() as admin, _forgotten_write(database, service, admin) as session:
        with pytest.raises(AssertionError, match="the raise"):
            wait_until(lambda: _can_be_raised(service, session), "the raise", seconds=_IDLE_SECONDS + 5)

        assert _in_transaction(admin)


@contextmanager
def _forgotten_write(database: _Proxied, service: Service, admin: psycopg.Connection[Any]) -> Iterator[Caller]:
    """A session. Within the block, the database waits for the rest of its write, whose server is gone."""
    session = service.session(Classification.PUBLIC)
    session.add_note(tier=Tier.TIER_MEMORY, content="It opens the connections.")
    with ThreadPoolExecutor(1) as callers, ExitStack() as ghosts:
        with database.proxy.holding(Direction.ANSWERS):
            callers.submit(session.observe, "AddNote", tier=Tier.TIER_MEMORY, content="It is cut in the middle.")
            wait_until(lambda: _in_transaction(admin), "a transaction")
            time.sleep(_HALF_SENT)
            ghosts.enter_context(database.proxy.ghosts())
        yield session


def _can_be_raised(service: Service, session: Caller) -> bool:
    raised = service.host().observe("RaiseTaint", session_id=session.session_id, taint=Classification.CONFIDENTIAL)
    return raised.code is grpc.StatusCode.OK


def _has_acknowledged(load: Load, count: int) -> bool:
    return len(load.acknowledged) >= count


def _in_transaction(admin: psycopg.Connection[Any]) -> set[int]:
    """The processes of Postgres that wait for the rest of a transaction, or of what was sent at once."""
    return {row.pid for row in admin.execute(_IN_TRANSACTION).fetchall()}
