"""One worker process: a server with its own database connections. Started by the supervisor."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from muniment_server.background.eraser import Eraser
from muniment_server.background.sealer import Sealer
from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import RandomIds
from muniment_server.embedder.remote.configuration import RemoteConfig, RerankerConfig
from muniment_server.embedder.socket import query_embedder, remote_query_embedder, reranker
from muniment_server.monitor.authentication import Credential
from muniment_server.monitor.scopes import Scopes
from muniment_server.postgres.placement import Databases, PlacedDatabase
from muniment_server.process import child_main
from muniment_server.process.assignment import Assignment
from muniment_server.process.child_main import Orders
from muniment_server.runtime import certificates
from muniment_server.runtime.readiness import Readiness
from muniment_server.search.embeddings import no_embedder
from muniment_server.search.reranking import NO_RERANKER
from muniment_server.search.search import RemoteQueryEmbedder, Searcher
from muniment_server.telemetry.traces import Tracer
from muniment_server.transport.admission.pools import Limits
from muniment_server.transport.server import Server

_CHECK_SECONDS = 60.0
_CHECK_SECONDS_WHILE_CLOSED = 1.0
_GARBAGE_BEFORE_COLLECTION = 10_000
"""Objects. Python's own limit of 700 is reached by a few calls."""


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
        credential=_credential(assignment),
        share_port=True,
    )
    server.check(databases, connections=assignment.connections)
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
        server.check(databases, connections=assignment.connections)
    server.stop(assignment.drain_seconds)
    for each in background:
        each.end()
    databases.close()
    if tracer is not None:
        tracer.stop()


def _credential(assignment: Assignment) -> Credential | None:
    """What reads the credentials of identities. None if the server accepts none."""
    if assignment.identities is None:
        return None
    verifier = importlib.import_module("muniment_identity.verifier")  # needs the extra `identity`
    credential: Credential = verifier.Verifier(Path(assignment.identities))
    return credential


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


if __name__ == "__main__":
    main()
