"""What a plan says about how much a statement looked at, in the format JSON of EXPLAIN (ANALYZE, BUFFERS)."""

from __future__ import annotations

from typing import Any


def buffers(plan: Any) -> int:
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def rows(plan: Any, table: str) -> int:
    """How many rows of a table were looked at, those that a filter threw away included."""
    own = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) if plan.get("Relation Name") == table else 0
    return int(own * plan["Actual Loops"]) + sum(rows(below, table) for below in plan.get("Plans", []))
