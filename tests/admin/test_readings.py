"""Readings of the metrics: what was counted between two of them, and quantiles as Prometheus computes them."""

from __future__ import annotations

import math

import pytest

from muniment_server.admin.readings import Change, NotMetrics, Reading, quantile

_UP = 'muniment_database_up{role="muniment_control",sqlstate=""} 1\n'


def reading(text: str, time: float = 0.0) -> Reading:
    return Reading.parse(_UP + text, time)


@pytest.mark.parametrize(
    ("share", "buckets", "expected"),
    [
        (0.5, {}, None),
        (0.5, {1.0: 0, math.inf: 0}, None),
        (0.5, {1.0: 4, math.inf: 4}, 0.5),
        (0.99, {1.0: 50, 2.0: 100, math.inf: 100}, 1.98),
        (0.5, {0.001: 0, 0.01: 10, math.inf: 10}, 0.0055),
        (0.5, {1.0: 1, 2.0: 1, 5.0: 3, math.inf: 4}, 3.5),
        (0.99, {1.0: 1, math.inf: 100}, 1.0),
        (0.5, {math.inf: 3}, 0.0),
    ],
)
def test_a_quantile_is_interpolated_as_in_prometheus(share, buckets, expected):
    assert quantile(share, buckets) == (None if expected is None else pytest.approx(expected))


def test_only_what_was_observed_in_between_counts():
    """Before: a hundred slow calls. Since then: four fast ones, of one method, and none of another."""
    before = reading('s_bucket{m="A",le="1.0"} 0\ns_bucket{m="A",le="+Inf"} 100\n', 10)
    after = reading(
        's_bucket{m="A",le="1.0"} 2\ns_bucket{m="A",le="+Inf"} 102\n'
        's_bucket{m="B",le="1.0"} 0\ns_bucket{m="B",le="+Inf"} 0\n',
        20,
    )

    assert Change(before, after).quantile(0.5, "s", "m") == {"A": 0.5}


def test_rates_are_added_up_and_survive_a_restart():
    """A counter that is lower than before began again at 0."""
    before = reading('c_total{m="A",code="OK"} 10\nc_total{m="A",code="X"} 90\n', 10)
    after = reading('c_total{m="A",code="OK"} 20\nc_total{m="A",code="X"} 5\nc_total{m="B",code="OK"} 1\n', 20)

    assert Change(before, after).rates("c_total", "m") == {"A": 1.5, "B": 0.1}
    assert Change(after, after).rates("c_total", "m") == {"A": 0, "B": 0}


@pytest.mark.parametrize("text", ["", "up 1\n", _UP + "x{", _UP + "x y\n", _UP + 'x{a="b" 1\n'])
def test_other_texts_are_refused(text):
    with pytest.raises(NotMetrics):
        Reading.parse(text, 0)
