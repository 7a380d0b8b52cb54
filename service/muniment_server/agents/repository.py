"""Agents, as a host manages them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muniment_server.domain.errors import AgentExists, AgentNotFound
from muniment_server.domain.records import Agent, MemorySettings
from muniment_server.monitor.host_scope import Control


class Agents:
    """The agents of the host's tenant."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def create(
        self,
        agent_id: str,
        *,
        display_name: str,
        language: str,
        settings: MemorySettings,
        first_blocks: Mapping[str, str],
    ) -> Agent:
        """Create an agent with its PUBLIC *first_blocks* by label; *settings* are complete. Raises AgentExists."""
        new_uuid = self._control.ids.new_uuid
        row = self._control.change(
            "create_agent",
            agent=self._control.ids.new_number(),
            agent_id=agent_id or str(self._control.ids.new_uuid()),
            display_name=display_name,
            language=language,
            labels=list(first_blocks),
            contents=list(first_blocks.values()),
            item_ids=[new_uuid() for _ in first_blocks],
            change_ids=[new_uuid() for _ in first_blocks],
            **_columns(settings),
        )
        if row is None:
            raise AgentExists
        return _agent(row)

    def get(self, agent_id: str) -> Agent:
        """One agent. Raises AgentNotFound."""
        return _found(self._control.execute("get_agent", agent_id=agent_id).fetchone())

    def list(self, *, after: str, limit: int) -> tuple[list[Agent], bool]:
        """Up to *limit* agents by id, those after *after*; and whether there are more."""
        rows = self._control.execute("list_agents", after=after, limit=limit + 1).fetchall()
        return [_agent(row) for row in rows[:limit]], len(rows) > limit

    def update(
        self, agent_id: str, *, display_name: str | None, language: str | None, settings: MemorySettings
    ) -> Agent:
        """Change what is not None. Raises AgentNotFound."""
        return _found(
            self._control.change(
                "update_agent",
                agent_id=agent_id,
                display_name=display_name,
                language=language,
                **_columns(settings),
            )
        )

    def delete(self, agent_id: str) -> None:
        """Erase the agent and all that belongs to it, but its audit rows. Raises AgentNotFound.

        In this order, or it deadlocks with writers: mark the agent, lock its conversations, delete.
        """
        connection = self._control.connection
        with connection.pipeline():
            connection.execute("BEGIN")
            self._control.execute("mark_agent", agent_id=agent_id)
            self._control.execute("lock_conversations", agent_id=agent_id)
            erased = self._control.execute("erase_agent", agent_id=agent_id, change_id=self._control.ids.new_uuid())
            connection.execute("COMMIT")
        if erased.fetchone() is None:
            raise AgentNotFound


def _columns(settings: MemorySettings) -> dict[str, object]:
    return {
        "memory_enabled": settings.memory_enabled,
        "user_profile_enabled": settings.user_profile_enabled,
        "memory_char_limit": settings.memory_char_limit,
        "user_char_limit": settings.user_char_limit,
    }


def _found(row: Any) -> Agent:
    if row is None:
        raise AgentNotFound
    return _agent(row)


def _agent(row: Any) -> Agent:
    return Agent(
        agent_id=row.agent_id,
        display_name=row.display_name,
        language=row.language,
        memory_settings=MemorySettings(
            memory_enabled=row.memory_enabled,
            user_profile_enabled=row.user_profile_enabled,
            memory_char_limit=row.memory_char_limit,
            user_char_limit=row.user_char_limit,
        ),
        create_time=row.create_time,
        update_time=row.update_time,
    )
