"""One worker process: a server with its own database connections. Started by the supervisor."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

import psycopg

from muniment_server.background.eraser import Eraser
from muniment_server.background.sealer import Sealer
from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import MunimentError, Unavailable
from muniment_server.domain.ids import RandomIds, TenantNumber
from muniment_server.embedder.remote.configuration import RemoteConfig, RerankerConfig
from muniment_server.embedder.socket import query_embedder, remote_query_embedder, reranker
from muniment_server.monitor import log_settings
from muniment_server.monitor.scopes import Scopes
from muniment_server.postgres import roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.placement import Databases, PlacedDatabase
from muniment_server.process import child_main
from muniment_server.process.assignment import Assignment
from muniment_server.process.child_main import Orders
from muniment_server.runtime import certificates, grants
from muniment_server.runtime.claims import Claim, claim_of, claimed_twice
from muniment_server.runtime.readiness import Readiness
from muniment_server.search.embeddings import no_embedder
from muniment_server.search.reranking import NO_RERANKER
from muniment_server.search.search import RemoteQueryEmbedder, Searcher
from muniment_server.telemetry import worker_metrics as metrics
from muniment_server.telemetry.traces import Tracer
from muniment_server.transport.pools import Limits
from muniment_server.transport.server import Server

_CHECK_SECONDS = 60.0
_CHECK_SECONDS_WHILE_CLOSED = 1.0
_CHECK_TIMEOUT = 5.0
_MAX_LOGGED = 20
"""So many problems of each kind are logged; the rest is counted."""
_GARBAGE_BEFORE_COLLECTION = 10_000
"""Objects. Python's own limit of 700 is reached by a few calls."""
_LOG = logging.getLogger("muniment.worker")


def main(start_tracer: Callable[[], Tracer | None] = lambda: None) -> None:
    """Serve until the input ends or SIGTERM arrives. *start_tracer* is called when the assignment has arrived."""
    orders = child_main.receive_orders("worker")
    if orders is not None:
        _serve(orders, start_tracer())


def _serve(orders: Orders, tracer: Tracer | None) -> None:
    assignment, stop = orders.assignment, orders.stop
    limits = Limits(threads=assignment.threads, max_in_flight=assignment.max_in_flight)
    databases = assignment.databases(assignment.worker_connections, application_name=assignment.application_name)
    for placed in databases:
        placed.is_verified = False
    scopes = Scopes(databases, RandomIds(), audit_reads_from=Classification(assignment.audit_reads_from))
    server = Server(
        scopes,
        _searcher(assignment),
        disk=assignment.disk(),
        limits=limits,
        open_reflection=assignment.development,
        logs_all_calls=assignment.access_log,
        tracer=tracer,
        share_port=True,
    )
    check_grants(server, databases, connections=assignment.connections)
    server.listen(assignment.listen, certificates.credentials(assignment.tls) if assignment.tls else None)
    server.start()
    readiness = Readiness(server, databases)
    readiness.start()
    readiness.report()
    background: list[Eraser | Sealer] = []
    for placed in databases:
        may_run = partial(_is_served, server, placed)
        background += (Eraser(placed.database, may_run), Sealer(placed, may_run))
    for each in background:
        each.start()
    _collect_less_garbage()
    child_main.report_ready()
    child_main.beat_while(readiness.report)
    while not stop.wait(_CHECK_SECONDS if _all_are_served(server, databases) else _CHECK_SECONDS_WHILE_CLOSED):
        check_grants(server, databases, connections=assignment.connections)
    server.stop(assignment.drain_seconds)
    for each in background:
        each.end()
    databases.close()
    if tracer is not None:
        tracer.stop()


def _searcher(assignment: Assignment) -> Searcher:
    if (path := assignment.embedder) is None:
        return Searcher(no_embedder)
    embed_remotely: RemoteQueryEmbedder = no_embedder
    reranks = NO_RERANKER
    if assignment.remote is not None:
        remote = RemoteConfig.from_json(assignment.remote)
        embed_remotely = remote_query_embedder(path, remote.model, remote.ceiling)
    if assignment.reranker is not None:
        reranks = reranker(path, RerankerConfig.from_json(assignment.reranker).ceiling)
    return Searcher(query_embedder(path), embed_remotely, reranks)


def _collect_less_garbage() -> None:
    """Leave what was loaded out of the garbage collections, and collect less often: a call makes no cycles.

    In 8 rounds of GetMemory with 64 calls in flight, the median CPU fell by 6 %, and the median p99 by a third. At the
    time, each call made a cycle.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE_BEFORE_COLLECTION)


def _is_served(server: Server, placed: PlacedDatabase) -> bool:
    return server.gate.open and placed.is_verified


def _all_are_served(server: Server, databases: Databases) -> bool:
    return all(_is_served(server, placed) for placed in databases)


@dataclass(frozen=True, slots=True)
class _Checked:
    """What one server was found to have. A server that could not be asked has no claim."""

    problems: Mapping[str, list[str]]
    claim: Claim | None


def check_grants(server: Server, databases: Databases, *, connections: int) -> None:
    """Verify the grants of each server. The gate is open while those of any match the grant matrix."""
    checked = {placed: found for placed in databases if (found := _check(placed, connections)) is not None}
    for placed, found in checked.items():
        placed.is_verified = not any(found.problems.values())
        placed.tenants = placed.tenants if found.claim is None else found.claim.tenants
    for kind in ("grants", "log_settings"):
        metrics.GATE_PROBLEMS.labels(kind).set(sum(len(found.problems.get(kind, ())) for found in checked.values()))
    databases.refuse(_claimed_twice({placed.name: placed.tenants for placed in databases}))
    if not checked:  # calls fail on their own; the gate stays as it is
        return
    verified = any(placed.is_verified for placed in databases)
    if verified and not server.gate.open:
        _LOG.info("gate open")
    server.set_serving(verified)


def _check(placed: PlacedDatabase, connections: int) -> _Checked | None:
    """The problems of one server. None if it is unavailable."""
    where = f" of {placed.name}" if placed.name else ""
    try:
        with placed.database.connection(roles.CONTROL, Deadline(_CHECK_TIMEOUT)) as connection:
            found = {
                "grants": grants.problems(connection, connections=connections),
                "log_settings": log_settings.problems(connection),
            }
            checked = _Checked(found, claim_of(connection) if not any(found.values()) else None)
    except Unavailable:
        _LOG.warning("the grants%s could not be verified: the database is unavailable", where)
        return None
    except (MunimentError, psycopg.Error) as error:  # grants that cannot be read are not verified
        unread = f"the grants could not be read ({type(error).__name__}): run `muniment doctor`"
        checked = _Checked({"grants": [unread]}, None)
    for problems in checked.problems.values():
        for problem in problems[:_MAX_LOGGED]:
            _LOG.critical("gate%s closed: %s", where, problem)
        if more := len(problems[_MAX_LOGGED:]):
            _LOG.critical("gate%s closed: further problems, which `muniment doctor` names: %d", where, more)
    return checked


def _claimed_twice(tenants: Mapping[str, Collection[TenantNumber]]) -> Collection[TenantNumber]:
    """Those *tenants* that two servers have. No call of theirs is served, since it is unknown which server is right."""
    found = claimed_twice(tenants)
    for tenant, (one, other) in found.items():
        _LOG.critical("the tenant %d is refused: the servers %s and %s both have it", tenant, one, other)
    return found


if __name__ == "__main__":
    main()
