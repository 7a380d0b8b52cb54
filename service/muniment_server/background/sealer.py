"""Seals the audit log: see `domain.seals`.

Every worker has a sealer, and they need no lock: of two that seal the same events, one finds the number taken. An event
is sealed once its transaction is visible, so no open transaction delays the others.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

import psycopg

from muniment_server.domain.ids import TenantNumber
from muniment_server.domain.seals import Seal, SealableEvent, seal_events
from muniment_server.postgres import queries, roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.placement import PlacedDatabase
from muniment_server.postgres.rows import rows_of, values_of
from muniment_server.telemetry import worker_metrics as metrics

_LOG = logging.getLogger("muniment.sealer")
_QUERIES = queries.load(__package__, "sealer.sql")
_INTERVAL = 10.0
_FRESH = timedelta(seconds=5)
"""A tenant whose last seal is younger is skipped: another worker is sealing it."""
_SECONDS = 20.0
"""The time limit for the new events of one tenant in one pass."""
_OVERLAP = timedelta(minutes=2)
"""How long before the last event a pass begins: events become visible when their transactions end, not in the order of
their times."""
_START = timedelta(hours=1)
"""How long before now a new sealer begins. What is older is left to the rescans."""
_RESCAN_SECONDS = 0.5
"""The time limit for the rescan of one tenant in one pass. A rescan goes through the whole log, because some events
become visible late."""
_RESCAN_INTERVAL = 600.0


@dataclass(frozen=True, slots=True)
class Position:
    """How far a pass has come. It goes through events by time, then by id."""

    time: datetime
    event_id: UUID


BEGINNING = Position(datetime(1999, 1, 1, tzinfo=UTC), UUID(int=0))
"""No event is older."""


class Raced(Exception):
    """Another worker added a seal to the same chain at the same time. The next pass seals what is left."""


@dataclass(frozen=True, slots=True)
class _Scanned(SealableEvent):
    number: int | None
    """The number of its seal, or None if it is not sealed."""


@dataclass(slots=True)
class _Progress:
    """How far the sealer has come in one tenant's log."""

    new: Position
    rescan: Position | None = BEGINNING
    """None between two rescans."""
    rescanned_at: float = 0.0


class Sealer:
    """Seals the log of one server, on a thread of its own, while *may_seal* says so."""

    def __init__(self, placed: PlacedDatabase, may_seal: Callable[[], bool]) -> None:
        self._database = placed.database
        self._sealed = metrics.AUDIT_SEALED.labels(placed.name)
        self._may_seal = may_seal
        self._progress: dict[TenantNumber, _Progress] = {}
        self._is_ended = threading.Event()

    def start(self) -> None:
        """Start to seal every ten seconds."""
        threading.Thread(target=self._run, name="sealer", daemon=True).start()

    def end(self) -> None:
        """Begin no other pass. One that fails from now on is not logged: the worker closes its connections."""
        self._is_ended.set()

    def _run(self) -> None:
        while not self._is_ended.is_set():
            if self._may_seal():
                self.seal_all()
            self._is_ended.wait(_INTERVAL * random.uniform(0.5, 1.5))  # workers must not seal at once

    def seal_all(self) -> None:
        """Seal what is not sealed, tenant by tenant. A tenant that fails is logged, and delays no other."""
        began = time.time()
        try:
            with self._database.connection(roles.AUDITOR, Deadline(_SECONDS)) as connection:
                found = tenants(connection)
        except Exception as error:  # noqa: BLE001 - whatever it is, the log must be sealed later
            self._warn("the audit log was not sealed, and will be later", error)
            return
        done = [self._seal(tenant) for tenant in found]
        if all(done):
            self._sealed.set(began - _FRESH.total_seconds())

    def _seal(self, tenant: TenantNumber) -> bool:
        """Whether the new events of *tenant* are sealed."""
        try:
            with self._database.connection(roles.AUDITOR, Deadline(_SECONDS)) as connection:
                return self._pass(connection, tenant)
        except Raced:
            return False
        except Exception as error:  # noqa: BLE001 - whatever it is, other tenants must not wait
            self._warn("the audit log of a tenant was not sealed, and will be later", error)
            return False

    def _warn(self, what: str, error: Exception) -> None:
        if not self._is_ended.is_set():
            _LOG.warning("%s: %s", what, type(error).__name__)

    def _pass(self, connection: psycopg.Connection[Any], tenant: TenantNumber) -> bool:
        now = _now(connection)
        if any(timedelta(0) <= now - seal.time < _FRESH for seal in last_seals(connection, tenant).values()):
            return True
        progress = self._progress.setdefault(tenant, _Progress(Position(now - _START, UUID(int=0))))
        latest = now - _OVERLAP  # an event may be dated in the future
        if progress.new.time > latest:
            progress.new = Position(latest, UUID(int=0))
        done = True
        for position in _until(_SECONDS, seal_tenant(connection, tenant, progress.new)):
            done = position is not None
            if position is not None:
                progress.new = Position(position.time - _OVERLAP, position.event_id)
        self._rescan(connection, tenant, progress)
        return done

    def _rescan(self, connection: psycopg.Connection[Any], tenant: TenantNumber, progress: _Progress) -> None:
        """Seal older events, for half a second: a new server has not seen them, and some become visible late."""
        if progress.rescan is None:
            if time.monotonic() - progress.rescanned_at < _RESCAN_INTERVAL:
                return
            progress.rescan = BEGINNING
        for position in _until(_RESCAN_SECONDS, seal_tenant(connection, tenant, progress.rescan)):
            if position is None:
                return
            progress.rescan = position
        progress.rescan, progress.rescanned_at = None, time.monotonic()


