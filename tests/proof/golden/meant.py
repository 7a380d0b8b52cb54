"""Which differences are meant: what changed.md says of the commit that landed last."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.proof.golden.rendering import digest

CHANGED = Path(__file__).with_name("changed.md")
_SINCE = re.compile(r"^## Since ([0-9a-f]{7,40})$", re.MULTILINE)
_NAME = re.compile(r"`(\w+)` ([0-9a-f]{12})")


@dataclass(frozen=True, slots=True)
class Meant:
    """The differences from one commit that are meant."""

    base: str
    """The commit that landed last."""
    names: dict[str, str]
    """By scene, the digest of what is answered now."""


def read(text: str) -> Meant:
    """The newest section of changed.md, which is the first."""
    _, base, section, *_ = _SINCE.split(text)
    return Meant(base, dict(_NAME.findall(section)))


def name_of(transcript: bytes) -> str:
    """What changed.md calls the answers in a transcript. Other answers have another name."""
    return digest(transcript)[:12]


def differing(before: Path, now: Path) -> dict[str, str]:
    """The scenes whose transcripts in two folders differ, with the names of what is answered now."""
    transcripts = {path.stem: path.read_bytes() for path in sorted(now.glob("*.txt"))}
    return {
        scene: name_of(transcript)
        for scene, transcript in transcripts.items()
        if transcript != (before / f"{scene}.txt").read_bytes()
    }


def errors(found: dict[str, str], names: dict[str, str]) -> Iterator[str]:
    """What is wrong if the differences in *found* are there, and those in *names* are meant."""
    for scene in sorted(names.keys() - found):
        yield f"{CHANGED.name} names a difference in `{scene}`, where there is none: remove the name."
    unmeant = {scene: name for scene, name in found.items() if names.get(scene) != name}
    if unmeant:
        yield f"{CHANGED.name} does not name these answers. If they are meant, say there what changes and why:"
        yield from (f"* `{scene}` {name}: …" for scene, name in unmeant.items())
