"""Which blocks agents share, as a host decides."""

from __future__ import annotations

from collections.abc import Sequence

from muniment_server.domain.errors import AgentNotFound, BlockExists, BlockNotAttached, SharedBlockNotFound
from muniment_server.monitor.host_scope import Control


class Sharing:
    """The declarations and links of the host's tenant. They have no level."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def create(self, owner_agent_id: str, label: str, content: str) -> None:
        """Declare a block as shared; make its PUBLIC version when there is none. Raises AgentNotFound, BlockExists.

        The lock is a statement of its own: one that waits does not see what it waited for.
        """
        connection = self._control.connection
        with connection.pipeline():
            connection.execute("BEGIN")
            owner = self._control.execute("lock_agent", owner_agent_id=owner_agent_id)
            created = self._control.execute(
                "create_shared_block",
                owner_agent_id=owner_agent_id,
                label=label,
                content=content,
                item_id=self._control.ids.new_uuid(),
                change_id=self._control.ids.new_uuid(),
            )
            connection.execute("COMMIT")
        if owner.fetchone() is None:
            raise AgentNotFound
        if created.fetchone() is None:
            raise BlockExists

    def delete(self, owner_agent_id: str, label: str) -> None:
        """End a declaration and all its links. Raises AgentNotFound, SharedBlockNotFound."""
        row = self._control.change("delete_shared_block", owner_agent_id=owner_agent_id, label=label)
        if row.owner is None:
            raise AgentNotFound
        if row.declared is None:
            raise SharedBlockNotFound

    def attach(self, owner_agent_id: str, label: str, agent_id: str) -> None:
        """Let an agent read a shared block. Raises AgentNotFound, SharedBlockNotFound."""
        row = self._control.change("attach_block", owner_agent_id=owner_agent_id, label=label, agent_id=agent_id)
        if row.owner is None or row.consumer is None:
            raise AgentNotFound
        if row.declared is None:
            raise SharedBlockNotFound

    def detach(self, owner_agent_id: str, label: str, agent_id: str) -> None:
        """Let it read no more. Raises AgentNotFound, SharedBlockNotFound, BlockNotAttached."""
        row = self._control.change("detach_block", owner_agent_id=owner_agent_id, label=label, agent_id=agent_id)
        if row.owner is None or row.consumer is None:
            raise AgentNotFound
        if row.declared is None:
            raise SharedBlockNotFound
        if row.detached is None:
            raise BlockNotAttached

    def consumers(self, owner_agent_id: str, label: str, *, after: str, limit: int) -> tuple[Sequence[str], bool]:
        """Up to *limit* ids of agents that read a shared block, those after *after*; and whether there are more.

        Raises AgentNotFound, SharedBlockNotFound.
        """
        rows = self._control.execute(
            "list_block_consumers", owner_agent_id=owner_agent_id, label=label, after=after, limit=limit + 1
        ).fetchall()
        if not rows:
            raise AgentNotFound
        if rows[0].declared is None:
            raise SharedBlockNotFound
        agent_ids = [row.agent_id for row in rows if row.agent_id is not None]
        return agent_ids[:limit], len(agent_ids) > limit
