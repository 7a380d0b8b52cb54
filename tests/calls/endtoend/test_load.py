"""`make load` runs, in small; and its load generator counts what a slow or refusing server does to callers."""

from __future__ import annotations

import csv
import gzip
import math
import re
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from click.testing import CliRunner

from tests.calls.endtoend.locomo import DATA
from tests.tools.bench import picture
from tests.tools.bench.ping import OneMethod
from tests.tools.bench.usage import Usage
from tests.tools.load.__main__ import main
from tests.tools.load.calls import GET, OPERATIONS, Call, Caller
from tests.tools.load.cells import PING, Cell
from tests.tools.load.driver import Run, Target, Texts, drive
from tests.tools.load.figures import Figures, refused
from tests.tools.load.pictures import _lines
from tests.tools.load.tables import percentiles

pytestmark = pytest.mark.proof

_CALLER = Caller(token="", agent_id="", keys=["plan"], own_keys=["plan"], note_id="")


@contextmanager
def serving(answer: Callable[[Any, grpc.ServicerContext], bytes]) -> Iterator[str]:
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((OneMethod(grpc.unary_unary_rpc_method_handler(answer)),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def load(address: str, *, rate: float) -> Run:
    return drive(Target(address, [_CALLER]), Texts(["text"], ["text"]), seconds=1.0, rate=rate, mix={GET: 1})


def test_a_call_that_waits_for_the_one_before_has_waited_since_it_was_due():
    """Twice as many calls are due as the server can answer. A generator that waited for answers would see 50 ms."""
    seconds = 0.05

    def slow(request: bytes, _: grpc.ServicerContext) -> bytes:
        time.sleep(seconds)
        return b""

    with serving(slow) as address:
        calls = sorted(load(address, rate=2 / seconds).calls, key=lambda call: call.start)

    assert len(calls) > 20
    for number, call in enumerate(calls, start=1):
        assert call.start + call.latency >= number * seconds


def test_a_refused_call_is_counted_and_has_no_latency():
    answered = iter(range(10**6))

    def refusing(request: bytes, context: grpc.ServicerContext) -> bytes:
        if next(answered) % 2:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "")
        return b""

    with serving(refusing) as address:
        run = load(address, rate=100.0)

    assert refused(run.calls) == {"RESOURCE_EXHAUSTED": len(run.calls) // 2}
    assert len(run.answered) == len(run.calls) - len(run.calls) // 2


def test_percentiles_are_latencies_that_were_measured():
    thousand = Figures.of(number / 1000 for number in range(1000, 0, -1))

    assert (thousand.p50, thousand.p95, thousand.p99, thousand.p999, thousand.slowest) == (500, 950, 990, 999, 1000)


@pytest.mark.parametrize(("calls", "known"), [(0, 0), (1, 1), (19, 1), (20, 2), (99, 2), (100, 3), (999, 3), (1000, 4)])
def test_a_percentile_of_too_few_calls_is_not_a_number(calls, known):
    """It would be the slowest call. p50 needs 1 call, p95 20, p99 100 and p99.9 1,000."""
    figures = Figures.of([0.001] * calls)

    assert [math.isnan(each) for each in figures[1:5]] == [False] * known + [True] * (4 - known)


def test_pictures_and_tables_leave_the_same_percentiles_out():
    """Of two sizes, the larger was called too rarely for a p99."""
    cells = [_cell(items, calls) for items, calls in ((1000, 100), (10_000, 99))]

    lines = _lines(cells, lambda cell: cell.items, GET)
    drawn = ET.fromstring(picture.panels("title", "below", {GET: lines}))
    shown = [percentiles(cell.figures(GET)).split("/") for cell in cells]

    assert [len(lines[name]) for name in ("p50", "p95", "p99")] == [2, 2, 1]
    assert [row[2] for row in shown] == ["5.0", "–"]
    assert len(drawn.findall("{*}circle")) == 2 + 2 + 1 + 2
    times = [text.text for text in drawn.findall("{*}text") if text.get("fill") in picture._SHADES]
    assert times == ["5 ms"], "the p50 of the larger one, and no p99"


def test_a_picture_connects_no_points_across_a_missing_one():
    cells = [_cell(items, calls) for items, calls in ((1000, 100), (10_000, 99), (100_000, 100))]

    drawn = ET.fromstring(picture.panels("title", "below", {GET: _lines(cells, lambda cell: cell.items, GET)}))

    points = [len(line.get("points", "").split()) for line in drawn.findall("{*}polyline")]
    assert points == [3, 3, 1, 1, 3]


def _cell(items: int, calls: int) -> Cell:
    run = Run([Call(GET, 0.0, 0.0, 0.005, "OK")] * calls, 1.0, Usage(0, 0, 0))
    baselines = {PING: Figures.of([0.001] * 100)}
    return Cell(items, 1, 1, False, 1.0, 1.0, run, Usage(0, 0, 0), 0, baselines)


@pytest.mark.sampled
def test_the_smallest_load_is_measured_and_reported(tmp_path):
    if not (DATA / "locomo-dev.json").exists():
        pytest.skip(f"NO LOCOMO DATA at {DATA.resolve()}: name its folder in MUNIMENT_DATA")

    result = CliRunner().invoke(main, ["--quick", "--report", str(tmp_path)])

    assert result.exit_code == 0, result.output
    page = (tmp_path / "README.md").read_text()
    for heading in ("Latency", "From save to found", "What the guards cost", "Side by side"):
        assert f"# {heading}\n" in page
    for drawn in ("by_size.svg", "by_clients.svg"):
        assert drawn in page
        charts = [text for text in ET.parse(tmp_path / drawn).findall("{*}text") if text.text in OPERATIONS]
        assert GET in [chart.text for chart in charts]
        assert 2 * len(charts) <= len(ET.parse(tmp_path / drawn).findall("{*}polyline")) <= 4 * len(charts)
    assert f"python -m tests.tools.load --quick --report {tmp_path}\n" in page
    links = re.findall(r"\]\(([^)]*)\)", page)
    assert [link for link in links if not (tmp_path / link).is_file()] == []
    assert page.count("Bearer ") == page.count("Bearer $TOKEN") > 0
    cells = list(csv.DictReader((tmp_path / "cells.csv").read_text().splitlines()))
    by_words = {(cell["items"], cell["clients"]) for cell in cells if cell["embeddings"] == "0"}
    assert by_words == {("200", "1"), ("200", "4"), ("400", "1"), ("400", "4")}
    with gzip.open(tmp_path / "calls.csv.gz", "rt") as raw:
        counted = Counter(_key(call) for call in csv.DictReader(raw))
    assert counted == {_key(cell): int(cell["calls"]) + int(cell["refused"]) for cell in cells}


def _key(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("items", "clients", "workers", "embeddings", "operation"))
