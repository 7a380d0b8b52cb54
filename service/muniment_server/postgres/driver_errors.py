"""Domain errors for what the driver raises. A driver's message never leaves this module."""

from __future__ import annotations

import traceback

import psycopg
from psycopg import errors

from muniment_server.domain.errors import (
    Conflict,
    DeadlineExceeded,
    FieldViolation,
    InvalidArgument,
    Unavailable,
)

_PARENT_MAY_VANISH = {"block_link_tenant_owner_label_fkey"}
"""Foreign keys whose parent row may be deleted while the child is written: a retry finds it gone."""
_RULES = {"expires_after_it_is_written": FieldViolation("expire_time", "must be in the future")}


def domain_error(error: Exception) -> Exception:
    """The domain error for what the driver or the pool raised. Anything unforeseen is returned as it is: INTERNAL."""
    match error:
        case errors.QueryCanceled():
            return DeadlineExceeded()
        case errors.DeadlockDetected() | errors.SerializationFailure():
            return Conflict()
        case errors.ForeignKeyViolation() if error.diag.constraint_name in _PARENT_MAY_VANISH:
            return Conflict()
        case errors.CheckViolation() if rule := _RULES.get(error.diag.constraint_name or ""):
            return InvalidArgument(rule)
        case errors.ReadOnlySqlTransaction() | errors.IdleInTransactionSessionTimeout():  # a failover; a slow worker
            return Unavailable()
        case psycopg.OperationalError():  # no connection, or out of resources, time or locks
            return Unavailable()
    return error


def location_of(error: Exception) -> str:
    """The stack without the message: a driver's message may quote what was sent."""
    return "".join(traceback.StackSummary.from_list(traceback.extract_tb(error.__traceback__)).format())
