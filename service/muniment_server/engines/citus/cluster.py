"""Citus, which spreads tables over several machines: each has the rows of some tenants. See ADR 14.

A node connects to the others as the role that connected to it, so they check the grants, too. Therefore each role can
log in on each node. So can the owner: its password is only in `pg_dist_authinfo`, which only superusers can read.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any

import psycopg
from psycopg import sql

from muniment_server.postgres import migrate as migrations
from muniment_server.postgres import queries, roles
from muniment_server.postgres.engine import Doubts
from muniment_server.postgres.epochs import Epoch
from muniment_server.postgres.verifiers import is_password

_QUERIES = queries.load(__package__, "citus.sql")
_MIGRATION = "vault.migration"
"""The only table without a tenant: each node has all of it."""
_TENANT = "vault.tenant"
"""The rows of every other table are on the node that has their tenant."""
_SILENT = re.compile(r"(?:failed to connect to |connection to the remote node \S+@)(?P<node>\S+:\d+)")
"""How Citus says that a node cannot be reached, to a query that asks all nodes and to any other statement."""


_ROLES: Mapping[str, str] = {"owner": roles.OWNER, "control": roles.CONTROL}
"""The roles that may run commands on the nodes."""
EPOCHS_OF_NODES = _QUERIES["epochs_of_nodes"]
_FUNCTION = sql.SQL(
    "CREATE OR REPLACE FUNCTION vault.epochs_of_nodes() RETURNS TABLE (node_group text, epoch text)"
    " LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS {}"
)
"""With it, roles that may not run commands on the nodes ask for `EPOCHS_OF_NODES`."""


class NodeFailed(psycopg.OperationalError):
    """A node of the cluster has not done what it was asked for."""


COMMIT_WARNING = "failed to commit transaction on "
"""What Citus's warning begins with, in any language."""


class CommitWarnings(Doubts):
    """Whether a connection was warned that a node did not confirm a commit.

    The coordinator reports success once it has decided to commit, though a node that has just died still shows the old
    rows: until the node is back, and Citus has recovered its prepared transactions.
    """

    def __init__(self) -> None:
        self._found = False

    def __bool__(self) -> bool:
        return self._found

    def note(self, notice: psycopg.errors.Diagnostic) -> None:
        """Look at one notice of the connection."""
        self._found |= (notice.message_primary or "").startswith(COMMIT_WARNING)


def is_cluster(connection: psycopg.Connection[Any]) -> bool:
    """Whether the database of *connection* has the extension, as a coordinator and workers do. Any role may ask."""
    return connection.execute(_QUERIES["is_cluster"]).fetchone() == (True,)


def is_coordinator(connection: psycopg.Connection[Any]) -> bool:
    """Whether *connection*, to a database of a cluster, is to the coordinator. Only there can the schema be changed."""
    return connection.execute(_QUERIES["is_coordinator"]).fetchone() == (True,)


def refusal(connection: psycopg.Connection[Any]) -> str | None:
    """Why the database of *connection*, which is of a cluster, can be neither migrated nor served. None if it can."""
    if not is_coordinator(connection):
        return "this is a worker of a Citus cluster: name the database of the coordinator"
    if undistributed(connection):
        return "the tables of the database are not distributed over the nodes of its cluster: run `muniment distribute`"
    return None


def silent_node(error: BaseException) -> str | None:
    """The address of the node that did not answer, if that is the cause of *error*.

    A refused login is an answer, where Citus says that it was refused.
    """
    found = _SILENT.search(str(error))
    return found["node"] if found and "FATAL:" not in str(error) else None


def prepare_nodes(
    connection: psycopg.Connection[Any], passwords: Mapping[str, str], settings: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    """Create the coordinator's roles on the workers, and give all nodes the *passwords* to log in to each other.

    The roles get *settings*, since connections between nodes do not have those of a session. Commits, because
    nodes can log in only as roles that have been committed. Needs a superuser.
    """
    known = dict(passwords)
    if not _nodes_log_in_as_owner(connection):
        known[roles.OWNER] = secrets.token_urlsafe(32)
        verifier = connection.pgconn.encrypt_password(
            known[roles.OWNER].encode(), roles.OWNER.encode(), b"scram-sha-256"
        )
        let_in = sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}")
        connection.execute(let_in.format(sql.Identifier(roles.OWNER), sql.Literal(verifier.decode())))
        yield f"let the nodes of the cluster log in to each other as {roles.OWNER}"
    connection.commit()
    for statement in _lacking(connection, "roles", {"roles": list(roles.ALL)}):
        _answers(connection, "on_workers", statement)
    for (statement,) in connection.execute(_QUERIES["unknown_roles"], {"roles": list(roles.ALL)}).fetchall():
        _answers(connection, "on_all_nodes", statement)
    for role, password in known.items():
        known_as = {"role": role, "password": password}
        for (statement,) in connection.execute(_QUERIES["know_password"], known_as).fetchall():
            _answers(connection, "on_all_nodes", statement)
    _set_settings(connection, settings)
    connection.commit()


