"""What one caller may cost the others."""

from __future__ import annotations

import time

from muniment_server.domain.classification import Classification
from tests.support.services import failure_of, reason_of

PUBLIC = Classification.PUBLIC


def test_half_a_million_tags_are_refused_unjudged(at):
    """Judging each took 13 seconds and 1 GiB."""
    request = b"\x0a\x01k\x12\x01c" + b"\x1a\x00" * 500_000
    begun = time.process_time()

    refused = failure_of(lambda: at(PUBLIC).send("SaveMemory", request))

    assert reason_of(refused) == "FIELD_INVALID"
    assert time.process_time() - begun < 5


def test_a_long_query_over_long_memories_ends(at):
    """Snippets of the whole texts took 23 seconds."""
    words = [f"word{number:03}" for number in range(98)]
    text = " ".join(words * 70)[:65_000]
    for number in range(20):
        at(PUBLIC).save_memory(key=f"long-{number}", content=text)

    found = at(PUBLIC).search_memories(query=" ".join(words), max_results=100, timeout=15)

    assert len(found.results) == 20


def test_a_page_that_ends_early_says_that_there_is_more(at):
    """Also where the next memory misses 3 MiB by less than what stands around its content."""
    session = at(PUBLIC)
    for number in range(60):
        session.save_memory(key=f"k{number:03}", content="x" * 65_200, tags=["t" * 64])

    seen, token = [], ""
    while True:
        page = session.list_memories(page_token=token, page_size=250)
        seen += [memory.key for memory in page.memories]
        token = page.next_page_token
        if not token:
            break

    assert seen == [f"k{number:03}" for number in range(60)]


def test_the_marker_of_more_is_not_lost_at_the_edge(at):
    """Filled to within a few bytes of a page: what is saved after it is listed too."""
    session = at(PUBLIC)
    left = 3 * 1024 * 1024
    number = 0
    while left > 0:
        size = min(65_000, left - 256 - 4 - 2 - 50)
        if size <= 0:
            break
        session.save_memory(key=f"k{number:03}", content="x" * size)
        left -= 256 + 4 + 2 + size
        number += 1
    for extra in range(number, number + 10):
        session.save_memory(key=f"k{extra:03}", content="y")

    first = session.list_memories(page_size=250)
    rest = session.list_memories(page_size=250, page_token=first.next_page_token) if first.next_page_token else None
    listed = [memory.key for memory in first.memories] + [memory.key for memory in (rest.memories if rest else ())]

    assert listed == [f"k{index:03}" for index in range(number + 10)]
