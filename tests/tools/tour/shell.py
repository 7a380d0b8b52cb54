"""Blocks of a README in one bash, as somebody would paste them, one after the other."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.tools.tour.readme import Step, normal

_SECONDS = 120
_END = "\x1e"
_BEGIN = """\
set -E -o pipefail
exec 2>&1
trap 'failed=1' ERR
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """The output of one block, on both streams, and whether a command in it failed."""

    output: str
    failed: bool


def walk(steps: Sequence[Step], folder: Path, environment: Mapping[str, str]) -> None:
    """Run blocks in one shell, from the first to the last: each says what is shown."""
    for step, ran in zip(steps, run(steps, folder, environment), strict=True):
        assert (step.text, ran.failed) == (step.text, step.fails), ran.output
        if step.shown is not None:
            assert (step.text, normal(ran.output)) == (step.text, normal(step.shown))


def run(steps: Sequence[Step], folder: Path, environment: Mapping[str, str]) -> list[Ran]:
    """Run the blocks of *steps* in order, in one shell."""
    script = _BEGIN + "".join(map(_block, steps))
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-s"],
        cwd=folder,
        env=environment,
        input=script,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    parts = done.stdout.split(_END)
    assert len(parts) == 2 * len(steps) + 1, done.stdout
    return [Ran(output, failed != "0") for output, failed in zip(parts[0::2], parts[1::2], strict=False)]


def _block(step: Step) -> str:
    text = step.text if step.language == "sh" else f"python -W error - <<'END OF PYTHON'\n{step.text}END OF PYTHON\n"
    return f"failed=0\n{text}printf '{_END}%s{_END}' \"$failed\"\n"
