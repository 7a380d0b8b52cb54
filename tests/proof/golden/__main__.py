"""Shows which answers differ from those of another commit, and fails if one is not meant to: `make diff`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.proof.golden import meant
from tests.proof.golden.checkouts import NOW, ROOT, age_of, commit_of, has_other_packages, play_both, show_differences
from tests.proof.golden.scenes import SCENES
from tests.proof.golden.stage import ENTRY
from tests.support.memory_disk import use_memory_disk

CHANGED = meant.CHANGED.relative_to(ROOT)


def main() -> int:
    arguments = _arguments()
    landed = meant.read(meant.CHANGED.read_text(encoding="utf-8"))
    base = commit_of(arguments.base or landed.base)
    use_memory_disk()
    with tempfile.TemporaryDirectory(prefix="muniment-diff-") as folder:
        play_both(base, Path(folder), arguments.scenes)
        show_differences(base, Path(folder))
        found = meant.differing(Path(folder, base), Path(folder, NOW))
        _say_what_was_played(base, Path(folder, NOW), arguments.scenes or [*SCENES])
    print(f"Scenes with other answers: {', '.join(found) or 'none'}")
    if base != commit_of(landed.base):
        return 1 if found else 0
    names = {scene: name for scene, name in landed.names.items() if scene in (arguments.scenes or landed.names)}
    errors = [*meant.errors(found, names)]
    print("\n".join(errors) or f"That is what {CHANGED} says.")
    return 1 if errors else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.golden", description=__doc__)
    parser.add_argument("--base", help=f"the other commit; by default the one that landed last, as {CHANGED} says")
    parser.add_argument("scenes", nargs="*", help=f"play these scenes only: {', '.join(SCENES)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.scenes) - set(SCENES):
        parser.error(f"no such scene: {', '.join(sorted(unknown))}")
    return arguments


def _say_what_was_played(base: str, folder: Path, scenes: Sequence[str]) -> None:
    played = {path.stem: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    calls = sum(f"\n{transcript}".count(f"\n{ENTRY}") for transcript in played.values())
    print(f"Scenes of {base} ({age_of(base)}): {len(played)} with {calls:,} calls")
    if new := [scene for scene in scenes if scene not in played]:
        print(f"New scenes, which are compared once they have landed: {', '.join(new)}")
    if has_other_packages(base):
        print(f"{base} locks other packages. Both sides ran with those of this environment.")


if __name__ == "__main__":
    sys.exit(main())
