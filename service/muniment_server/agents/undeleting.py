"""UndeleteItem: a host brings one deleted item back, at the level at which it was deleted."""

from __future__ import annotations

from muniment_server.domain.classification import Label
from muniment_server.domain.items import ItemKind
from muniment_server.items import undeleting
from muniment_server.items.own_session import own_session
from muniment_server.monitor.call import CallContext


def undelete(context: CallContext, agent_id: str, kind: ItemKind, name: str, label: Label) -> None:
    """Bring the item back that was deleted last under *name* with *label*.

    Raises CeilingExceeded, IntegrityExceeded, AgentNotFound, AgentAboveCeiling, AgentCeilingExceeded, or what
    `items.undeleting.undelete` raises.
    """
    with (
        own_session(context, agent_id, kind, label) as own,
        context.own_session_scope(own.session_id, label, writes=True) as scope,
    ):
        undeleting.undelete(scope, kind, name)
