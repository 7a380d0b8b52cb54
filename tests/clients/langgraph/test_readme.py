"""The README's program runs by itself, prints what it says, and stores under the key that it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

README = Path(__file__).parents[3] / "clients/python/README.md"
TEXT = README.read_text(encoding="utf-8").partition("\n## For LangGraph\n")[2]


def test_the_example(service, owner, monkeypatch, capsys):
    (code,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(r"^```text\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    monkeypatch.setenv("MUNIMENT_ADDRESS", service.address)
    monkeypatch.setenv("MUNIMENT_HOST_KEY", service.host().token)
    names: dict[str, Any] = {}

    exec(compile(code, str(README), "exec"), names)

    assert shown == capsys.readouterr().out
    with owner.open_session(names["agent"].agent_id, 1) as session:
        assert [memory.key for memory in session.list_memories()] == ["langgraph/users.42/theme"]
