"""Plays scenes on the server of one checkout, and writes what is answered.

`make diff` runs this file in two checkouts. Both play the scenes of one of them, and write answers as its modules do.
The server is the checkout's own, as is `internals`, which knows how it is built.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def main() -> None:
    parser = argparse.ArgumentParser(prog="record.py", description=__doc__)
    parser.add_argument("internals", help="the module of this checkout that knows how the server is built")
    parser.add_argument("package", help="the name of the scenes' package")
    parser.add_argument("golden", help="the folder of the scenes' package")
    parser.add_argument("folder", type=Path, help="where to write a file for each scene")
    parser.add_argument("scenes", nargs="*", help="play these scenes only")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)  # the server logs the faults that it is made to have
    internals = importlib.import_module(arguments.internals)
    use_scenes_of(arguments.package, arguments.golden, internals)
    scenes = importlib.import_module(f"{arguments.package}.scenes").SCENES
    chosen = {name: scenes[name] for name in scenes if not arguments.scenes or name in arguments.scenes}
    record(internals, chosen, importlib.import_module(f"{arguments.package}.stage").Stage, arguments.folder)


def use_scenes_of(name: str, folder: str, internals: ModuleType) -> None:
    """Let *name* be a package of the modules in *folder*, but for *internals*."""
    package = ModuleType(name)
    package.__path__ = [folder]
    sys.modules[name] = package
    sys.modules[f"{name}.internals"] = internals


def record(internals: Any, scenes: dict[str, Any], stage_of: Any, folder: Path) -> None:
    """Write what is answered in each of *scenes* to a file in *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    with internals.running_postgres() as postgres, internals.standing(postgres) as stand:
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
