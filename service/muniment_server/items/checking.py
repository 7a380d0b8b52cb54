"""Requests that are only checked against the rules of their fields."""

from __future__ import annotations

from muniment_server.monitor.call import CallContext


def check_session(context: CallContext) -> None:
    """Raise StaleSession unless the session is still open at its taint. Nothing else is read: no item decides."""
    with context.session_scope() as scope:
        scope.session()
