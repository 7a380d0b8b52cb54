"""What purge throws away."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from muniment_server.admin.operator import NoSuchAgent, NoSuchTenant, Purgeable, connect_operator
from muniment_server.domain.classification import Classification
from muniment_server.domain.items import ItemKind
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
        list(operator.purge(Purgeable(), before=datetime.now(UTC) + timedelta(seconds=100)))

    with database.as_owner() as owner:
        assert owner.execute("SELECT content FROM muniment_public.revision WHERE kind = 1").fetchall() == [("new",)]


def test_only_what_is_named_is_purged(database):
    levels = (Classification.PUBLIC, Classification.RESTRICTED)
    with serving(database) as service:
        for agent_id in ("alice", "bob"):
            for level in levels:
                session = service.session(level, agent_id=agent_id)
                for key in ("plan", "other"):
                    session.save_memory(key=key, content="one")
                    session.save_memory(key=key, content="two")
                session.update_block(label="plan", content="one")
                session.update_block(label="plan", content="two")

    def left() -> Counter[tuple[str, int, str]]:
        query = """SELECT agent_id, kind, name
                     FROM (SELECT * FROM muniment_public.revision UNION ALL SELECT * FROM muniment_restricted.revision)
                          AS revision
                          JOIN vault.agent USING (tenant, agent)"""
        with database.as_owner() as owner:
            return Counter(owner.execute(query).fetchall())

    before = left()
    named = ("alice", ItemKind.MEMORY, "plan")
    with connect_operator(database.admin) as operator:
        what = operator.purgeable(tenant="acme", agent_id="alice", kind=ItemKind.MEMORY, name="plan")
        purged = [each.revisions for each in operator.purge(what, before=datetime.now(UTC) + timedelta(hours=1))]
        with pytest.raises(NoSuchAgent):
            operator.purgeable(tenant="acme", agent_id="nobody", kind=None, name=None)
        with pytest.raises(NoSuchTenant):
            operator.purgeable(tenant="nobody", agent_id=None, kind=None, name=None)

        assert purged == [1, 0, 0, 1]
        assert before - left() == Counter({named: 2})
        rest = operator.purgeable(tenant="acme", agent_id=None, kind=ItemKind.BLOCK, name=None)
        list(operator.purge(rest, before=datetime.now(UTC) + timedelta(hours=1)))
        assert {kind for _, kind, _ in before - left()} == {ItemKind.MEMORY, ItemKind.BLOCK}
        assert {agent_id for agent_id, kind, _ in before - left() if kind == ItemKind.BLOCK} == {"alice", "bob"}
