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
        (r"`service/muniment_server/monitor/`, ([\d,]+) lines of Python", trusted.monitor(), trusted.python_lines),
        (r"behind them, ([\d,]+) lines of Python", trusted.connections(), trusted.python_lines),
        (r"tables, grants and views, ([\d,]+) lines of SQL", trusted.grants(), trusted.sql_lines),
        (r"`engines/citus/`, ([\d,]+) lines of Python", trusted.on_cluster(), trusted.python_lines),
        (r"`engines/citus/`, [\d,]+ lines of Python and ([\d,]+)", trusted.grants_on_cluster(), trusted.sql_lines),
        (r"may name tables,\*\* ([\d,]+) lines of SQL", trusted.query_files(), trusted.sql_lines),
    ],
)
def test_the_readme_states_the_figures(pattern, paths, count):
    stated = re.search(pattern, README)
    assert stated is not None

    found = sum(map(count, paths))
    assert abs(int(stated[1].replace(",", "")) - found) <= _ROUNDED_TO, f"README.md says {stated[0]!r}; it is {found:,}"
