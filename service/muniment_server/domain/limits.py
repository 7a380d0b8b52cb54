"""What the sessions of an agent may take."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """The limits of one agent, each for each level by itself. None means that a limit is not stated."""

    calls_per_second: int | None
    max_items: int | None
    max_bytes: int | None
    max_revisions: int | None
    """Of one item."""
    memory_ttl: timedelta | None = None
    """How long after its save a memory without an expire time expires. Zero: it does not."""
    passage_ttl: timedelta | None = None
    """The same for a passage."""


FOREVER = timedelta(0)
"""The time to live of what does not expire."""
DEFAULT_LIMITS = AgentLimits(
    calls_per_second=2_000,
    max_items=1_000_000,
    max_bytes=4 << 30,
    max_revisions=100_000,
    memory_ttl=FOREVER,
    passage_ttl=FOREVER,
)
"""So high that only an agent out of control meets them."""


@dataclass(slots=True)
class KnownRoom:
    """Until when a session may write without a look at what its agent stores: it was far below its limits."""

    until: float = 0.0
    """On the monotonic clock, in seconds."""


NEARLY_FULL = 0.8
"""From this part of a limit on, the host is warned."""
