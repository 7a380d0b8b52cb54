"""A noun keeps nothing between calls.

Code that showed in one call what it saw in the call of a higher session would meet the egress filter only if it also
kept the label. So it keeps nothing: the one promise about nouns that a lint holds, and not the monitor.
"""

from __future__ import annotations

import inspect
import tomllib

import pytest

from tests.proof.noninterference.mutants import passages
from tests.support.each import for_each
from tests.support.nouns import NOUNS, SERVED, SERVER, files, remembered
from tests.support.words import ROOT

_HARMLESS = {
    "items/quotas.py": ["known.until"],  # a time, of the same session at the same taint
    "passages/servicer.py": ["error.detail"],  # of the error that is raised
    "search/grams.py": ["cache"],  # which signs of Unicode are letters
}
"""What is found and keeps nothing of any session."""


def _lists_of_nouns() -> list[tuple[str, set[str], set[str]]]:
    """Each list of nouns in pyproject.toml: what it is for, what it names, what it should name."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    (private,) = (pattern for pattern in tools["ruff"]["lint"]["per-file-ignores"] if pattern.startswith("!"))
    contracts = tools["importlinter"]["contracts"]
    (layer,) = (each for contract in contracts for each in contract.get("layers", ()) if " | " in each)
    of_nouns = [contract for contract in contracts if contract["name"].startswith("A noun ")]
    assert len(of_nouns) == 2
    return [
        ("SLF001", set(private[private.index("{") + 1 : private.index("}")].split(",")), set(NOUNS)),
        ("Imports point down", {each.rpartition(".")[2] for each in layer.split(" | ")}, set(SERVED)),
        *(
            (each["name"], {module.rpartition(".")[2] for module in each["source_modules"]}, {*SERVED, "items"})
            for each in of_nouns
        ),
    ]


@pytest.mark.parametrize(("rule", "named", "all_of_them"), _lists_of_nouns())
def test_a_rule_names_every_noun(rule, named, all_of_them):
    assert sorted(named ^ all_of_them) == [], f"`{rule}` in pyproject.toml lacks a noun, or names what is none"


@for_each("path", files())
def test_a_noun_keeps_nothing_between_calls(path):
    found = [line.split(": ", 1)[1] for line in remembered(path.read_text("utf-8"))]

    assert found == _HARMLESS.get(path.relative_to(SERVER).as_posix(), [])


@pytest.mark.parametrize(
    "code",
    [
        inspect.getsource(passages.prompts_remembered),
        "_seen = []\n\ndef get(scope):\n    _seen.append(scope.session())\n",
        "_seen = {}\n\ndef get(scope):\n    _seen[scope.taint] = scope\n",
        "_last = None\n\ndef get(scope):\n    global _last\n    _last = scope\n",
        "class Servicer:\n    def GetMemory(self, request, context):\n        self._last = context\n",
        "class Servicer:\n    def GetMemory(self, request, context):\n        self._seen.append(context)\n",
        "class Servicer:\n    def GetMemory(self, request, context):\n        Servicer.last = context\n",
        "def get(scope, seen=[]):\n    return seen\n",
        "from functools import lru_cache\n\n@lru_cache\ndef get(scope):\n    return scope.session()\n",
        "def made(last):\n    def get(scope):\n        nonlocal last\n        last = scope\n    return get\n",
    ],
)
def test_code_that_keeps_something_is_found(code):
    assert remembered(code) != []
