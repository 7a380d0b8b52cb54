"""Whoever has not got the texts that measurements need learns which files they are, where, and why."""

from __future__ import annotations

import importlib

import pytest
from click.testing import CliRunner

from tests.tools.eval.folder import FILES

pytestmark = pytest.mark.parametrize("measurement", ["load", "bench_search", "eval"])


def run(measurement: str, *arguments: str) -> str:
    command = importlib.import_module(f"tests.tools.{measurement}.__main__").main
    return CliRunner().invoke(command, [*arguments], terminal_width=200).output


def test_a_folder_without_the_texts_is_refused_with_what_is_missing(measurement, tmp_path):
    (tmp_path / FILES[0]).touch()

    output = run(measurement, "--data", str(tmp_path))

    assert f"{tmp_path} lacks {', '.join(FILES[1:])}\n" in output
    for needed in (*FILES, "may not distribute", "--data", "MUNIMENT_DATA", "tests/README.md"):
        assert needed in output


def test_the_help_names_the_files_and_where_they_are_looked_for(measurement):
    output = " ".join(run(measurement, "--help").split())

    for needed in (*FILES, "not distributed", "MUNIMENT_DATA, else ../shared/data"):
        assert needed in output
