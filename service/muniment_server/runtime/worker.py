"""One worker process: a server with its own database connections. Started by the supervisor."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Mapping
from pathlib import Path

import grpc
import psycopg
from psycopg import conninfo as libpq

from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import MunimentError, Unavailable
from muniment_server.domain.ids import RandomIds
from muniment_server.monitor import grants
from muniment_server.monitor.scopes import Scopes
from muniment_server.postgres import roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.epochs import EpochGuard
from muniment_server.postgres.pool import Database
from muniment_server.runtime import child_main, log_settings
from muniment_server.runtime.assignment import READY, Assignment
from muniment_server.runtime.embedder_socket import query_embedder
from muniment_server.runtime.eraser import Eraser
from muniment_server.runtime.readiness import Readiness
from muniment_server.runtime.stop_signal import StopSignal
from muniment_server.search.embeddings import no_embedder
from muniment_server.transport.pools import Limits
from muniment_server.transport.server import Server

_CHECK_SECONDS = 60.0
_CHECK_SECONDS_WHILE_CLOSED = 1.0
_CHECK_TIMEOUT = 5.0
_LOG = logging.getLogger("muniment.worker")


def main() -> None:
    """Serve until the input ends or SIGTERM arrives."""
    received = child_main.receive_assignment()
    if received is not None:
        _serve(*received)


def _serve(assignment: Assignment, stop: StopSignal) -> None:
    limits = Limits(threads=assignment.threads, max_in_flight=assignment.max_in_flight)
    database = Database(
        lambda role: libpq.make_conninfo(assignment.conninfo, user=role, application_name=assignment.application_name),
        pool_sizes=assignment.worker_connections,
        epochs=EpochGuard(Path(assignment.epochs)),
    )
    scopes = Scopes(database, RandomIds(), audit_reads_from=Classification(assignment.audit_reads_from))
    server = Server(
        scopes,
        query_embedder(assignment.embedder) if assignment.embedder else no_embedder,
        limits=limits,
        open_reflection=assignment.development,
        share_port=True,
    )
    server.listen(assignment.listen, _credentials(assignment.tls))
    server.start()
    check_grants(server, database, connections=assignment.connections)
    Readiness(server, database).start()
    Eraser(database, lambda: server.gate.open).start()
    _report_ready()
    while not stop.wait(_CHECK_SECONDS if server.gate.open else _CHECK_SECONDS_WHILE_CLOSED):
        check_grants(server, database, connections=assignment.connections)
    server.stop(assignment.drain_seconds)
    database.close()


def _report_ready() -> None:
    """Report to the supervisor. If it has died, the input has ended, and this worker stops anyway."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(f"{READY}\n")
        sys.stdout.flush()


def check_grants(server: Server, database: Database, *, connections: int) -> None:
    """Verify the grants: open the gate if they match the grant matrix, and close it otherwise."""
    try:
        with database.connection(roles.CONTROL, Deadline(_CHECK_TIMEOUT)) as connection:
            problems = [*grants.problems(connection, connections=connections), *log_settings.problems(connection)]
    except Unavailable:  # calls fail on their own; the gate stays as it is
        _LOG.warning("the grants could not be verified: the database is unavailable")
        return
    except (MunimentError, psycopg.Error) as error:  # grants that cannot be read are not verified
        problems = [f"the grants could not be read ({type(error).__name__}): run `muniment doctor`"]
    for problem in problems:
        _LOG.critical("gate closed: %s", problem)
    server.set_serving(not problems)


def _credentials(tls: Mapping[str, str] | None) -> grpc.ServerCredentials | None:
    if tls is None:
        return None
    client_ca = tls.get("client_ca")
    return grpc.ssl_server_credentials(
        [(Path(tls["key"]).read_bytes(), Path(tls["certificate"]).read_bytes())],
        root_certificates=Path(client_ca).read_bytes() if client_ca else None,
        require_client_auth=client_ca is not None,
    )


if __name__ == "__main__":
    main()
