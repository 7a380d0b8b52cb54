"""Where ids and secrets come from. Random, so that no id tells of others; injected, so that tests can replay."""

from __future__ import annotations

import secrets
import uuid
from typing import Protocol

from muniment_server.domain.tokens import SECRET_BYTES


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
    """Ids from the operating system's randomness. Version 4: versions with a time in them would tell it."""

    def new_uuid(self) -> uuid.UUID:
        return uuid.uuid4()

    def new_number(self) -> int:
        return secrets.randbelow(2**63 - 1) + 1

    def new_secret(self) -> bytes:
        return secrets.token_bytes(SECRET_BYTES)
