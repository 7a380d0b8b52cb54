"""Plays all scenes, and tells from a transcript what it covers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.proof.golden.internals import EmbeddedPostgres, standing
from tests.proof.golden.scenes import SCENES
from tests.proof.golden.stage import ENTRY, Stage


class Played(NamedTuple):
    """One call of a transcript."""

    rpc: str
    kind: str
    """`host`, `session` or `nobody`."""
    level: str
    """A session's taint or a host's ceiling."""
    code: str
    reason: str


def play(postgres: EmbeddedPostgres) -> dict[str, str]:
    """The transcript of every scene, by its name."""
    transcripts = {}
    with standing(postgres) as stand:
        for name, scene in SCENES.items():
            stage = Stage(stand, name)
            scene(stage)
            transcripts[name] = stage.transcript
    return transcripts


def calls_of(transcript: str) -> Iterator[Played]:
    """The calls of a transcript."""
    lines = iter(transcript.split("\n"))
    for line in lines:
        if line.startswith(ENTRY):
            rpc, _, actor = line.removeprefix(ENTRY).partition(" | ")
            kind, level, *_ = actor.split(" ")
            status = next(each for each in lines if not each.startswith(">"))
            code, _, reason = status.partition(" ")
            yield Played(rpc, kind, level, code, reason)
