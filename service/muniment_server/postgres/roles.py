"""The database roles. A level's role is the level: its name, its schema, and what it was granted."""

from __future__ import annotations

from muniment_server.domain.classification import Classification

OWNER = "muniment_owner"
"""Owns everything, logs in nowhere: migrations and operators' commands take its place by SET ROLE."""
CONTROL = "muniment_control"
"""Agents, conversations and their taint, sessions, sharing. No item can be read through it."""
AUDITOR = "muniment_auditor"
"""Reads audit rows."""
LEVELS = tuple(level.role for level in Classification)

SERVING = (CONTROL, AUDITOR, *LEVELS)
"""The roles that a serving process logs in as."""
ALL = (OWNER, *SERVING)
