"""service/docs/releases.md: what it shows works as it stands there."""

from __future__ import annotations

import re

from tests.support.words import ROOT

PAGE = (ROOT / "service" / "docs" / "releases.md").read_text(encoding="utf-8")


def test_the_example_prints_what_its_comments_say(shared, host, key, monkeypatch, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    callers = {"MUNIMENT_HOST_KEY": host, "ASKS_KEY": key("endorse"), "APPROVES_KEY": key("endorse")}
    for name, caller in callers.items():
        monkeypatch.setenv(name, caller.token)
    monkeypatch.setenv("MUNIMENT_ADDRESS", shared.address)

    exec(example, {})

    assert capsys.readouterr().out.splitlines() == ["0", "The Astoria has a night desk.", "['hotel']"]
