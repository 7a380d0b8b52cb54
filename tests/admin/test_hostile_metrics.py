"""Metrics that no server would serve: `status` and `top` show what can be shown, or say that these are no metrics."""

from __future__ import annotations

import http.client
import io
import math
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from muniment.cli.failures import Failure
from muniment_server.admin import top_view
from muniment_server.admin.metrics_reader import MetricsReader
from muniment_server.admin.readings import Change, NotMetrics, Reading
from muniment_server.admin.status import _in_words, status_of

NAMES = {
    "muniment_ready": (), "muniment_workers": ("state",), "muniment_gate_open": (),
    "muniment_gate_problems": ("kind",), "muniment_database_up": ("server", "role", "sqlstate"),
    "muniment_database_answered_timestamp_seconds": ("server",),
    "muniment_database_down_since_timestamp_seconds": ("server",), "muniment_disk_full": (),
    "muniment_disk_free_bytes": (), "muniment_calls_in_flight": ("pool",), "muniment_calls_running": ("pool",),
    "muniment_calls_queued": ("pool",), "grpc_server_handled_total": ("grpc_method", "grpc_code"),
    "grpc_server_handling_seconds_bucket": ("grpc_method", "le"), "muniment_calls_refused_total": ("reason",),
    "muniment_sessions": ("level",), "muniment_embedding_queue": ("level",),
    "muniment_embedding_queue_since_timestamp_seconds": ("level",),
    "muniment_remote_embedder": ("address", "ceiling"), "muniment_remote_embedding_queue": ("level",),
    "muniment_reranker": ("address", "ceiling"), "muniment_reranker_requests_total": ("outcome",),
    "muniment_agents": (), "muniment_agents_being_erased": (), "muniment_stored_bytes": ("level",),
    "muniment_tenant_calls_per_second": ("name", "tenant"), "muniment_node_up": ("server", "node"),
}  # fmt: skip
"""What `status` and `top` read, with its labels."""
UP = 'muniment_database_up{role="muniment_control",sqlstate=""} 1\n'
ODD = ["NaN", "+Inf", "-Inf", "1e308", "-1e308", "1e18", "-1e18", "1e999", "9" * 400, "-1", "0", "-0", "0.5", "1e-320"]
VALUES = st.sampled_from(ODD) | st.floats().map(repr) | st.integers(0, 10**12).map(str)
LABELS = st.sampled_from(["", "a", "PUBLIC", "+Inf", "NaN", "-Inf", "1e308", "0.5", "[red]x", "\x1b[2J", "\\n", "٣"])


@st.composite
def samples(draw: st.DrawFn) -> str:
    """One line. Labels may be missing."""
    name = draw(st.sampled_from(sorted(NAMES)))
    labels = [f'{label}="{draw(LABELS)}"' for label in NAMES[name] if draw(st.integers(0, 4))]
    return f"{name}{{{','.join(labels)}}} {draw(VALUES)}{draw(st.sampled_from(['', '', ' 1', ' ' + '9' * 400]))}\n"


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Lines in any order, in which a few bytes may be changed."""
    body = bytearray((UP + "".join(draw(st.lists(samples(), max_size=12)))).encode())
    for at, byte in draw(st.lists(st.tuples(st.integers(0, len(body) - 1), st.integers(0, 255)), max_size=3)):
        body[at] = byte
    return bytes(body)


class Answering(MetricsReader):
    """A reader of a server that answers with one body."""

    def __init__(self, body: bytes) -> None:
        super().__init__("server", None, None, "")
        object.__setattr__(self, "body", body)

    def _fetch(self) -> tuple[Any, bytes]:
        return SimpleNamespace(status=http.client.OK), self.body  # type: ignore[attr-defined]


def reading_of(body: bytes) -> Reading | None:
    """What is read. None if the body is refused because it is not metrics."""
    try:
        return Answering(body).read()
    except Failure as failure:
        if "not the metrics of a server" not in failure.message:
            raise
        return None


def show(before: Reading, after: Reading) -> str:
    """What `status` and `top` say."""
    shown = io.StringIO()
    console = Console(file=shown, width=100)
    found = status_of(after)
    console.print({name: _in_words(value) for name, value in found.items()})
    now = datetime(2026, 1, 1, tzinfo=UTC)
    console.print(top_view.page(Change(before, after), "server", now))
    console.print(top_view.screen(Change(before, after), "server", now))
    return shown.getvalue()


@settings(deadline=None, max_examples=150)
@given(bodies(), bodies())
def test_whatever_is_served_is_shown_or_refused(before, after):
    readings = [reading for reading in map(reading_of, (before, after)) if reading is not None]
    for reading in readings:
        show(readings[0], reading)


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(body):
    assert reading_of(body) is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e19", "1e308"])
@pytest.mark.parametrize("name", NAMES)
def test_a_value_that_cannot_be_true_is_left_out(name, value):
    labels = ",".join(f'{label}="1"' for label in NAMES[name])
    given = Reading.parse(f"{UP}{name}{{{labels}}} {value}\n", 0.0)

    assert given == Reading.parse(UP, 0.0)
    show(given, given)


@pytest.mark.parametrize("seconds", ["1e18", "-1e18", "1e12", "-1e12"])
def test_a_time_that_no_clock_shows_is_not_known(seconds):
    lines = "".join(f"muniment_database_{name}_timestamp_seconds {seconds}\n" for name in ("answered", "down_since"))
    reading = Reading.parse(UP.replace(" 1\n", " 0\n") + lines, 0.0)

    assert status_of(reading)["database_answered"] is None
    assert "database down (SQLSTATE" in show(reading, reading)


@pytest.mark.parametrize(
    "buckets",
    [
        {None: 5}, {"": 5}, {"x": 5}, {"NaN": 5}, {"-Inf": 5}, {"-1": 5}, {"1e308": 5},
        {"+Inf": 5, "1": 4, "0.5": 9}, {"1": -5}, {"0.5": 9, "1": -3}, {"0": 5}, {"+Inf": 5},
    ],
)  # fmt: skip
def test_buckets_that_no_histogram_has_are_left_out_or_counted(buckets):
    lines = []
    for bound, count in buckets.items():
        labels = 'grpc_method="A"' if bound is None else f'grpc_method="A",le="{bound}"'
        lines.append(f"grpc_server_handling_seconds_bucket{{{labels}}} {count}\n")
    before, after = Reading.parse(UP, 0.0), Reading.parse(UP + "".join(lines), 1.0)

    found = Change(before, after).quantile(0.5, "grpc_server_handling_seconds", "grpc_method")

    assert all(math.isfinite(value) for value in found.values())
    show(before, after)


@pytest.mark.parametrize(
    "text",
    [
        UP[:-1],
        UP + "muniment_agents 12",
        UP + "x 1 " + "9" * 400 + "\n",
        UP + "x{" + ",".join(f'a{number}="b"' for number in range(10_000)) + "} 1\n",
        "muniment_database_up NaN\n",
    ],
    ids=["cut off", "half a line", "huge timestamp", "huge line", "no value"],
)
def test_metrics_that_cannot_be_read_safely_are_refused(text):
    with pytest.raises(NotMetrics):
        Reading.parse(text, 0.0)


@pytest.mark.parametrize(
    "body", [b"\xff" + UP.encode(), UP.encode() + b"# \xc3\n", (UP + "# x\n" * 2_200_000).encode()]
)
def test_other_bytes_and_enormous_bodies_are_refused(body):
    assert reading_of(body) is None
