"""Plays scenes on the server of one checkout, and writes what is answered: `python -m tests.golden.record FOLDER`.

`make diff` runs this file in two checkouts. Both play the scenes of the folder `--golden`, and write answers as its
modules do. The server is the checkout's own, as is `internals`, which knows how it is built.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import traceback
from pathlib import Path
from typing import Any

import pytest

import tests.golden
from tests.golden.internals import running_postgres, standing


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.golden.record", description=__doc__)
    parser.add_argument("--golden", help="the folder tests/golden of another checkout")
    parser.add_argument("folder", type=Path, help="where to write a file for each scene")
    parser.add_argument("scenes", nargs="*", help="play these scenes only")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)  # the server logs the faults that it is made to have
    if arguments.golden:
        tests.golden.__path__[:] = [arguments.golden]
    scenes = importlib.import_module("tests.golden.scenes").SCENES
    chosen = {name: scenes[name] for name in scenes if not arguments.scenes or name in arguments.scenes}
    record(chosen, importlib.import_module("tests.golden.stage").Stage, arguments.folder)


def record(scenes: dict[str, Any], stage_of: Any, folder: Path) -> None:
    """Write what is answered in each of *scenes* to a file in *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    with running_postgres() as postgres, standing(postgres) as stand:
        for name, scene in scenes.items():
            stage = stage_of(stand, name)
            play(scene, stage)
            (folder / f"{name}.txt").write_bytes(stage.transcript.encode())


def play(scene: Any, stage: Any) -> None:
    """A scene that needs an answer, and is refused it, ends early. The rest of it is missing, which is a difference."""
    try:
        scene(stage)
    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - whatever it is, the other scenes are played
        traceback.print_exc()
        stage.say(f"The scene ended here: {type(error).__name__}")


if __name__ == "__main__":
    main()
