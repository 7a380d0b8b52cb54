"""Takes the transcripts anew, or with --check compares them: `python -m tests.golden`."""

from __future__ import annotations

import argparse
import logging
import sys

from tests.golden.comparison import FOLDER, Changes, changed_texts, differences
from tests.golden.internals import running_postgres
from tests.golden.playing import play


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)  # the server logs the faults that it is made to have
    with running_postgres() as postgres:
        transcripts = play(postgres)
    return check(transcripts) if arguments.check else write(transcripts)


def write(transcripts: dict[str, str]) -> int:
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        path.unlink()
    for scene, transcript in transcripts.items():
        (FOLDER / f"{scene}.txt").write_bytes(transcript.encode())
    return 0


def check(transcripts: dict[str, str]) -> int:
    used: Changes = set()
    changes = changed_texts()
    found = [differences(scene, transcript, changes, used) for scene, transcript in transcripts.items()]
    for difference in filter(None, found):
        print(difference)
    for old, new in sorted(changes - used):
        print(f"in the list of changed texts, but not met: {old} -> {new}")
    return 1 if any(found) or changes - used else 0


if __name__ == "__main__":
    sys.exit(main())
