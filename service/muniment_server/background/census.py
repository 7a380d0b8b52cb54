"""What the metrics say of the database. It is asked as the control role, which reads no content."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psycopg
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from psycopg import conninfo as libpq

from muniment_server.domain.classification import Label
from muniment_server.domain.errors import MunimentError
from muniment_server.postgres import queries, roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.disk import free_bytes
from muniment_server.postgres.driver_errors import NO_SQLSTATE
from muniment_server.postgres.epochs import EpochGuard
from muniment_server.postgres.placement import Placement
from muniment_server.postgres.pool import Database, RoleConnection
from muniment_server.postgres.rows import rows_of
from muniment_server.process.assignment import epoch_directory
from muniment_server.telemetry.metrics import OTHERS

_LOG = logging.getLogger("muniment.census")
_QUERIES = queries.load(__package__, "census.sql")
_COUNT_INTERVAL = 30.0
_PING_INTERVAL = 1.0
_COUNT_SECONDS = 2.0
_PING_SECONDS = 1.0
_WAIT_SECONDS = 3.0
"""How long a reader of the metrics waits for the database. Readers are cut off after more."""
_MOST_TENANTS = 10
"""How many tenants the metrics name. The rest is summed up."""


@dataclass(frozen=True, slots=True)
class _Agents:
    live: int
    deleted: int


@dataclass(frozen=True, slots=True)
class _Stored:
    tenant: int
    label: int
    bytes: int


class Census:
    """Whether the database answers, asked every second, and what it has, counted every half minute: while it is read.

    The database is asked in a thread of its own: if it hangs, the thread hangs but no reader does.
    """

    def __init__(self, database: Database, directory: Path | None, clock: Callable[[], float] = time.time) -> None:
        """*directory* is that of the embedded Postgres. None: Postgres is elsewhere."""
        self._database = database
        self._directory = directory
        self._clock = clock
        self._thread: threading.Thread | None = None
        self._asked = 0.0
        self._is_pinged = False
        """Whether it is known if the database answers, since it was asked."""
        self._sqlstate = ""
        self._workers: Mapping[str, bool] = {}
        """Whether each worker of a cluster answers, by its address."""
        self._checksum_failures: int | None = None
        self._down_since: float | None = None
        self._counted = 0.0
        self._counts: list[GaugeMetricFamily] = []
        self.names: Mapping[str, str] = {}
        """The name of each tenant, by its number."""

    def families(self) -> Iterator[GaugeMetricFamily]:
        """The metrics. While the database is away, only that it is, why, and since when."""
        self._wait(self.ask())
        down_since = self._down_since
        up = GaugeMetricFamily(
            "muniment_database_up",
            "1 if the database answers a role; else the SQLSTATE of the failure says why.",
            labels=("role", "sqlstate"),
        )
        up.add_metric((roles.CONTROL, self._sqlstate), not self._sqlstate)
        yield up
        if down_since is None:
            yield from self._of_database()
        else:
            text = "When the database was found not to answer."
            yield GaugeMetricFamily("muniment_database_down_since_timestamp_seconds", text, value=down_since)
        if self._directory is not None:
            text = "What is free on the disk of the database."
            yield GaugeMetricFamily("muniment_disk_free_bytes", text, value=free_bytes(self._directory))

    def _of_database(self) -> Iterator[GaugeMetricFamily]:
        if self._workers:
            text = "On a cluster: 1 if a worker answers. All are 0 while one hangs, since which is not known."
            yield _family("muniment_node_up", text, "node", self._workers)
        if self._checksum_failures is not None:
            text = "How often Postgres has read a damaged page of the database."
            yield GaugeMetricFamily("muniment_database_checksum_failures", text, value=self._checksum_failures)
        yield from self._counts

    def ask(self) -> threading.Thread:
        """Ask the database, unless it was just asked; return the thread that does, or has just done so."""
        found = self._thread
        if found is None or (not found.is_alive() and self._clock() - self._asked >= _PING_INTERVAL):
            self._asked, self._is_pinged = self._clock(), False
            found = self._thread = threading.Thread(target=self._ask, name="census", daemon=True)
            found.start()
        return found

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def _wait(self, asking: threading.Thread) -> None:
        asking.join(max(0.0, self._asked + _WAIT_SECONDS - self._clock()))
        if not self._is_pinged:
            self._report_down(NO_SQLSTATE)

    def _ask(self) -> None:
        try:
            with self._database.connection(roles.CONTROL, Deadline(_PING_SECONDS)) as connection:
                connection.ping()
                self._checksum_failures = checksum_failures(connection)
        except MunimentError as error:
            self._report_down(error.cause)
        else:
            self._sqlstate, self._down_since = "", None
        self._is_pinged = True
        if self._down_since is None:
            self._ask_workers()
        if self._down_since is None and self._clock() - self._counted >= _COUNT_INTERVAL:
            self._count()

    def _ask_workers(self) -> None:
        workers: Iterable[str] = self._workers
        try:
            with self._database.connection(roles.CONTROL, Deadline(_PING_SECONDS)) as connection:
                workers = connection.engine.nodes(connection)
                self._workers = connection.engine.answering_nodes(connection) if workers else {}
        except (MunimentError, psycopg.Error):  # most likely one hangs: which is not known, as they are asked together
            self._workers = dict.fromkeys(workers, False)

    def _report_down(self, sqlstate: str) -> None:
        self._sqlstate, self._down_since = sqlstate, self._down_since or self._asked

    def _count(self) -> None:
        """Count anew. If that fails, such as in a database under load, the counts from before stay."""
        try:
            with self._database.connection(roles.CONTROL, Deadline(_COUNT_SECONDS)) as connection:
                self._counts = list(self._families_of(connection))
        except (MunimentError, psycopg.Error) as error:
            _LOG.warning("what the database has was not counted: %s", type(error).__name__)
        self._counted = self._clock()

    def _families_of(self, connection: RoleConnection) -> Iterator[GaugeMetricFamily]:
        agents = rows_of(connection, _QUERIES, "agents", _Agents)[0]
        yield GaugeMetricFamily("muniment_agents", "Agents.", value=agents.live)
        yield GaugeMetricFamily("muniment_agents_being_erased", "Deleted agents with rows left.", value=agents.deleted)
        sessions = connection.execute(_QUERIES["sessions"]).fetchall()
        yield _by_label("muniment_sessions", "Open sessions, by the taint of their conversations.", dict(sessions))
        self.names = {str(tenant): name for tenant, name in connection.execute(_QUERIES["tenants"])}
        with_labels, of_tenants = Counter[int](), Counter[str]()
        for row in rows_of(connection, _QUERIES, "stored", _Stored):
            with_labels[row.label] += row.bytes
            of_tenants[str(row.tenant)] += row.bytes
        yield _by_label("muniment_stored_bytes", "Bytes stored, as they count for limits.", with_labels)
        yield _by_tenant("muniment_tenant_stored_bytes", "The same, by tenant.", of_tenants, self.names)


class Censuses:
    """The censuses of all servers. What each says has the label `server`, if servers have names."""

    def __init__(self, epochs: Path) -> None:
        """*epochs* is the directory of the highest epochs."""
        self._epochs = epochs
        self._censuses: Mapping[str, Census] = {}

    def count(self, placement: Placement, directory: Path | None) -> None:
        """Count at the servers of *placement* from now on. *directory* is that of an embedded Postgres."""
        before = self._censuses
        self._censuses = {
            name: Census(self._database(name, conninfo), directory) for name, conninfo in placement.servers.items()
        }
        _close(before)

    def families(self) -> Iterator[Metric]:
        """The metrics of all servers."""
        censuses = self._censuses
        for census in censuses.values():  # at once: servers that do not answer take a while
            census.ask()
        merged: dict[str, Metric] = {}
        for server, census in censuses.items():
            for family in census.families():
                of_all = merged.setdefault(family.name, family if not server else _without_samples(family))
                if server:
                    of_all.samples += (
                        each._replace(labels={**each.labels, "server": server}) for each in family.samples
                    )
        yield from merged.values()

    @property
    def names(self) -> Mapping[str, str]:
        """The name of each tenant, by its number."""
        return {number: name for census in self._censuses.values() for number, name in census.names.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _close(self._censuses)

    def _database(self, name: str, conninfo: str) -> Database:
        return Database(
            lambda role: libpq.make_conninfo(conninfo, user=role),
            pool_sizes={roles.CONTROL: 1},
            epochs=EpochGuard(epoch_directory(self._epochs, name)),
        )


def _close(censuses: Mapping[str, Census]) -> None:
    for census in censuses.values():
        census.close()


def _without_samples(family: Metric) -> Metric:
    return Metric(family.name, family.documentation, family.type, family.unit)


def _family(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    """A metric with one *label*."""
    family = GaugeMetricFamily(name, text, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), value)
    return family


def _by_label(name: str, text: str, values: Mapping[int, int]) -> GaugeMetricFamily:
    """A metric of each label; of a trusted one, only if there is anything."""
    return _family(
        name,
        text,
        "level",
        {label.name: values.get(label.value, 0) for label in Label if label.value in values or not label.is_trusted},
    )


def _by_tenant(name: str, text: str, values: Counter[str], names: Mapping[str, str]) -> GaugeMetricFamily:
    """A metric of the tenants with the highest *values*, by number and name, and of all others together."""
    family = GaugeMetricFamily(name, text, labels=("tenant", "name"))
    for key, value in values.most_common(_MOST_TENANTS):
        family.add_metric((key, names.get(key, "")), value)
    family.add_metric((OTHERS, ""), sum(value for _, value in values.most_common()[_MOST_TENANTS:]))
    return family


def checksum_failures(connection: psycopg.Connection[Any]) -> int | None:
    """How often Postgres has read a damaged page of the database. None if it has no checksums."""
    (number,) = connection.execute(_QUERIES["checksum_failures"]).fetchone() or (None,)
    return None if number is None else int(number)