def _until(seconds: float, positions: Iterator[Position]) -> Iterator[Position | None]:
    """The *positions*, until *seconds* have passed. Then None, to say that there may be more."""
    began = time.monotonic()
    for position in positions:
        yield position
        if time.monotonic() - began > seconds:
            yield None
            return


def tenants(connection: psycopg.Connection[Any]) -> list[TenantNumber]:
    """All tenants."""
    return values_of(connection, _QUERIES, "tenants_to_seal")


def seal_tenant(connection: psycopg.Connection[Any], tenant: TenantNumber, after: Position) -> Iterator[Position]:
    """Seal the events of *tenant* after a position, in batches; yield the position after each batch.

    Raises Raced if another sealer adds a seal to the same chain at the same time; then the rest of the batch is not
    sealed.
    """
    last = last_seals(connection, tenant)
    while batch := rows_of(connection, _QUERIES, "next_events", _Scanned, tenant=tenant, **asdict(after)):
        new = sorted((event for event in batch if event.number is None), key=_chain_and_source)
        for (chain, _), events in groupby(new, key=_chain_and_source):
            last[chain] = _seal(connection, list(events), last.get(chain))
        after = Position(batch[-1].time, batch[-1].event_id)
        yield after


def last_seals(connection: psycopg.Connection[Any], tenant: TenantNumber) -> dict[int, Seal]:
    """The last seal of each chain that has one."""
    return {seal.level: seal for seal in rows_of(connection, _QUERIES, "last_seals", Seal, tenant=tenant)}


def _seal(connection: psycopg.Connection[Any], events: Sequence[SealableEvent], last: Seal | None) -> Seal:
    """Seal *events*. *last* must have been read before the events: then no event is sealed twice."""
    seal = seal_events(events, last, _now(connection))
    event_ids = [event.event_id for event in events]
    if not values_of(connection, _QUERIES, "add_seal", event_ids=event_ids, **asdict(seal)):
        raise Raced
    return seal


def _now(connection: psycopg.Connection[Any]) -> datetime:
    now: datetime = values_of(connection, _QUERIES, "now")[0]
    return now


def _chain_and_source(event: SealableEvent) -> tuple[int, bool]:
    return event.chain, event.by_host
