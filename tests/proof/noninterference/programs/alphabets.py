"""The small alphabets that programs draw from, so that they meet in the same names."""

from __future__ import annotations

import uuid
from datetime import timedelta

from tests.proof.noninterference.replay import BEGINNING, derived

KEYS = ("plan", "Plan", "budget", "caf\u00e9", "running list")
PREFIXES = ("p", "plan", "b", "caf", "caf\u00e9", "running ", "Q")
LABELS = ("plan", "Plan", "personality", "caf\u00e9")
SPELLINGS = {"caf\u00e9": "cafe\u0301"}
THREADS = ("t-1", "t-2", "caf\u00e9")
TAGS = ("work", "Work", "home", "r\u00e9sum\u00e9")
WORDS = ("meeting", "meetings", "budget", "budgets", "running", "runs")
LEVELS = (1, 2, 3, 4)
AGENTS = ("alice", "bob", "carol", "dora")
CONVERSATIONS = {"c-1": None, "c-2": timedelta(hours=6), "c-3": timedelta(minutes=20)}
"""Conversations and the ttl of their sessions: one each, because a reset hands it on."""
IDS = tuple(str(uuid.UUID(bytes=derived(f"id {number}")[:16], version=4)) for number in range(4))
"""Ids that clients choose, for notes and for passages."""
EVENT_TIMES = tuple(BEGINNING + timedelta(hours=hours) for hours in (-72, -24, 0, 24))
"""When something was said, and where filters begin and end."""
CANARY = "qcanary"
"""In every content. Nothing but an answer may show it."""
