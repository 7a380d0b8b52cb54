"""The database roles. A level's role shares its name with the level's schema, and holds the level's grants."""

from __future__ import annotations

from muniment_server.domain.classification import Classification

OWNER = "muniment_owner"
"""Owns everything and cannot log in: migrations and operators' commands act as it by SET ROLE."""
CONTROL = "muniment_control"
"""Agents, conversations and their taint, sessions, sharing. It cannot read any item."""
AUDITOR = "muniment_auditor"
"""Reads audit rows."""
LEVELS = tuple(level.role for level in Classification)

SERVING = (CONTROL, AUDITOR, *LEVELS)
"""The roles that a serving process logs in as."""
ALL = (OWNER, *SERVING)
