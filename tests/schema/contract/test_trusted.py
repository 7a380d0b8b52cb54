"""What must be trusted is counted, bounded, and stated in the README."""

from __future__ import annotations

import re

import pytest

from tests.tools import trusted
from tests.tools.tour.readme import ROOT

README = " ".join((ROOT / "README.md").read_text("utf-8").split())
_ROUNDED_TO = 50


def test_the_monitor_stays_within_its_limit():
    count = sum(map(trusted.python_lines, trusted.monitor()))

    assert count <= trusted.LIMIT, f"the monitor has {count - trusted.LIMIT} lines too many: see `make trusted`"


@pytest.mark.parametrize(
    ("pattern", "paths", "count"),
    [
        (r"the monitor is ([\d,]+) lines", trusted.monitor(), trusted.python_lines),
        (r"connections and their verification are ([\d,]+)", trusted.connections(), trusted.python_lines),
        (r"tables, grants and views are ([\d,]+) lines", trusted.grants(), trusted.sql_lines),
        (r"in the ([\d,]+) lines of SQL that may name tables", trusted.query_files(), trusted.sql_lines),
    ],
)
def test_the_readme_states_the_figures(pattern, paths, count):
    stated = re.search(pattern, README)
    assert stated is not None

    assert abs(int(stated[1].replace(",", "")) - sum(map(count, paths))) <= _ROUNDED_TO
