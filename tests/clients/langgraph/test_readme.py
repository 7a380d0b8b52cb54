"""The README's code runs, and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[3] / "clients/python/README.md"
TEXT = README.read_text(encoding="utf-8").partition("\n## For LangGraph\n")[2]


def test_the_example(owner, capsys):
    (code,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(r"^```text\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)

    exec(compile(code, str(README), "exec"), {"host": owner, "agent": owner.create_agent()})

    assert shown == capsys.readouterr().out


def test_the_key_is_as_it_says(owner):
    (code,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    agent = owner.create_agent()

    exec(compile(code, str(README), "exec"), {"host": owner, "agent": agent})

    with owner.open_session(agent.agent_id, 1) as session:
        assert [memory.key for memory in session.list_memories()] == ["langgraph/users.42/theme"]