def _nodes_log_in_as_owner(connection: psycopg.Connection[Any]) -> bool:
    """Whether the password that the nodes have is the owner's. Preparing another database of the nodes changes that."""
    known, verifier = connection.execute(_QUERIES["owners_password"], {"owner": roles.OWNER}).fetchone() or ("", "")
    return is_password(known, verifier)


def lack_passwords(connection: psycopg.Connection[Any]) -> bool:
    """Whether the nodes lack a password with which they log in to each other as a serving role. Needs a superuser."""
    known = (connection.execute(_QUERIES["knows_password"], {"role": role}).fetchone() for role in roles.SERVING)
    return any(found != (True,) for found in known)


def _set_settings(connection: psycopg.Connection[Any], settings: Mapping[str, Mapping[str, str]]) -> None:
    """Set exactly *settings*, which are by role. Citus propagates this to all nodes.

    In one transaction, so that a server that runs never finds a setting missing.
    """
    for role in roles.ALL:
        connection.execute(sql.SQL("ALTER ROLE {} RESET ALL").format(sql.Identifier(role)))
        for name, value in settings.get(role, {}).items():
            connection.execute(
                sql.SQL("ALTER ROLE {} SET {} = {}").format(
                    sql.Identifier(role), sql.Identifier(name), sql.Literal(value)
                )
            )


def undistributed(connection: psycopg.Connection[Any]) -> dict[str, list[str]]:
    """The tables that exist only on the coordinator, each with those that its foreign keys refer to."""
    return dict(connection.execute(_QUERIES["undistributed"], {"owner": roles.OWNER}).fetchall())


def undistributed_in_order(connection: psycopg.Connection[Any]) -> list[str]:
    """The `undistributed` tables, each after those that its foreign keys refer to. Each process gets the same order."""
    found = undistributed(connection)
    before = {table: sorted({_TENANT, *referenced} - {table}) for table, referenced in found.items()}
    return [table for table in TopologicalSorter(before).static_order() if table in found]


def distribute_table(connection: psycopg.Connection[Any], table: str) -> None:
    """Distribute *table*, with its rows, by tenant. The current role must be the owner."""
    if table == _MIGRATION:
        connection.execute(_QUERIES["make_reference_table"], {"name": table})
    else:
        connection.execute(_QUERIES["distribute"], {"name": table, "with": "none" if table == _TENANT else _TENANT})


