"""Plays all scenes."""

from __future__ import annotations

from tests.golden.internals import EmbeddedPostgres, standing
from tests.golden.scenes import SCENES
from tests.golden.stage import Stage


def play(postgres: EmbeddedPostgres) -> dict[str, str]:
    """The transcript of every scene, by its name."""
    transcripts = {}
    with standing(postgres) as stand:
        for name, scene in SCENES.items():
            stage = Stage(stand, name)
            import time; t=time.time()
            scene(stage)
            print(name, stage._played, round(time.time()-t,2))
            transcripts[name] = stage.transcript
    return transcripts
