"""Plays the scenes of one commit twice, side by side: on that commit's server, and on that of the working tree."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]
NOW = "now"
"""The folder of what the working tree answers, beside the one that is named after the commit."""
_PACKAGE = "tests/proof/golden"
_LOCK = "service/requirements.lock"
_ATTRIBUTES = "*.txt diff=answers\n"
_CALL = "diff.answers.xfuncname=^=== (.*)$"
"""How git recognizes the beginning of a call."""


def commit_of(revision: str) -> str:
    """The id of a commit, as short as it may be."""
    try:
        return _git("rev-parse", "--short=8", "--verify", "--quiet", f"{revision}^{{commit}}")
    except subprocess.CalledProcessError:
        sys.exit(f"There is no commit {revision} here. If the clone is shallow, fetch the rest: git fetch --unshallow")


def age_of(commit: str) -> str:
    """When a commit was made, and how many have followed it."""
    made = _git("show", "--no-patch", "--format=%cs", commit)
    return f"{made}, {_git('rev-list', '--count', f'{commit}..HEAD')} commits ago"


def has_other_packages(commit: str) -> bool:
    """Whether a commit locks other versions than the working tree."""
    return bool(_git("diff", "--name-only", commit, "--", _LOCK))


def play_both(commit: str, folder: Path, scenes: Sequence[str]) -> None:
    """Write what is answered to *folder*: below the id of the commit, and below NOW."""
    with _checked_out(commit, folder / "checkout") as other:
        if not (other / _PACKAGE / "scenes").is_dir():
            sys.exit(f"{commit} has no scenes to play: choose a later commit.")
        sides = {commit: other, NOW: ROOT}
        plays = {name: _start(root, other, folder / name, scenes) for name, root in sides.items()}
        failed = [name for name, play in plays.items() if play.wait()]
    if failed:
        sys.exit(f"The scenes of {commit} could not be played on {' and '.join(failed)}: see above.")


def show_differences(commit: str, folder: Path) -> None:
    """Print each call whose answer differs. Most are shown whole."""
    attributes = folder / "attributes"
    attributes.write_text(_ATTRIBUTES)
    options = ("-c", f"core.attributesFile={attributes}", "-c", _CALL)
    shown = ("--no-index", "--no-ext-diff", "--no-prefix", "--unified=12", commit, NOW)
    subprocess.run(["git", *options, "--no-pager", "diff", *shown], cwd=folder, check=False)


@contextmanager
def _checked_out(commit: str, folder: Path) -> Iterator[Path]:
    _git("worktree", "add", "--quiet", "--detach", str(folder), commit)
    try:
        yield folder
    finally:
        _git("worktree", "remove", "--force", str(folder))


def _start(root: Path, base: Path, folder: Path, scenes: Sequence[str]) -> subprocess.Popen[bytes]:
    """Play the scenes of *base* with the packages of this environment, and the code of *root*: its path comes first."""
    path = os.pathsep.join(str(root / part) for part in ("clients/python/src", "service", "."))
    package = _PACKAGE.replace("/", ".")
    played = (f"{package}.internals", package, str(base / _PACKAGE), str(folder), *scenes)
    # -P keeps the folder of this file from the path.
    command = [sys.executable, "-P", str(ROOT / "tests/proof/golden/record.py"), *played]
    return subprocess.Popen(command, cwd=root, env=os.environ | {"PYTHONPATH": path})


def _git(*arguments: str) -> str:
    """What git prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
