"""The database roles. A label's role shares its name with the label's schema, and holds the label's grants."""

from __future__ import annotations

from muniment_server.domain.classification import Label

OWNER = "muniment_owner"
"""Owns everything. Migrations and operators act as it by SET ROLE. It can log in only on a cluster,
where nodes connect to each other as it."""
CONTROL = "muniment_control"
"""Agents, conversations and their taint, sessions, sharing. It cannot read any item."""
AUDITOR = "muniment_auditor"
"""Reads audit rows."""
ERASER = "muniment_eraser"
"""Deletes the rows of deleted agents, and sees no others. No call of a principal uses it."""
LABELS = tuple(label.role for label in Label)
OF_TRUSTED = tuple(label.role for label in Label if label.is_trusted)

SERVING = (CONTROL, AUDITOR, ERASER, *LABELS)
"""The roles that a serving process logs in as."""
ALL = (OWNER, *SERVING)
