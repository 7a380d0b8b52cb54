"""Seals the audit log: see `domain.seals`.

Every worker has a sealer, and they need no lock: two that seal the same events take the same number, and one of them
fails. An event is sealed once its transaction is visible, so no open transaction delays the others.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, TypeVar
from uuid import UUID

import psycopg

from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import MunimentError
from muniment_server.domain.ids import TenantNumber
from muniment_server.domain.seals import Seal, SealableEvent, seal_events
from muniment_server.postgres import queries, roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.pool import Database
from muniment_server.postgres.rows import row_of
from muniment_server.postgres.transaction import transaction
from muniment_server.telemetry import worker_metrics as metrics

_LOG = logging.getLogger("muniment.sealer")
_QUERIES = queries.load(__package__, "sealer.sql")
_R = TypeVar("_R")
_INTERVAL = 10.0
_SECONDS = 20.0
"""For one tenant's events in one pass."""
_OVERLAP = timedelta(minutes=2)
"""How long before the last event each pass begins: events become visible when their transactions end, not in the order
of their times."""
_FULL_PASS_INTERVAL = 24 * 3600.0
"""Seconds after which all events are looked at again, for transactions that took longer than the overlap."""


@dataclass(frozen=True, slots=True)
class Position:
    """An event, in the order in which events are looked at."""

    time: datetime
    event_id: UUID


BEGINNING = Position(datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))


@dataclass(frozen=True, slots=True)
class _Scanned(SealableEvent):
    number: int | None
    """The number of its seal."""


@dataclass(frozen=True, slots=True)
class _Tenant:
    tenant: TenantNumber


@dataclass(frozen=True, slots=True)
class _Now:
    now: datetime


class Sealer:
    """Seals, on a thread of its own, while *may_seal* says so."""

    def __init__(self, database: Database, may_seal: Callable[[], bool]) -> None:
        self._database = database
        self._may_seal = may_seal
        self._positions: dict[TenantNumber, Position] = {}
        self._full_pass_at = 0.0

    def start(self) -> None:
        """Start to seal every ten seconds."""
        threading.Thread(target=self._run, name="sealer", daemon=True).start()

    def _run(self) -> None:
        while True:
            if self._may_seal():
                self.seal_all()
            time.sleep(_INTERVAL * random.uniform(0.5, 1.5))  # workers must not seal at once

    def seal_all(self) -> None:
        """Seal what is not sealed, tenant by tenant. A tenant that fails is logged, and delays no other."""
        if time.monotonic() - self._full_pass_at > _FULL_PASS_INTERVAL:
            self._positions.clear()
            self._full_pass_at = time.monotonic()
        began = time.time()
        try:
            with self._database.connection(roles.AUDITOR, Deadline(_SECONDS)) as connection:
                found = tenants(connection)
        except (MunimentError, psycopg.Error) as error:
            _LOG.warning("the audit log was not sealed and will be: %s", type(error).__name__)
            return
        failed = [tenant for tenant in found if not self._seal(tenant)]
        if not failed:
            metrics.AUDIT_SEALED.set(began)

    def _seal(self, tenant: TenantNumber) -> bool:
        try:
            with self._database.connection(roles.AUDITOR, Deadline(_SECONDS)) as connection:
                for position in seal_tenant(connection, tenant, self._positions.get(tenant, BEGINNING)):
                    self._positions[tenant] = Position(position.time - _OVERLAP, position.event_id)
        except psycopg.errors.UniqueViolation:
            return True  # another worker has sealed them
        except (MunimentError, psycopg.Error) as error:
            _LOG.warning("the audit log of a tenant was not sealed and will be: %s", type(error).__name__)
            return False
        return True


def tenants(connection: psycopg.Connection[Any]) -> list[TenantNumber]:
    """All tenants."""
    return [found.tenant for found in _rows(connection, "tenants_to_seal", _Tenant, {})]


def seal_tenant(connection: psycopg.Connection[Any], tenant: TenantNumber, after: Position) -> Iterator[Position]:
    """Seal the events of *tenant* after a position, in batches; yield the position after each batch.

    Raises UniqueViolation if somebody else seals at the same time; then its last batch is not sealed.
    """
    while batch := _rows(connection, "next_events", _Scanned, {"tenant": tenant, **_parameters_of(after)}):
        new = sorted((event for event in batch if event.number is None), key=_chain_and_source)
        for _, events in groupby(new, key=_chain_and_source):
            _seal(connection, list(events))
        after = Position(batch[-1].time, batch[-1].event_id)
        yield after


def last_seal(connection: psycopg.Connection[Any], tenant: TenantNumber, level: Classification) -> Seal | None:
    """The last seal of one chain."""
    found = _rows(connection, "last_seal", Seal, {"tenant": tenant, "level": level})
    return found[0] if found else None


def _seal(connection: psycopg.Connection[Any], events: Sequence[SealableEvent]) -> None:
    (now,) = _rows(connection, "now", _Now, {})
    seal = seal_events(events, last_seal(connection, events[0].tenant, events[0].level), now.now)
    with transaction(connection):
        connection.execute(_QUERIES["add_seal"], asdict(seal))
        connection.execute(
            _QUERIES["add_sealed_events"], {**asdict(seal), "event_ids": [one.event_id for one in events]}
        )


def _chain_and_source(event: SealableEvent) -> tuple[Classification, bool]:
    return event.level, event.by_host


def _parameters_of(position: Position) -> Mapping[str, object]:
    return {"time": position.time, "event_id": position.event_id}


def _rows(connection: psycopg.Connection[Any], name: str, row: type[_R], parameters: Mapping[str, object]) -> list[_R]:
    cursor: Any = connection.cursor(row_factory=row_of(row))
    rows: list[_R] = cursor.execute(_QUERIES[name], parameters).fetchall()
    return rows
