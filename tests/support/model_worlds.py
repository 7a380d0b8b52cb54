"""A service that uses models at addresses, for tests of what these are sent, and of what becomes of their answers."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from muniment_server.domain.classification import Classification
from tests.support.answers import LEVELS
from tests.support.model_server import ModelServer
from tests.support.services import Service

AModelServer = TypeVar("AModelServer", bound=ModelServer)


class ModelWorld(Generic[AModelServer]):
    """A service, the server of its model, and a session of each agent at each level."""

    def __init__(self, service: Service, server: AModelServer) -> None:
        self.service = service
        self.server = server
        self._sessions: dict[tuple[Classification, str], Any] = {}

    def at(self, level: Classification, agent: str = "alice") -> Any:
        """A session: the same one each time it is asked for."""
        if (level, agent) not in self._sessions:
            self._sessions[level, agent] = self.service.session(level, agent_id=agent)
        return self._sessions[level, agent]

    def received(self) -> str:
        """All that the server of the model received."""
        return "\n".join(body.decode() for _, _, body in self.server.requests)

    def received_levels(self) -> list[Classification]:
        """The levels whose names are in what it received."""
        return [level for level in LEVELS if level.name in self.received()]
