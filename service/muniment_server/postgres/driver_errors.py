"""Domain errors for what the driver raises. A driver's message never leaves this module."""

from __future__ import annotations

import traceback

import psycopg
from psycopg import errors

from muniment_server.domain.errors import (
    Conflict,
    DeadlineExceeded,
    StorageFull,
    Unavailable,
)


def domain_error(error: Exception) -> Exception:
    """The domain error for what the driver or the pool raised. Anything unforeseen is returned as it is: INTERNAL.

    That includes every violated constraint: Postgres logs the row with it, so no caller may be able to cause one.
    """
    match error:
        case errors.QueryCanceled():
            return DeadlineExceeded()
        case errors.DeadlockDetected() | errors.SerializationFailure():
            return Conflict()
        case errors.DiskFull():
            return StorageFull()
        case errors.ReadOnlySqlTransaction() | errors.IdleInTransactionSessionTimeout():  # a failover; a slow worker
            return Unavailable()
        case psycopg.OperationalError():  # no connection, or out of resources, time or locks
            return Unavailable()
    return error


def location_of(error: Exception) -> str:
    """The stack without the message: a driver's message may quote what was sent."""
    return "".join(traceback.StackSummary.from_list(traceback.extract_tb(error.__traceback__)).format())
