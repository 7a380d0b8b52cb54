"""The README's program runs by itself, prints what it says, and stores under the key that it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import muniment
from muniment import Classification
from muniment.langgraph import MunimentStore

README = Path(__file__).parents[3] / "clients/python/README.md"
TEXT = README.read_text(encoding="utf-8").partition("\n## For LangGraph\n")[2].partition("\n## ")[0]


CODE = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def test_the_example(service, owner, monkeypatch, capsys):
    code, *_ = CODE
    (shown,) = re.findall(r"^```text\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    monkeypatch.setenv("MUNIMENT_ADDRESS", service.address)
    monkeypatch.setenv("MUNIMENT_HOST_KEY", service.host().token)
    names: dict[str, Any] = {}

    exec(compile(code, str(README), "exec"), names)

    assert shown == capsys.readouterr().out
    with owner.open_session(names["agent"].agent_id, 1) as session:
        assert [memory.key for memory in session.list_memories()] == ["muniment:langgraph/users.42/theme"]


def test_a_server_has_a_store_for_each_request(owner, opened):
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(CODE[1], str(README), "exec"), names)
    low, high = opened(Classification.PUBLIC), opened(Classification.RESTRICTED)

    assert names["handle"](owner, low.token, "hello") == ["hello"]
    assert names["handle"](owner, high.token, "secret") == ["hello", "secret"]
    assert names["handle"](owner, low.token, "again") == ["again", "hello"]


def test_items_that_an_earlier_version_stored_are_put_again(opened):
    names: dict[str, Any] = {"muniment": muniment, "MunimentStore": MunimentStore}
    exec(compile(CODE[2], str(README), "exec"), names)
    low, high = opened(Classification.PUBLIC), opened(Classification.RESTRICTED)
    for session, dark in ((low, False), (high, True)):
        session.save_memory("langgraph/a%2Fb.42/theme", f'{{"dark": {str(dark).lower()}}}', tags=["langgraph"])
    low.save_memory("langgraph/a%2Fb.42/tea", '{"kind": "Assam"}', tags=["langgraph"])

    names["put_again"](low)
    names["put_again"](high)

    where = ("a/b", "42")
    assert [item.value for item in MunimentStore(low).search(where)] == [{"kind": "Assam"}, {"dark": False}]
    assert [item.value for item in MunimentStore(high).search(where)] == [{"kind": "Assam"}, {"dark": True}]
    assert high.get_memory("muniment:langgraph/a%2Fb.42/tea").classification == Classification.PUBLIC