def distribute(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Distribute the `undistributed` tables by tenant. The current role must be the owner."""
    tables = undistributed_in_order(connection)
    for table in tables:
        distribute_table(connection, table)
    if tables:
        yield f"distributed {len(tables)} tables by tenant"


def lock_exclusively(connection: psycopg.Connection[Any], table: str) -> None:
    """Let no other transaction use *table*, which is not distributed, until that of *connection* ends."""
    name = sql.Identifier(*table.split("."))
    connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(name))


def count_rows(connection: psycopg.Connection[Any], table: str) -> int:
    """How many rows *table* has."""
    name = sql.Identifier(*table.split("."))
    (count,) = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(name)).fetchone() or (0,)
    return int(count)


def give_rights(connection: psycopg.Connection[Any]) -> None:
    """Give views and roles the rights of a cluster, once the tables are distributed."""
    for name in ("on_cluster.sql", "on_cluster.labels.sql"):
        for statement in migrations.statements_of(migrations.expanded(name, queries.read(__package__, name))):
            connection.execute(statement.encode())


def propagate_schemas(connection: psycopg.Connection[Any]) -> None:
    """Create on all nodes the schemas and text search configurations that were made before the extension."""
    for (statement,) in connection.execute(_QUERIES["propagate_schemas"], {"owner": roles.OWNER}).fetchall():
        connection.execute(statement.encode())


def clear_local_rows(connection: psycopg.Connection[Any], table: str) -> None:
    """Remove the rows that *table*, which has been distributed, still has on the coordinator."""
    connection.execute(_QUERIES["clear_local_rows"], {"name": table})


def clear_samples(connection: psycopg.Connection[Any], tables: Sequence[str]) -> None:
    """Remove what the planner has kept of the rows that *tables* had on the coordinator. Needs a superuser."""
    connection.execute(_QUERIES["clear_samples"], {"tables": list(tables)})


def serving_roles(connection: psycopg.Connection[Any]) -> list[str]:
    """The serving roles that are connected to the database."""
    return [role for (role,) in connection.execute(_QUERIES["serving"], {"serving": list(roles.SERVING)})]


def unprepared(connection: psycopg.Connection[Any]) -> str | None:
    """What the cluster lacks before tables can be distributed, and what to do. None if it lacks nothing."""
    knows_coordinator, workers = connection.execute(_QUERIES["known_nodes"]).fetchone() or (False, 0)
    if not knows_coordinator:
        return "the nodes do not know the coordinator: call citus_set_coordinator_host, and run this command again"
    if not workers:
        return "the cluster has no workers: add them with citus_add_node, and run this command again"
    return None


def count_nodes(connection: psycopg.Connection[Any]) -> int:
    """How many nodes the cluster has, with the coordinator. Any role may ask."""
    knows_coordinator, workers = connection.execute(_QUERIES["known_nodes"]).fetchone() or (False, 0)
    return int(knows_coordinator) + int(workers)


def limits_of_nodes(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """The settings of nodes that would end a long transaction, each with its node. Raises NodeFailed."""
    for node, settings in facts_of_nodes(connection, _QUERIES["limits"], {}).items():
        yield from (f"{name} is {setting} {unit} at {node}" for name, setting, unit in settings)


def close_own_functions(connection: psycopg.Connection[Any]) -> None:
    """Let only the owner execute, on this node, the functions that change Citus's metadata or connect to any host.

    Citus lets everybody: a level could hide the rows of others, leave a message for lower ones, or have its password
    sent to a host that it names. Needs a superuser.
    """
    given = {**_ROLES, "closed": False}
    for (statement,) in connection.execute(_QUERIES["owners_functions"], given).fetchall():
        connection.execute(statement.encode())


def close_functions(connection: psycopg.Connection[Any]) -> int:
    """Repeat on the workers, at once, the rights on functions, and return how many. Needs a superuser."""
    own = _lacking(connection, "owners_functions", {**_ROLES, "closed": True})
    statements = [*_lacking(connection, "closed_functions", {}), *own]
    for statement in statements:
        _answers(connection, "on_workers", statement)
    return len(statements)


def repeat_grants(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Repeat on the nodes what Citus does not propagate: grants on views and system columns, rights on functions.

    Shards that were moved lack grants, too. Needs a superuser.
    """
    revocations = close_functions(connection)
    grants = [*_lacking(connection, "grants_on_views", {"owner": roles.OWNER}), *_lacking_on_columns(connection)]
    connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(roles.OWNER)))
    for statement in grants:  # on the coordinator: Citus propagates it, now that the nodes have the views and shards
        connection.execute(statement.encode())
    if connection.execute(_QUERIES["has_function"], {"body": EPOCHS_OF_NODES}).fetchone() != (True,):
        connection.execute(_FUNCTION.format(sql.Literal(EPOCHS_OF_NODES)))
        yield "let the serving roles ask the nodes for their epochs"
    if grants or revocations:
        yield f"repeated {len(grants)} grants and {revocations} rights on functions on the nodes"


def use_one_connection_to_each_node(connection: psycopg.Connection[Any]) -> None:
    """Until the transaction ends: Citus refuses to change the schema after parallel statements."""
    connection.execute(_QUERIES["use_one_connection_to_each_node"])


def change_this_node_alone(connection: psycopg.Connection[Any]) -> None:
    """Until the transaction ends, change the schema of the coordinator alone, where tenants are made.

    Citus refuses to change sequences on all nodes.
    """
    connection.execute(_QUERIES["on_this_node_alone"])


def lock_against_writes(connection: psycopg.Connection[Any]) -> None:
    """Make writes wait, on all nodes, until the transaction of *connection* ends. Fails if a node has lost the lock."""
    for (statement,) in connection.execute(_QUERIES["lock_against_writes"]).fetchall():
        connection.execute(statement.encode())


def has_unfinished_writes(connection: psycopg.Connection[Any]) -> bool:
    """Whether anything on a node is still being written, or is prepared. Needs a superuser. Raises NodeFailed."""
    command = psycopg.ClientCursor(connection).mogrify(_QUERIES["unfinished_writes"], {"owner": roles.OWNER})
    return set(_answers(connection, "on_all_nodes", command).values()) != {"0"}


