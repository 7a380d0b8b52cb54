"""Dates as people write them find what happened on the day."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from muniment_server.search.dates import dates
from tests.support.answers import PUBLIC

NOVEMBER = "3 November 2025"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2025-11-03", [NOVEMBER]), ("2025/11/3", [NOVEMBER]), ("03.11.2025", [NOVEMBER]), ("3-11-2025", [NOVEMBER]),
        ("2025年11月3日", [NOVEMBER]), ("٢٠٢٥-١١-٠٣", [NOVEMBER]), ("Nov 3, 2025", [NOVEMBER]),
        ("3rd of Nov 2025", [NOVEMBER]),
        ("November 3rd", ["3 November"]), ("sept. 4", ["4 September"]), ("4 Sept.", ["4 September"]),
        ("11/3/2025", ["11 March 2025", NOVEMBER]), ("11/13/2025", ["13 November 2025"]),
        ("31.02.2025", []), ("1.2.2025.3", []), ("192.168.2025.1", []), ("12345-11-03", []), ("no date", []),
    ],
)  # fmt: skip
def test_dates_are_read(text, found):
    assert dates(f"what happened on {text}?") == found


@pytest.mark.parametrize("query", ["2025-11-03", "03.11.2025", "3 Nov 2025", "11/03/2025", "what was on 2025年11月3日"])
def test_a_passage_is_found_by_its_day(at, query):
    session = at(PUBLIC)
    for month, day, text in ((11, 3, "the bread"), (11, 4, "the cake"), (3, 12, "the soup")):
        time = datetime(2025, month, day, 12, tzinfo=UTC)
        session.store_passage(content=f"We ate {text}.", event_time=time)

    assert session.search_passages(query=query).results[0].passage.content == "We ate the bread."
