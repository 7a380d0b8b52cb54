"""The threat model and the tests name each other: no id without a definition, no proof that is not there."""

from __future__ import annotations

import re

from tests.support.each import for_each
from tests.support.words import ROOT

TEXT = (ROOT / "service" / "docs" / "threats.md").read_text(encoding="utf-8")
_PROOFS = dict(re.findall(r"^\| (C\d\d) \|.*\| (.*?) \|$", TEXT, re.MULTILINE))
_TESTS = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("*.py"))]


def _numbers(pattern: str, texts: list[str]) -> set[int]:
    return {int(number) for text in texts for number in re.findall(pattern, text)}


_MUTANTS = _numbers(r"\"M(\d\d) ", _TESTS)


def test_every_channel_that_a_test_names_is_defined():
    named = _numbers(r"(?<![a-z0-9])c(\d\d)_", _TESTS) | _numbers(r"\bC(\d\d)\b", _TESTS)

    undefined = sorted(named - {int(channel[1:]) for channel in _PROOFS})
    assert undefined == [], f"tests name channels that service/docs/threats.md does not define: {undefined}"


@for_each("channel", sorted(_PROOFS))
def test_every_proof_of_a_channel_exists(channel):
    """Tests by their id or their file, mutants by their number; `none` and `not measured` are said openly."""
    proof = _PROOFS[channel]
    ids = re.findall(r"`c(\d\d)`", proof)
    files = re.findall(r"`(tests/[\w/.]+)`", proof)
    mutants = {int(number) for number in re.findall(r"\bM(\d\d)", proof)}

    assert ids or files or mutants or re.search(r"NI|none|not measured", proof), "names no proof"
    assert [one for one in ids if not any(f"c{one}_" in text for text in _TESTS)] == [], "no test has this id"
    assert [one for one in files if not (ROOT / one).exists()] == [], "there is no such file"
    assert sorted(mutants - _MUTANTS) == [], "there is no such mutant"