def strange_transactions(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """What is prepared on each node for long, or not by Citus, and what to do. Raises NodeFailed.

    Without the names, which may contain what a level knows.
    """
    for node, found in facts_of_nodes(connection, _QUERIES["strange_transactions"], {}).items():
        yield from (
            f"transactions of {owner} that are prepared at {node} for more than 5 minutes, or not by Citus: {count}. "
            "They keep their locks: see pg_prepared_xacts there, and end those that Citus does not by ROLLBACK PREPARED"
            for owner, count, _ in found
        )


def recover_transactions(connection: psycopg.Connection[Any]) -> None:
    """End on the nodes what a lost connection left prepared there. Citus does it every minute. Needs a superuser."""
    connection.execute(_QUERIES["recover_transactions"])


def epochs_of_nodes(connection: psycopg.Connection[Any]) -> dict[str, Epoch]:
    """The epoch of each worker that answers, by its group in pg_dist_node. Any role may ask."""
    may_run_commands = connection.execute(_QUERIES["may_run_commands"]).fetchone() == (True,)
    query = "epochs_of_nodes" if may_run_commands else "ask_for_epochs"
    answers = connection.execute(_QUERIES[query]).fetchall()
    return {group: Epoch(**json.loads(epoch)) for group, epoch in answers}


def workers(connection: psycopg.Connection[Any]) -> list[str]:
    """The addresses of the workers, from the coordinator's catalog. Contacts no worker. Any role may call it."""
    return [node for (node,) in connection.execute(_QUERIES["workers"])]


def answering_workers(connection: psycopg.Connection[Any]) -> dict[str, bool]:
    """Whether each worker answers, by its address. The control role may ask. Waits for one that hangs."""
    answers = connection.execute(_QUERIES["on_workers"], {"command": "SELECT 1"}).fetchall()
    return {node: success for success, _, node in answers}


def facts_of_nodes(
    connection: psycopg.Connection[Any], query: str, parameters: Mapping[str, object]
) -> dict[str, list[list[str]]]:
    """The rows of *query* on each node, by the node's address. A row has three texts. Raises NodeFailed."""
    command = _as_one_answer(connection, "rows_as_json", psycopg.ClientCursor(connection).mogrify(query, parameters))
    return {node: json.loads(result) for node, result in _answers(connection, "on_all_nodes", command).items()}


def _lacking(connection: psycopg.Connection[Any], query: str, parameters: Mapping[str, object]) -> list[str]:
    """The statements that *query* returns on this node, but not on every worker."""
    here = [statement for (statement,) in connection.execute(_QUERIES[query], parameters)]
    workers = _statements_of(connection, "on_workers", query, parameters)
    return [statement for statement in here if any(statement not in worker for worker in workers)]


def _lacking_on_columns(connection: psycopg.Connection[Any]) -> list[str]:
    """The grants on system columns that a table has on this node, and that it or one of its shards lacks somewhere."""
    query, of = "grants_on_system_columns", {"owner": roles.OWNER}
    here = [statement for (statement,) in connection.execute(_QUERIES[query], {**of, "shards": False})]
    nodes = _statements_of(connection, "on_all_nodes", query, {**of, "shards": True})
    return [statement for statement in here if any(statement not in node for node in nodes)]


def _statements_of(
    connection: psycopg.Connection[Any], where: str, query: str, parameters: Mapping[str, object]
) -> list[set[str]]:
    """The statements that *query* returns on each node. *where*, also a query, asks all nodes or the workers."""
    asked = psycopg.ClientCursor(connection).mogrify(_QUERIES[query], parameters)
    command = _as_one_answer(connection, "statements_as_json", asked)
    return [set(json.loads(result)) for result in _answers(connection, where, command).values()]


def _as_one_answer(connection: psycopg.Connection[Any], query: str, asked: str) -> str:
    """The text of a query that returns all rows of *asked* as one value."""
    return sql.SQL(_QUERIES[query]).format(sql.SQL(asked)).as_string(connection)


def _answers(connection: psycopg.Connection[Any], query: str, command: str) -> dict[str, str]:
    """The answer of each node to *command*, by the node's address. Raises NodeFailed."""
    answers = connection.execute(_QUERIES[query], {"command": command}).fetchall()
    for success, result, node in answers:
        if not success:
            raise NodeFailed(f"the node {node} of the cluster has failed: {result}")
    return {node: result for _, result, node in answers}
