"""Citus, which spreads tables over several machines: all that is known of it stands here. See ADR 14."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager

from muniment_server.engines.citus import cluster, grants
from muniment_server.engines.citus.pausing import paused_writes
from muniment_server.engines.citus.settings import SETTINGS_BETWEEN_NODES, SETTINGS_ON_CLUSTER
from muniment_server.engines.citus.statements import for_cluster
from muniment_server.postgres.engine import Connection, Doubts, Engine
from muniment_server.postgres.epochs import Epoch


class Citus(Engine):
    """The engine of a Citus cluster. What each method is for stands in `Engine`."""

    is_plain = False
    settings = SETTINGS_ON_CLUSTER
    settings_of_moves: Mapping[str, str] = {"citus.propagate_set_commands": "local"}
    compare = staticmethod(grants.by_node)

    def is_of(self, connection: Connection) -> bool:
        return cluster.is_cluster(connection)

    def text(self, query: str) -> str:
        return for_cluster(query)

    def doubts(self) -> Doubts:
        return cluster.CommitWarnings()

    def shows_doubt(self, output: str) -> bool:
        return cluster.COMMIT_WARNING in output

    def silent_node(self, error: BaseException) -> str | None:
        return cluster.silent_node(error)

    def refusal(self, connection: Connection) -> str | None:
        return cluster.refusal(connection)

    def wrong_node(self, connection: Connection) -> tuple[str, str] | None:
        if cluster.is_coordinator(connection):
            return None
        return "this is a worker of a Citus cluster", "name the database of the coordinator"

    def epochs_of_nodes(self, connection: Connection) -> dict[str, Epoch]:
        return cluster.epochs_of_nodes(connection)

    def nodes(self, connection: Connection) -> list[str]:
        return cluster.workers(connection)

    def answering_nodes(self, connection: Connection) -> dict[str, bool]:
        return cluster.answering_workers(connection)

    def described(self, connection: Connection) -> str | None:
        nodes = cluster.count_nodes(connection)
        return f"this is a Citus cluster, and the grants are as required on each of its {nodes} nodes"

    def recorded_grants(self) -> list[str] | None:
        return sorted(map(str, grants.matrix()))

    def risks(self, connection: Connection, *, durable: bool) -> Iterator[str]:
        return grants.risky_settings(connection, durable=durable)

    def warnings(self, connection: Connection) -> Iterator[str]:
        if not cluster.refusal(connection):
            yield from cluster.strange_transactions(connection)

    def close_functions(self, connection: Connection) -> None:
        cluster.close_own_functions(connection)

    def prepare_nodes(self, connection: Connection, passwords: Mapping[str, str]) -> Iterator[str] | None:
        return cluster.prepare_nodes(connection, passwords, SETTINGS_BETWEEN_NODES)

    def distribute(self, connection: Connection, *, complete: bool) -> Iterator[str]:
        yield from cluster.distribute(connection)
        if complete:  # in this order, because new shards do not get grants on ctid from their table
            cluster.give_rights(connection)

    def repeat_grants(self, connection: Connection) -> Iterator[str]:
        return cluster.repeat_grants(connection)

    def lack_passwords(self, connection: Connection) -> bool:
        return cluster.lack_passwords(connection)

    def paused_writes(self, admin: str) -> AbstractContextManager[None]:
        return paused_writes(admin)

    def before_schema_change(self, connection: Connection) -> None:
        cluster.use_one_connection_to_each_node(connection)

    def before_local_change(self, connection: Connection) -> None:
        cluster.change_this_node_alone(connection)


ENGINE = Citus()
