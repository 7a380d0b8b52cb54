"""Two database servers, and a file that names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest

from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.ids import RandomIds, TenantNumber
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.monitor.scopes import Scopes
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.placement import Databases, Placement
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.postgres.pool import operator_conninfo
from muniment_server.runtime import claims, databases
from muniment_server.search.embeddings import no_embedder
from muniment_server.search.search import Searcher
from muniment_server.transport.admission.pools import Limits
from muniment_server.transport.server import Server
from tests.operations.citus.clones import ClusterPostgres
from tests.support.command_fixtures import folder, root_folder, serving
from tests.support.commands import Done, run
from tests.support.databases import Database, cloned, running_postgres
from tests.support.labels import untrusted
from tests.support.services import Caller, set_gate

__all__ = ["folder", "root_folder", "serving"]

_NAMES = ("a", "b")


@dataclass(frozen=True, slots=True)
class Servers:
    """The databases of two servers, by name, and the file of servers, in the folder of the test."""

    databases: Mapping[str, Database]
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "servers.toml"

    def url(self, name: str) -> str:
        """How the file names a server."""
        return databases.without(self.databases[name].admin, "user")

    def write(self, tenants: Mapping[int, str], *names: str) -> None:
        """Write the file, with all servers, or those named."""
        lines = ["[servers]", *(f'{name} = "{self.url(name)}"' for name in names or self.databases)]
        lines += ["[tenants]", *(f'{tenant} = "{name}"' for tenant, name in tenants.items())]
        self.file.write_text("\n".join(lines) + "\n")

    def placement(self, tenants: Mapping[int, str]) -> Placement:
        """What a file with *tenants* would state."""
        return Placement(
            {name: self.url(name) for name in self.databases},
            {TenantNumber(number): name for number, name in tenants.items()},
        )

    def run(self, *arguments: str) -> Done:
        """Run an operator's command, as an administrator."""
        return run(self.folder, *arguments, "--servers", str(self.file), PGUSER="postgres")

    def key(self, tenant: str, server: str) -> str:
        """A new host key of *tenant*, at *server*."""
        created = self.run(
            "host-key", "create", "--tenant", tenant, "--ceiling", "restricted", "--quiet", "--server", server
        )
        assert created.returncode == 0, created.stderr
        return created.stdout.strip()

    @contextmanager
    def owners(self) -> Iterator[dict[str, psycopg.Connection[Any]]]:
        """Connections to all servers, as the owner."""
        with ExitStack() as stack:
            yield {
                name: stack.enter_context(psycopg.connect(operator_conninfo(database.admin), autocommit=True))
                for name, database in self.databases.items()
            }


@pytest.fixture(scope="session")
def both() -> Iterator[tuple[EmbeddedPostgres, ...]]:
    """Two servers for this run. They are durable, as a server demands that is started as people do."""
    with ExitStack() as stack:
        yield tuple(stack.enter_context(running_postgres(durable=True)) for _ in _NAMES)


@pytest.fixture
def servers(both: tuple[EmbeddedPostgres, ...], folder: Path) -> Iterator[Servers]:
    """Two databases of this test, with ranges of numbers of their own."""
    with cloned_servers(both, folder) as made:
        yield made


@contextmanager
def cloned_servers(both: Sequence[EmbeddedPostgres | ClusterPostgres], folder: Path) -> Iterator[Servers]:
    """A database on each of *both*, with ranges of numbers of their own."""
    with ExitStack() as stack:
        made = {name: stack.enter_context(cloned(postgres)) for name, postgres in zip(_NAMES, both, strict=True)}
        servers = Servers(made, folder)
        servers.write({})
        with servers.owners() as connections:
            list(claims.settle(connections))
        yield servers


@pytest.fixture
def served(servers: Servers) -> Iterator[Callable[..., grpc.Channel]]:
    """Serve the databases in this process, with tenants where they are said to be."""
    with ExitStack() as stack:

        def serve(tenants: Mapping[int, str]) -> grpc.Channel:
            placement = servers.placement(tenants)
            return stack.enter_context(serving_from(servers, placement)).channel

        yield serve


@dataclass(frozen=True, slots=True)
class Serving:
    """A server in this process."""

    channel: grpc.Channel
    check: Callable[[], None]
    """What a worker does once a minute."""


@contextmanager
def serving_from(servers: Servers, placement: Placement) -> Iterator[Serving]:
    """Serve the databases in this process, with tenants where *placement* has them."""
    limits = Limits()
    pools = {
        name: RoleDatabase(database.conninfo, pool_sizes=limits.connections(60))
        for name, database in servers.databases.items()
    }
    connections = Databases(placement, pools)
    server = Server(
        Scopes(connections, RandomIds(), audit_reads_from=Classification.CONFIDENTIAL),
        Searcher(no_embedder),
        disk=Disk(None),
        limits=limits,
        open_reflection=True,
    )
    port = server.listen("127.0.0.1:0", None)
    server.start()
    set_gate(server, is_open=True)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Serving(channel, lambda: server.check(connections, connections=60))
    finally:
        server.stop(grace=1)
        connections.close()


def session_of(host: Caller, taint: Classification | Label, agent_id: str = "alice") -> Caller:
    """A new session of an agent, untrusted unless *taint* is a label that is trusted."""
    label = taint if isinstance(taint, Label) else untrusted(taint)
    opened = host.open_session(agent_id=agent_id, taint=int(label.level), integrity=int(label.integrity))
    return Caller(host.channel, opened.token, opened.session.session_id, opened.session.conversation_id)
