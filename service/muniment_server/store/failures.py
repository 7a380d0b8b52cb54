"""What the driver says, in our words. A driver's message never leaves this module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from muniment_server.domain.errors import (
    Conflict,
    DeadlineExceeded,
    FieldViolation,
    InvalidArgument,
    Overloaded,
    Unavailable,
)

_AWAY = (
    errors.LockNotAvailable,
    errors.DiskFull,
    errors.ReadOnlySqlTransaction,
    errors.IdleInTransactionSessionTimeout,
)
_RULES = {"expires_after_it_is_written": FieldViolation("expire_time", "must be in the future")}


@contextmanager
def translated() -> Iterator[None]:
    """Turn the driver's errors into domain errors; what is not foreseen stays as it is, and is INTERNAL."""
    try:
        yield
    except errors.QueryCanceled:
        raise DeadlineExceeded from None
    except (errors.DeadlockDetected, errors.SerializationFailure):
        raise Conflict from None
    except (PoolTimeout, TooManyRequests):
        raise Overloaded from None
    except (PoolClosed, *_AWAY):
        raise Unavailable from None
    except errors.CheckViolation as error:
        rule = _RULES.get(error.diag.constraint_name or "")
        if rule is None:
            raise
        raise InvalidArgument(rule) from None
    except psycopg.OperationalError:  # the connection is gone, or could not be made
        raise Unavailable from None
