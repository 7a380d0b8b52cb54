"""Domain errors for what the driver raises. A driver's message never leaves this module."""

from __future__ import annotations

import traceback
from collections.abc import Mapping

import psycopg

from muniment_server.domain.errors import (
    Conflict,
    DeadlineExceeded,
    MunimentError,
    StorageDamaged,
    StorageFull,
    Unavailable,
)

NO_SQLSTATE = "none"
"""Stands for the SQLSTATE of a failure that has none, such as a lost connection."""
_LOST_CONNECTION = ("08", "57P")
"""How the SQLSTATEs begin of a connection that failed, and of a server that shuts down, starts or has crashed."""
_LOST_NODE = (
    "could not commit transaction for shard ",
    "failed to prepare transaction ",
    "failure on connection marked as essential",
    "postmaster was shut down",
    "server closed the connection unexpectedly",
    "terminating connection due to unexpected postmaster exit",
)
"""How messages begin if a cluster has lost a node in the middle of a statement. Their SQLSTATE is that of a bug."""
_FAULTS = (
    "00 01 02 03 09 0A 0B 0F 0L 0P 0Z 10 20 21 22 23 24 25 26 27 2B 2D 2F 34 38 39 3B 3D 3F 42 44 54 72 F0 HV P0 XX"
)
_RETRIED = "08 28 40 53 55 57 58 25006 25P03 25P04 54000 CIINF"
"""What a retry may heal:

08, 57         the connection failed, or an operator or a crash ended it
25006          the server is read-only: a failover
25P03, 25P04   the transaction took too long: a slow worker, a paused machine
28             the login is refused while passwords are rotated
40             the transaction was rolled back
53, 54000      resources or transaction ids are used up
55             something is locked or in use
58             a file could not be read or written
CIINF          of a cluster: a shard is moved, and the result of a step is not on the node that needs it
"""
DECISIONS: Mapping[str, type[MunimentError] | None] = {
    **dict.fromkeys(_FAULTS.split()),
    **dict.fromkeys(_RETRIED.split(), Unavailable),
    **dict.fromkeys(("40001", "40P01"), Conflict),
    **dict.fromkeys(("XX001", "XX002"), StorageDamaged),
    "53100": StorageFull,
    "57014": DeadlineExceeded,
}
"""What each class of SQLSTATEs becomes, and each code that differs from its class. A retry may heal what is
Unavailable. None is a fault of this server, which the caller gets as INTERNAL."""
_FILES = ("controldata_utils.c", "fd.c", "md.c", "relmapper.c", "slru.c")
"""The sources of Postgres that open, read and write files."""
_OF_FILES = ("42501", "42809", "XX000")
"""The SQLSTATEs outside of class 58 that failures of files have: by permission, kind of file, and anything else."""
AFTER_DAMAGE = "stop the server, copy the data directory, then restore a backup"
"""What an operator does about damage."""
UNOPENED = "could not open file"
"""How Postgres says it, which is all that there is of an error if it refuses a connection."""
UNUSABLE_FILES = (
    "Postgres cannot use its files: mount their disk, and give them to the account of Postgres; if one is missing, "
    f"{AFTER_DAMAGE}"
)


def domain_error(error: psycopg.Error) -> Exception:
    """The domain error for what the driver or the pool raised. Anything unforeseen is returned as it is: INTERNAL.

    That includes every violated constraint: Postgres logs the row with it, so no caller may be able to cause one.
    """
    found = _domain_error(error)
    if isinstance(found, MunimentError):
        found.cause = sqlstate_of(error)
    return found


def is_lost_connection(error: MunimentError) -> bool:
    """Whether the server could not be reached, or ended the connection, rather than a statement having failed."""
    return error.cause == NO_SQLSTATE or error.cause.startswith(_LOST_CONNECTION)


def sqlstate_of(error: psycopg.Error) -> str:
    """The SQLSTATE of what the driver or the pool raised, or NO_SQLSTATE."""
    return error.sqlstate or NO_SQLSTATE


def storage_advice(error: psycopg.Error) -> str | None:
    """What an operator does about damage, or about files that Postgres cannot use. None for any other failure."""
    if DECISIONS.get(sqlstate_of(error)) is StorageDamaged:
        return f"the database is damaged: {AFTER_DAMAGE}"
    return UNUSABLE_FILES if _is_of_files(error) else None


def _is_of_files(error: psycopg.Error) -> bool:
    """Whether Postgres could not open, read or write a file."""
    state = sqlstate_of(error)
    if state == NO_SQLSTATE:
        return UNOPENED in str(error)
    return state.startswith("58") or (state in _OF_FILES and error.diag.source_file in _FILES)


def _domain_error(error: psycopg.Error) -> Exception:
    state = sqlstate_of(error)
    if state == NO_SQLSTATE:
        return Unavailable() if isinstance(error, psycopg.OperationalError) else error
    if _is_of_files(error) or (state == "XX000" and (error.diag.message_primary or "").startswith(_LOST_NODE)):
        return Unavailable()
    decision = DECISIONS.get(state, DECISIONS.get(state[:2]))
    return error if decision is None else decision()


def location_of(error: BaseException) -> str:
    """The stack without the message: a driver's message may quote what was sent."""
    return "".join(traceback.StackSummary.from_list(traceback.extract_tb(error.__traceback__)).format())
