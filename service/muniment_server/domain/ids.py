"""Identifiers, and the source of ids and secrets.

Ids are random, so that no id reveals anything about other ids. The source is injected, so that tests can replay it.
"""

from __future__ import annotations

import secrets
import uuid
from typing import NewType, Protocol

SECRET_BYTES = 32
"""The length of the secret in a token."""

TenantNumber = NewType("TenantNumber", int)
"""Identifies a tenant. Every key of a table and every token begins with it."""
AgentNumber = NewType("AgentNumber", int)
"""Identifies an agent in the database. Never reused, unlike the agent id that a host chooses."""
SessionId = NewType("SessionId", uuid.UUID)
HostKeyId = NewType("HostKeyId", uuid.UUID)
ItemId = NewType("ItemId", uuid.UUID)


class IdSource(Protocol):
    """A source of ids and secrets."""

    def new_uuid(self) -> uuid.UUID:
        """An id that may leave the server."""
        ...

    def new_number(self) -> int:
        """An internal id: 63 bits, positive."""
        ...

    def new_secret(self) -> bytes:
        """SECRET_BYTES bytes for a token."""
        ...


class RandomIds:
    """Ids from the operating system's randomness. UUID version 4: other versions reveal the time."""

    def new_uuid(self) -> uuid.UUID:
        return uuid.uuid4()

    def new_number(self) -> int:
        return secrets.randbelow(2**63 - 1) + 1

    def new_secret(self) -> bytes:
        return secrets.token_bytes(SECRET_BYTES)
