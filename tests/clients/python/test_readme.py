"""The README's code runs."""

from __future__ import annotations

import re
from pathlib import Path

from tests.clients.python.scripted import HOST_KEY

README = Path(__file__).parents[3] / "clients/python/README.md"


def test_the_tour_runs(running, monkeypatch, capsys):
    monkeypatch.setenv("MUNIMENT_ADDRESS", running.address)
    monkeypatch.setenv("MUNIMENT_HOST_KEY", HOST_KEY)
    tour, output = re.findall(r"```(?:python|text)\n(.*?)```", README.read_text(), re.DOTALL)[:2]

    exec(compile(tour, str(README), "exec"), {})

    assert output == capsys.readouterr().out
