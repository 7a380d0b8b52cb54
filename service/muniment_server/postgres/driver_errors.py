"""Domain errors for what the driver raises. A driver's message never leaves this module."""

from __future__ import annotations

import traceback

import psycopg
from psycopg import errors

from muniment_server.domain.errors import (
    Conflict,
    DeadlineExceeded,
    MunimentError,
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
"""How Citus's messages begin if it has lost a node in the middle of a statement. Their SQLSTATE is that of a bug."""
_RESULT_IS_GONE = "CIINF"
"""Citus's own SQLSTATE: the result of a step is not on the node that needs it. It happens while a shard is moved."""


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


def _domain_error(error: Exception) -> Exception:
    match error:
        case errors.QueryCanceled():
            return DeadlineExceeded()
        case errors.DeadlockDetected() | errors.SerializationFailure():
            return Conflict()
        case errors.DiskFull():
            return StorageFull()
        case errors.ReadOnlySqlTransaction() | errors.IdleInTransactionSessionTimeout():  # a failover; a slow worker
            return Unavailable()
        case psycopg.Error(sqlstate=state) if state == _RESULT_IS_GONE:
            return Unavailable()
        case errors.InternalError_() if (error.diag.message_primary or "").startswith(_LOST_NODE):
            return Unavailable()
        case psycopg.OperationalError():  # no connection, or out of resources, time or locks
            return Unavailable()
    return error


def location_of(error: BaseException) -> str:
    """The stack without the message: a driver's message may quote what was sent."""
    return "".join(traceback.StackSummary.from_list(traceback.extract_tb(error.__traceback__)).format())
