"""Tells whether an agent memory lets one of its users see that another one, or a higher level, exists.

With --poison: whether what an untrusted context writes changes anything that a trusted one of the same agent sees.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import NoReturn

from . import catalog, environments, reporting
from .checking import Report, check, find_planted
from .planted import LEAKS
from .systems import AdapterFailed, Arrangement, Process

LEAKED, DID_NOT_COUNT = 1, 2
_EXAMPLES = """\
examples:
  python -m {package} toy                                 the smallest system, with two arrangements that leak
  python -m {package} --install langgraph                 install a peer's environment, as its lock pins it
  python -m {package} langgraph-postgres --programs 500
  python -m {package} --poison muniment-server            the Muniment server at MUNIMENT_ADDRESS
  python -m {package} --all --json > result.json          every adapter whose environment is installed
  python -m {package} --command 'node my-adapter.js'      an adapter of your own

exit status:
  0  nothing leaked
  1  something leaked
  2  a planted leak was not found, or an adapter did not run: its system was not tested
"""


def main() -> NoReturn:
    """Check the adapters that were named."""
    arguments = _parser().parse_args()
    for name in arguments.install:
        environments.install(name, arguments.environments)
    chosen = _chosen(arguments)
    reports = []
    failed = False
    for name, command in chosen.items():
        try:
            reports.append(_check(name, command, arguments))
        except AdapterFailed as error:
            failed = True
            print(f"{name}: {error}", file=sys.stderr)
            continue
        if not arguments.json:
            print(reporting.text(reports[-1]), flush=True)
    if arguments.json:
        print(reporting.as_json(reports, seed=arguments.seed))
    if failed or not all(report.counts for report in reports):
        sys.exit(DID_NOT_COUNT)
    sys.exit(LEAKED if any(report.leaks for report in reports) else 0)


def _check(name: str, command: list[str], arguments: argparse.Namespace) -> Report:
    environment = {"PYTHONUNBUFFERED": "1", "NONINTERFERENCE_ENVIRONMENTS": str(arguments.environments.absolute())}
    with (
        Process(command, environment, catalog.FOLDER) as first,
        Process(command, environment, catalog.FOLDER) as second,
        reporting.progress(name) as progress,
    ):
        systems, described = (first, second), first.description
        report = Report(name, described.system, described.version)
        arrangements = [each for each in described.arrangements if _is_chosen(each, arguments)]
        if not arrangements:
            raise AdapterFailed("it has no such arrangement")
        for number, leak in enumerate(LEAKS):
            progress("planted leaks", number, len(LEAKS))
            report.planted[leak] = find_planted(systems, leak, arguments.seed)
        for arrangement in arrangements if report.counts else ():
            report.results.append(check(systems, arrangement, arguments.seed, arguments.programs, progress))
    return report


def _is_chosen(arrangement: Arrangement, arguments: argparse.Namespace) -> bool:
    is_named = arguments.arrangement in (None, arrangement.name)
    return is_named and (arrangement.boundary == "untrusted" or not arguments.poison)


def _chosen(arguments: argparse.Namespace) -> dict[str, list[str]]:
    if arguments.command:
        return {"command": shlex.split(arguments.command)}
    names = arguments.adapters
    if arguments.all:
        names = [name for name in catalog.ENVIRONMENTS if catalog.can_run(name, arguments.environments)]
    for name in names:
        if not catalog.can_run(name, arguments.environments):
            sys.exit(f"{name} cannot run: {catalog.remedy(name)}")
    return {name: catalog.command(name, arguments.environments) for name in names}


def _parser() -> argparse.ArgumentParser:
    package = __package__ or ""
    parser = argparse.ArgumentParser(
        prog=f"python -m {package}",
        description=__doc__,
        epilog=_EXAMPLES.format(package=package),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("adapters", nargs="*", metavar="ADAPTER", choices=[*catalog.ENVIRONMENTS, []],
                        help=", ".join(catalog.ENVIRONMENTS))  # fmt: skip
    parser.add_argument("--all", action="store_true", help="every adapter whose environment is installed")
    parser.add_argument("--command", help="the command of an adapter of your own, which speaks the protocol")
    parser.add_argument("--arrangement", help="only this way to keep the two actors apart")
    parser.add_argument("--poison", action="store_true",
                        help="only arrangements in which the observer is trusted, and `high` is not")  # fmt: skip
    parser.add_argument("--programs", type=int, default=100, help="for each arrangement (default: %(default)s)")
    parser.add_argument("--seed", default="1", help="the same seed makes the same programs (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the results as one JSON object")
    parser.add_argument("--install", action="append", default=[], choices=environments.names(),
                        help="first install the environment of a peer; may be repeated")  # fmt: skip
    parser.add_argument("--environments", type=Path, default=Path(".venv-black-box"), metavar="FOLDER",
                        help="where the environments of the peers are (default: %(default)s)")  # fmt: skip
    return parser


if __name__ == "__main__":
    main()
