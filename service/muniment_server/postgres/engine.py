"""What a kind of Postgres needs differently: its engine. `Engine` is that of plain Postgres, which needs nothing.

The packages of the folder `engines` have the others, as `ENGINE`. Nothing else imports them: which one a database has
is asked of its connection.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from muniment_server.postgres.epochs import Epoch

_FOLDER = "muniment_server.engines"
Connection = psycopg.Connection[Any]


class Doubts:
    """Whether commits of a connection are in doubt, because a node did not confirm one. Never on plain Postgres."""

    def __bool__(self) -> bool:
        return False

    def note(self, notice: psycopg.errors.Diagnostic) -> None:
        """Look at one notice of the connection."""


class Engine:
    """What an engine may do differently. This one is plain Postgres."""

    is_plain: bool = True
    settings: Mapping[str, str] = {}
    """Settings of connections that differ."""
    settings_of_moves: Mapping[str, str] = {}
    """Settings that a transaction which moves a tenant makes before all others."""
    compare: Callable[[Connection, Collection[str] | None], list[str]] | None = None
    """Compares the grants with those that the engine needs. None: with the matrix itself."""

    def is_of(self, connection: Connection) -> bool:
        """Whether the database of *connection* has this engine. Any role may ask."""
        return True

    def text(self, query: str) -> str:
        """The text of the statement *query*."""
        return query

    def doubts(self) -> Doubts:
        """What listens to the notices of a new connection."""
        return Doubts()

    def shows_doubt(self, output: str) -> bool:
        """Whether the *output* of a program of Postgres says that a node did not confirm a commit."""
        return False

    def silent_node(self, error: BaseException) -> str | None:
        """The address of the node that did not answer, if that is the cause of *error*."""
        return None

    def refusal(self, connection: Connection) -> str | None:
        """Why the database can be neither migrated nor served, and what to do."""
        return None

    def wrong_node(self, connection: Connection) -> tuple[str, str] | None:
        """That operators must use another node, and what to do."""
        return None

    def epochs_of_nodes(self, connection: Connection) -> dict[str, Epoch]:
        """The epochs of the other nodes that answer."""
        return {}

    def nodes(self, connection: Connection) -> list[str]:
        """The addresses of the other nodes. Contacts none."""
        return []

    def answering_nodes(self, connection: Connection) -> dict[str, bool]:
        """Whether each of the other nodes answers. Waits for one that hangs."""
        return {}

    def described(self, connection: Connection) -> str | None:
        """What to say if all grants are as required, beside that."""
        return None

    def recorded_grants(self) -> list[str] | None:
        """The grants that `muniment migrate` records, unless they are those of the matrix."""
        return None

    def risks(self, connection: Connection, *, durable: bool) -> Iterator[str]:
        """Settings of nodes that can lose writes or log stored text."""
        yield from ()

    def warnings(self, connection: Connection) -> Iterator[str]:
        """What may go wrong later."""
        yield from ()

    def close_functions(self, connection: Connection) -> None:
        """Take from all roles the functions of the engine that would help them. Needs a superuser."""

    def prepare_nodes(self, connection: Connection, passwords: Mapping[str, str]) -> Iterator[str] | None:
        """Create the roles on all nodes, with the settings that they need. None: roles have no settings."""
        return None

    def distribute(self, connection: Connection, *, complete: bool) -> Iterator[str]:
        """Distribute new tables; if the schema is *complete*, give views and roles the rights that they need."""
        yield from ()

    def repeat_grants(self, connection: Connection) -> Iterator[str]:
        """Repeat on the nodes what the engine does not propagate."""
        yield from ()

    def lack_passwords(self, connection: Connection) -> bool:
        """Whether the nodes lack passwords with which they log in to each other."""
        return False

    def paused_writes(self, admin: str) -> AbstractContextManager[None]:
        """Pause writes for a backup, if what it reads would otherwise not be of one moment."""
        return nullcontext()

    def before_schema_change(self, connection: Connection) -> None:
        """Prepare this transaction for a change of the schema that follows other statements."""

    def before_local_change(self, connection: Connection) -> None:
        """Prepare this transaction for a change of the schema of this node alone."""


PLAIN = Engine()


@cache
def _others() -> tuple[Engine, ...]:
    package = import_module(_FOLDER)
    found = pkgutil.iter_modules(package.__path__, f"{_FOLDER}.")
    return tuple(import_module(module.name).ENGINE for module in found)


def engine_of(connection: Connection) -> Engine:
    """The engine of the database of *connection*. Any role may ask."""
    return next((engine for engine in _others() if engine.is_of(connection)), PLAIN)


def settings_of_all() -> Mapping[str, str]:
    """The settings of all engines, for a connection whose engine is not known before it connects."""
    return {name: value for engine in _others() for name, value in engine.settings.items()}


def silent_node(error: BaseException) -> str | None:
    """The address of the node that did not answer, if that is the cause of *error*, with any engine."""
    return next((node for engine in _others() if (node := engine.silent_node(error))), None)


def shows_doubt(output: str) -> bool:
    """Whether the *output* of a program of Postgres says that a node did not confirm a commit, with any engine."""
    return any(engine.shows_doubt(output) for engine in _others())


class AllDoubts(Doubts):
    """The doubts of all engines, for a connection whose engine is not known before it connects."""

    def __init__(self) -> None:
        self._doubts = [engine.doubts() for engine in _others()]

    def __bool__(self) -> bool:
        return any(self._doubts)

    def note(self, notice: psycopg.errors.Diagnostic) -> None:
        for doubts in self._doubts:
            doubts.note(notice)
