"""Reports: as text, as JSON, and while it runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .checking import Progress, Report, Result
from .comparing import Difference

_BAR = 30


def text(report: Report) -> str:
    """A line for each arrangement, and under it the programs that leaked."""
    return "\n".join(_lines(report))


def as_json(reports: Sequence[Report], **run: Any) -> str:
    """All reports as one object, with what the run was given."""
    return json.dumps({**run, "reports": [_plain(report) for report in reports]}, indent=2, ensure_ascii=False)


@contextmanager
def progress(adapter: str) -> Iterator[Progress]:
    """A bar on the standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _what, _done, _all: None
        return

    def show(what: str, done: int, of: int) -> None:
        bar = "#" * (_BAR * done // of)
        print(f"\r\033[K{adapter}: {what} [{bar:{_BAR}}] {done}/{of}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _lines(report: Report) -> Iterator[str]:
    found = sum(after is not None for after in report.planted.values())
    yield f"{report.adapter}: {report.system} {report.version}, {found} of {len(report.planted)} planted leaks found"
    if not report.counts:
        missed = ", ".join(leak for leak, after in report.planted.items() if after is None)
        yield f"  DOES NOT COUNT: not found in its system: {missed}"
    for result in report.results:
        yield f"  {_verdict(result):8}  {result.arrangement.boundary}: {result.arrangement.name}"
        yield f"            {_figures(result)}"
        for leak in result.leaks:
            yield from (f"            {line}" for line in _steps(leak))


def _verdict(result: Result) -> str:
    return "LEAKS" if result.leaking else "no leak"


def _figures(result: Result) -> str:
    figures = f"{result.programs} programs, {result.compared:,} answers compared"
    if result.leaking:
        figures += f", {result.leaking} programs leaked"
    if result.unstable:
        figures += f", {result.unstable} programs differ from themselves"
    return figures


def _steps(leak: Difference) -> Iterator[str]:
    yield f"through {leak.operation}:"
    for line in leak.program:
        yield from (f"  {each}" for each in str(line).splitlines())
    yield f"    A answers {leak.in_a}"
    yield f"    B answers {leak.in_b}"


def _plain(report: Report) -> dict[str, Any]:
    return {
        "adapter": report.adapter,
        "system": report.system,
        "version": report.version,
        "counts": report.counts,
        "planted": report.planted,
        "arrangements": [
            {
                "name": result.arrangement.name,
                "boundary": result.arrangement.boundary,
                "programs": result.programs,
                "compared": result.compared,
                "leaking": result.leaking,
                "unstable": result.unstable,
                "leaks": [
                    {
                        "operation": leak.operation,
                        "program": [str(line) for line in leak.program],
                        "a": leak.in_a,
                        "b": leak.in_b,
                    }
                    for leak in result.leaks
                ],
            }
            for result in report.results
        ],
    }
