"""Metrics that no server would serve: `status` shows what can be shown, or say that these are no metrics."""

from __future__ import annotations

import http.client
import io
from contextlib import redirect_stdout
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.cli.failures import Failure
from muniment.cli.output import Output
from muniment_server.admin.metrics_reader import MetricsReader
from muniment_server.admin.readings import NotMetrics, Reading
from muniment_server.admin.status import in_words, status_of

NAMES = {
    "muniment_ready": (), "muniment_workers": ("state",), "muniment_gate_open": (),
    "muniment_gate_problems": ("kind",), "muniment_database_up": ("server", "role", "sqlstate"),
    "muniment_database_answered_timestamp_seconds": ("server",),
    "muniment_database_down_since_timestamp_seconds": ("server",), "muniment_disk_full": (),
    "muniment_disk_free_bytes": (), "muniment_calls_in_flight": ("pool",), "muniment_calls_queued": ("pool",),
    "grpc_server_handled_total": ("grpc_method", "grpc_code"),
    "muniment_calls_refused_total": ("reason",),
    "muniment_sessions": ("level",), "muniment_embedding_queue": ("level",),
    "muniment_embedding_queue_since_timestamp_seconds": ("level",),
    "muniment_remote_embedder": ("address", "ceiling"), "muniment_remote_embedding_queue": ("level",),
    "muniment_reranker": ("address", "ceiling"), "muniment_reranker_requests_total": ("outcome",),
    "muniment_agents": (), "muniment_agents_being_erased": (), "muniment_stored_bytes": ("level",),
    "muniment_node_up": ("server", "node"),
}  # fmt: skip
"""What `status` reads, with its labels."""
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


def show(reading: Reading) -> str:
    """What people see of it."""
    output = Output(as_json=False)
    output.on_terminal = True
    words = in_words(status_of(reading))
    with redirect_stdout(io.StringIO()) as shown:
        output.record(words, list(words))
    return shown.getvalue()


@settings(deadline=None, max_examples=150)
@given(bodies())
def test_whatever_is_served_is_shown_or_refused(body):
    if (reading := reading_of(body)) is not None:
        assert "\x1b" not in show(reading), "no label steers the terminal"


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(body):
    assert reading_of(body) is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e19", "1e308"])
@pytest.mark.parametrize("name", NAMES)
def test_a_value_that_cannot_be_true_is_left_out(name, value):
    labels = ",".join(f'{label}="1"' for label in NAMES[name])
    given = Reading.parse(f"{UP}{name}{{{labels}}} {value}\n")

    assert given == Reading.parse(UP)
    show(given)


@pytest.mark.parametrize("seconds", ["1e18", "-1e18", "1e12", "-1e12"])
def test_a_time_that_no_clock_shows_is_not_known(seconds):
    lines = "".join(f"muniment_database_{name}_timestamp_seconds {seconds}\n" for name in ("answered", "down_since"))
    reading = Reading.parse(UP.replace(" 1\n", " 0\n") + lines)

    assert not status_of(reading).keys() & {"database_answered", "database_down_since"}


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
        Reading.parse(text)


@pytest.mark.parametrize(
    "body", [b"\xff" + UP.encode(), UP.encode() + b"# \xc3\n", (UP + "# x\n" * 2_200_000).encode()]
)
def test_other_bytes_and_enormous_bodies_are_refused(body):
    assert reading_of(body) is None
