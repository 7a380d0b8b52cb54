"""What purge throws away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from muniment_server.admin.operator import connect_operator
from muniment_server.domain.classification import Classification
from tests.support.clock import Clock
from tests.support.services import serving


def test_an_expired_and_replaced_version_is_purged_too(database):
    """Its row is the successor's by then: only its last version is left."""
    clock = Clock(database)
    with serving(database) as service:
        session = service.session(Classification.PUBLIC)
        session.save_memory(key="k", content="old", expire_time=datetime.now(UTC) + timedelta(seconds=60))
        clock.advance(seconds=120)
        session.save_memory(key="k", content="new")

    with connect_operator(database.admin) as operator:
        list(operator.purge(before=datetime.now(UTC) + timedelta(seconds=100)))

    with database.as_owner() as owner:
        assert owner.execute("SELECT content FROM muniment_public.revision WHERE kind = 1").fetchall() == [("new",)]
