"""What the driver says, in our words. A driver's message never leaves this module."""

from __future__ import annotations

import traceback

import psycopg
from psycopg import errors

from muniment_server.domain.errors import Conflict, DeadlineExceeded, FieldViolation, InvalidArgument, Unavailable

_ENDED = {"block_link_tenant_owner_label_fkey"}
"""What a row refers to, and what may end while the row is written: looked at again, it is not there."""
_RULES = {"expires_after_it_is_written": FieldViolation("expire_time", "must be in the future")}


def in_our_words(error: Exception) -> Exception:
    """The domain error for what the driver or the pool raised; what is not foreseen stays itself, and is INTERNAL."""
    match error:
        case errors.QueryCanceled():
            return DeadlineExceeded()
        case errors.DeadlockDetected() | errors.SerializationFailure():
            return Conflict()
        case errors.ForeignKeyViolation() if error.diag.constraint_name in _ENDED:
            return Conflict()
        case errors.CheckViolation() if rule := _RULES.get(error.diag.constraint_name or ""):
            return InvalidArgument(rule)
        case errors.ReadOnlySqlTransaction() | errors.IdleInTransactionSessionTimeout():  # a failover; a slow worker
            return Unavailable()
        case psycopg.OperationalError():  # no connection, or no room, time or lock was left
            return Unavailable()
    return error


def place_of(error: Exception) -> str:
    """Where it happened, without what it said: a driver's message may quote what was sent."""
    return "".join(traceback.StackSummary.from_list(traceback.extract_tb(error.__traceback__)).format())
