"""Deep runs: `python -m tests.proof.noninterference --programs 1000 --seed 7`."""

from __future__ import annotations

import argparse
import sys
import time

from tests.proof.noninterference.reachable import missing
from tests.proof.noninterference.runner import Report, run_programs
from tests.proof.noninterference.worlds import two_worlds
from tests.support.databases import running_postgres


def main() -> None:
    """Run programs until done or until one fails; print what was compared."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof.noninterference", description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="run the program of this number alone")
    arguments = parser.parse_args()
    begun = time.monotonic()

    def progress(report: Report) -> None:
        took = time.monotonic() - begun
        done = f"{report.programs}/{arguments.programs} programs, {report.pairs:,} pairs equal"
        line = f"{done}, {report.releases} releases, {took:.0f} s"
        print(f"\r{line}", end="" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)

    with running_postgres() as postgres, two_worlds(postgres) as worlds:
        report = run_programs(worlds, arguments.seed, arguments.programs, only=arguments.only, progress=progress)
    print(
        f"\n{report.calls:,} calls, {report.pairs:,} pairs compared and equal; "
        f"{report.hidden:,} operations above the observer; {report.not_compared} hosts' reads not covered by the law"
    )
    print(f"{report.semantic:,} of {report.searches:,} searches compared embeddings in both worlds")
    print(f"{report.releases:,} releases of what is above the observer to what it sees")
    for rpc, caller, status in missing(set(report.coverage)):
        print(f"   never  {rpc:16} {caller:13} {status}")
    for (rpc, caller, status), count in sorted(report.coverage.items()):
        print(f"{count:8,}  {rpc:16} {caller:13} {status}")


if __name__ == "__main__":
    main()
