"""Every table of the documents is shown as a table."""

from __future__ import annotations

import re

from tests.schema.contract.test_packages_in_documents import documents
from tests.support.each import for_each

_CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
_HEAD = re.compile(r"\|.*\n\|[ :|-]+\|\n")


def headless(text: str) -> list[str]:
    """The first rows of what was to be a table, but has no head: a blank line cuts a table in two."""
    tables = _TABLE.findall(_CODE.sub("", text))
    return [table.partition("\n")[0] for table in tables if not _HEAD.match(table)]


@for_each("document", documents())
def test_every_table_has_a_head(document):
    assert headless(document.read_text(encoding="utf-8")) == []


def test_a_table_that_a_blank_line_cuts_is_found():
    assert headless("| a | b |\n|---|---|\n| 1 | 2 |\n\n| 3 | 4 |\n") == ["| 3 | 4 |"]
