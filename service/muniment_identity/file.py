"""The file in which the refresher tells the workers what it knows. It outlives both."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

SPIFFE = "spiffe://"
CERTIFICATE = "certificate"
"""The place of the keys of an identity that shows a certificate (X.509-SVID): TLS has them, in `--tls-client-ca`."""
KEY_SECONDS = 24 * 3600
"""How long keys are used after they were fetched last: an issuer may be away for that long."""
Jwk: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Identity:
    """Which tokens stand for which host key."""

    tenant: int
    key_hash: str
    """In hexadecimal digits."""
    issuer: str
    """What `iss` must be; or a SPIFFE trust domain, whose tokens need no `iss`."""
    audience: str
    subject: str
    keys: str
    """Where the issuer's keys are: an https URL, or the path of a file."""

    def is_named(self, issuer: object, audiences: Sequence[object]) -> bool:
        """Whether a token of *issuer* for *audiences*, whose subject is right, stands for it."""
        return self.audience in audiences and (self.issuer.startswith(SPIFFE) or self.issuer == issuer)


@dataclass(frozen=True, slots=True)
class Keys:
    """The public keys of one place, when they were fetched last, in seconds since the epoch."""

    keys: Sequence[Jwk]
    fetched: float


@dataclass(frozen=True, slots=True)
class Known:
    """All that the refresher knows."""

    identities: Sequence[Identity] = ()
    keys: Mapping[str, Keys] = field(default_factory=dict)
    """By their place."""

    @classmethod
    def read(cls, path: Path) -> Known:
        """What stands in the file. Raises OSError or ValueError."""
        found = json.loads(path.read_bytes())
        try:
            return cls(
                tuple(Identity(**each) for each in found["identities"]),
                {place: Keys(**each) for place, each in found["keys"].items()},
            )
        except (TypeError, KeyError, AttributeError):
            raise ValueError("another version wrote the file") from None

    def write(self, path: Path) -> None:
        """Replace the file, which its readers find whole. Raises OSError."""
        part = path.with_suffix(".part")
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)
        part.replace(path)
