"""`make bench-search` runs, in small."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner

from tests.calls.endtoend.locomo import DATA
from tests.tools.bench_search.__main__ import main

pytestmark = [pytest.mark.proof, pytest.mark.sampled]


def test_searches_among_a_thousand_items_are_measured_and_drawn(tmp_path):
    if not (DATA / "locomo-dev.json").exists():
        pytest.skip(f"NO LOCOMO DATA at {DATA.resolve()}: name its folder in MUNIMENT_DATA")
    drawn = tmp_path / "search.svg"

    result = CliRunner().invoke(main, ["--sizes", "1e3", "--queries", "4", "--svg", str(drawn)])

    assert result.exit_code == 0, result.output
    assert "ts_rank_cd" in result.output
    assert len(ET.parse(drawn).findall("{*}polyline")) == 6
