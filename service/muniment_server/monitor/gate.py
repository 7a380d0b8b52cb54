"""The gate: no call passes until a database has been found to be as it must be, and none while it is not."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import psycopg
from google.protobuf.message import Message

from muniment_server.domain.errors import MunimentError, Unavailable
from muniment_server.monitor import grants, log_settings
from muniment_server.monitor.call import Call, Proceed
from muniment_server.postgres import roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.placement import Databases, PlacedDatabase
from muniment_server.telemetry import worker_metrics as metrics

_KINDS = ("grants", "log_settings")
_TIMEOUT = 5.0
"""How many seconds a check of one server may take."""
_MAX_LOGGED = 20
"""So many problems of each kind are logged; the rest is counted."""
_LOG = logging.getLogger("muniment.gate")


class Gate:
    """The interceptor that rejects calls until `check` has opened it, and once `check` has closed it."""

    def __init__(self) -> None:
        self.open = False

    def __call__(self, call: Call, proceed: Proceed) -> Message:
        if not self.open:
            raise Unavailable
        return proceed(call)

    def check(self, databases: Databases, *, connections: int) -> None:
        """Verify each server, and open the gate while any is as it must be. *connections* is how many may be opened.

        If none can be asked, the gate stays as it is: calls fail on their own.
        """
        found = {placed: problems for placed in databases if (problems := _look(placed, connections)) is not None}
        for tenant, (one, other) in databases.refuse_claimed_twice().items():
            _LOG.critical("the tenant %d is refused: the servers %s and %s both have it", tenant, one, other)
        for placed, problems in found.items():
            placed.is_verified = not any(problems.values())
        for kind in _KINDS:
            metrics.GATE_PROBLEMS.labels(kind).set(sum(len(problems.get(kind, ())) for problems in found.values()))
        if found:
            self._set(any(placed.is_verified for placed in databases))

    def _set(self, verified: bool) -> None:
        if verified and not self.open:
            _LOG.info("gate open")
        self.open = verified


def problems_of(connection: psycopg.Connection[Any], *, connections: int) -> dict[str, list[str]]:
    """What keeps the gate closed, by kind, and what to do about it. *connection* has the settings of those that serve.

    *connections* is how many the server may open.
    """
    return {
        "grants": grants.problems(connection, connections=connections),
        "log_settings": [found.text for found in log_settings.findings(connection) if found.closes_gate],
    }


def _look(placed: PlacedDatabase, connections: int) -> Mapping[str, list[str]] | None:
    """What is wrong with one server, by kind. None if it is unavailable. Notes the tenants of one that is in order."""
    try:
        with placed.database.connection(roles.CONTROL, Deadline(_TIMEOUT)) as connection:
            found = problems_of(connection, connections=connections)
            if not any(found.values()):
                placed.tenants = grants.served_tenants(connection)
    except Unavailable:
        _LOG.warning("the grants%s could not be verified: the database is unavailable", placed.suffix)
        return None
    except (MunimentError, psycopg.Error) as error:  # grants that cannot be read are not verified
        found = {"grants": [f"the grants could not be read ({type(error).__name__}): run `muniment doctor`"]}
    for problems in found.values():
        for problem in problems[:_MAX_LOGGED]:
            _LOG.critical("gate%s closed: %s", placed.suffix, problem)
        if more := len(problems[_MAX_LOGGED:]):
            _LOG.critical("gate%s closed: further problems, which `muniment doctor` names: %d", placed.suffix, more)
    return found
