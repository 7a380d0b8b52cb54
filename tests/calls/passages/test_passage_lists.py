"""ListPassages and SearchPassages: what is found, in which order, in which pages."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from tests.support.answers import CONFIDENTIAL, LEVELS, PUBLIC, RESTRICTED, UP, events, heavy, invalid, pages, refusal

ALL, ANY = 1, 2
INVALID_TOKEN = "INVALID_ARGUMENT PAGE_TOKEN_INVALID"
ID = "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f0"


def at_time(text):
    """A time of the contract, from how people write it."""
    time = Timestamp()
    time.FromDatetime(datetime.fromisoformat(text).replace(tzinfo=UTC))
    return time


def store(session, *contents, **fields):
    return [session.store_passage(content=content, **fields).passage for content in contents]


def listed(session, **fields):
    """The contents of all pages of a list."""
    return [passage.content for page in pages(session.list_passages, **fields) for passage in page.passages]


def found(session, query="whale", **fields):
    """The contents of the results of a search."""
    return [result.passage.content for result in session.search_passages(query=query, **fields).results]


def place(passage):
    """Where a passage stands in a list: the later ones come first."""
    return passage.event_time.ToNanoseconds(), passage.create_time.ToNanoseconds(), passage.passage_id


# --- Order and pages


def test_passages_are_listed_by_event_time_newest_first(at):
    for day in (3, 1, 2):
        store(at(PUBLIC), f"day {day}", event_time=at_time(f"2024-05-0{day}"))

    assert listed(at(PUBLIC)) == ["day 3", "day 2", "day 1"]


def test_of_one_event_time_the_one_that_was_stored_last_comes_first(at):
    store(at(PUBLIC), "a", "b", "c", event_time={"seconds": 1})

    assert listed(at(PUBLIC)) == ["c", "b", "a"]


def test_of_one_event_time_and_one_transaction_the_last_of_the_stream_comes_first(at):
    at(PUBLIC).import_passages(*({"content": content, "event_time": {"seconds": 1}} for content in "abc"))

    assert listed(at(PUBLIC)) == ["c", "b", "a"]


def test_of_one_event_time_and_one_create_time_the_id_decides(service):
    session = service.session(PUBLIC)
    ids = [str(uuid.uuid4()) for _ in range(6)]
    for passage_id in ids:
        store(session, passage_id, passage_id=passage_id, event_time={"seconds": 1})
    with service.database.as_owner() as owner:
        owner.execute("UPDATE muniment_public.item SET create_time = '2024-05-01' WHERE kind = 4")

    for size in (1, 2, 4, 0):
        assert listed(session, page_size=size) == sorted(ids, reverse=True)


@pytest.fixture(scope="module")
def library(shared):
    """A session with 120 passages of few event times at several levels, some shadowed; all match `whale`."""
    by = {level: shared.session(level, tenant="library") for level in LEVELS}
    dice = random.Random(7)
    passages = [
        {"content": f"whale {number}", "event_time": {"seconds": dice.randrange(4)}, "tags": [f"t{dice.randrange(3)}"],
         "passage_id": str(uuid.UUID(int=dice.getrandbits(128), version=4))}
        for number in range(120)
    ]  # fmt: skip
    for level in LEVELS:
        by[level].import_passages(*passages[level - 1 :: 4])
    by[PUBLIC].import_passages(*({**each, "content": "whale below"} for each in passages[3::12]))
    return by[RESTRICTED]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 119, 120, 250])
def test_pages_neither_skip_nor_repeat(library, size):
    """With thirty passages of one event time, at four levels."""
    passages = [passage for page in pages(library.list_passages, page_size=size) for passage in page.passages]

    assert len({passage.passage_id for passage in passages}) == len(passages) == 120
    assert [place(passage) for passage in passages] == sorted(map(place, passages), reverse=True)
    assert "whale below" not in {passage.content for passage in passages}


@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize(
    "fields",
    [
        {"tags": ["t1"]},
        {"start_time": {"seconds": 1}, "end_time": {"seconds": 3}},
        {"tags": ["t0", "t2"], "tag_match": ANY},
    ],
)
def test_pages_of_a_filter_neither_skip_nor_repeat(library, size, fields):
    whole = listed(library, page_size=250, **fields)

    assert listed(library, page_size=size, **fields) == whole
    assert 0 < len(set(whole)) == len(whole) < 120


def test_what_is_listed_and_found_is_what_get_returns(library):
    """For every hit."""
    hits = list(library.list_passages(page_size=250).passages)
    hits += [result.passage for result in library.search_passages(query="whale", max_results=100).results]

    assert all(library.get_passage(passage_id=hit.passage_id).passage == hit for hit in hits)


@pytest.mark.parametrize(("asked", "given"), [(0, 50), (1, 1), (120, 120), (2**31 - 1, 120)])
def test_a_page_has_50_passages_by_default(library, asked, given):
    assert len(library.list_passages(page_size=asked).passages) == given


@pytest.mark.parametrize(("asked", "given"), [(0, 10), (1, 1), (100, 100), (101, 100), (2**31 - 1, 100)])
def test_a_search_returns_10_passages_by_default_and_100_at_most(library, asked, given):
    assert len(library.search_passages(query="whale", max_results=asked).results) == given


def test_a_page_has_250_passages_at_most(at):
    at(PUBLIC).import_passages(*({"content": str(number)} for number in range(255)))

    assert [len(page.passages) for page in pages(at(PUBLIC).list_passages, page_size=2**31 - 1)] == [250, 5]


def test_a_negative_size_is_refused(at):
    assert invalid(at(PUBLIC).list_passages, page_size=-1) == ["page_size"]
    assert invalid(at(PUBLIC).search_passages, query="x", max_results=-1) == ["max_results"]


def test_a_list_continues_after_a_passage_that_was_deleted_meanwhile(at):
    *_, last = store(at(PUBLIC), "a", "b", "c")
    token = at(PUBLIC).list_passages(page_size=1).next_page_token
    at(PUBLIC).delete_passage(passage_id=last.passage_id)

    assert [passage.content for passage in at(PUBLIC).list_passages(page_token=token).passages] == ["b", "a"]


def test_a_list_continues_among_newer_passages_that_come_meanwhile(at):
    store(at(PUBLIC), "a", "b", "c")
    token = at(PUBLIC).list_passages(page_size=1).next_page_token
    store(at(PUBLIC), "d")

    assert [passage.content for passage in at(PUBLIC).list_passages(page_token=token).passages] == ["b", "a"]


def test_a_list_ends_at_the_year_1_and_begins_at_9999(at):
    times = [-62135596800, 0, 253402300799]
    for seconds in times:
        store(at(PUBLIC), str(seconds), event_time={"seconds": seconds, "nanos": 999_999_000 if seconds > 0 else 0})

    assert listed(at(PUBLIC), page_size=1) == [str(seconds) for seconds in reversed(times)]


def test_c52_a_page_ends_early_at_3_mib_and_everything_still_arrives(at):
    """13 passages of 256 KiB are 3.25 MiB."""
    contents = [f"{number:02}" + heavy(262142) for number in range(13)]
    for content in contents:
        store(at(PUBLIC), content)
    answers = pages(at(PUBLIC).list_passages, page_size=250)

    assert [len(page.passages) for page in answers] == [11, 2]
    assert max(page.ByteSize() for page in answers) <= 3 * 1024 * 1024
    assert [passage.content for page in answers for passage in page.passages] == contents[::-1]


def test_a_page_of_long_labels_stays_under_3_mib(at):
    """What stands around a content counts too."""
    long = {"tags": ["𝟘" * 62 + f"{number:02}" for number in range(32)], "thread": "𝟘" * 256, "author": "𝟘" * 256}
    at(PUBLIC).import_passages(*({"content": "x" * 4096, **long} for _ in range(250)), timeout=60)
    answers = pages(at(PUBLIC).list_passages, page_size=250)

    assert max(page.ByteSize() for page in answers) <= 3 * 1024 * 1024
    assert sum(len(page.passages) for page in answers) == 250


@pytest.mark.proof
def test_the_results_of_a_search_stay_under_3_mib(at):
    for _ in range(14):
        store(at(PUBLIC), "whale " + heavy(262138))
    answer = at(PUBLIC).search_passages(query="whale", max_results=100)

    assert 10 <= len(answer.results) < 14
    assert answer.ByteSize() <= 3 * 1024 * 1024


# --- Tokens


@pytest.fixture
def token(at):
    """The token of the second page of a list of two at PUBLIC."""
    store(at(PUBLIC), "a", "b", tags=["t"], thread="x")
    return at(PUBLIC).list_passages(page_size=1).next_page_token


def test_the_last_page_has_no_token(at, token):
    assert token
    assert at(PUBLIC).list_passages(page_size=2).next_page_token == ""


def test_c31_the_page_token_of_another_session_is_refused(session, token):
    assert refusal(session(PUBLIC).list_passages, page_token=token) == INVALID_TOKEN


@pytest.mark.parametrize(
    "fields",
    [{"tags": ["t"]}, {"tag_match": ANY}, {"thread": "x"}, {"start_time": {}}, {"end_time": {"seconds": 2**32}}],
)
def test_c31_the_page_token_of_another_filter_is_refused(at, token, fields):
    assert refusal(at(PUBLIC).list_passages, page_token=token, **fields) == INVALID_TOKEN


def test_c31_the_page_token_of_another_method_is_refused(at, token):
    assert refusal(at(PUBLIC).list_memories, page_token=token) == INVALID_TOKEN


@pytest.mark.parametrize(("low", "high"), UP)
def test_c31_a_page_token_from_before_a_raise_says_so(session, host, low, high):
    reader = session(low)
    store(reader, "a", "b")
    token = reader.list_passages(page_size=1).next_page_token
    host.raise_taint(session_id=reader.session_id, taint=high)

    assert refusal(reader.list_passages, page_token=token) == "ABORTED TAINT_CHANGED"


# --- Levels


def test_each_level_lists_and_finds_itself_and_what_is_below(at):
    for level in LEVELS:
        store(at(level), f"whale {level.name}")

    for level in LEVELS:
        seen = [f"whale {lower.name}" for lower in LEVELS if lower <= level]
        assert sorted(listed(at(level))) == sorted(found(at(level))) == sorted(seen)


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_shadowed_passage_does_not_resurface_by_what_it_alone_has(at, low, high):
    store(at(high), "high whale", passage_id=ID, tags=["new"], thread="new", event_time={"seconds": 2})
    store(at(low), "low zebra whale", passage_id=ID, tags=["old"], thread="old", event_time={"seconds": 1})
    alone: list[dict[str, Any]] = [
        {"tags": ["old"]},
        {"thread": "old"},
        {"end_time": {"seconds": 2}},
        {"tags": ["old"], "tag_match": ANY},
    ]

    assert [listed(at(high), **fields) for fields in alone] == [[]] * 4
    assert [found(at(high), **fields) for fields in alone] == [[]] * 4
    assert found(at(high), "zebra") == []
    assert [found(at(low), **fields) for fields in alone] == [["low zebra whale"]] * 4
    assert listed(at(high)) == found(at(high)) == ["high whale"]


@pytest.mark.parametrize(("low", "high"), UP)
def test_hidden_passages_do_not_crowd_out_visible_ones(at, low, high):
    store(at(low), *(f"low whale {number} in a longer text" for number in range(10)), event_time={"seconds": 1})
    at(high).import_passages(*({"content": "whale", "event_time": {"seconds": 2}} for _ in range(50)))

    assert len(found(at(low), max_results=10)) == 10
    assert len(at(low).list_passages(page_size=10).passages) == 10


@pytest.mark.parametrize(("low", "high"), UP)
def test_c30_tf6_lists_and_searches_are_the_same_bytes_whatever_is_above(at, low, high):
    first, *_ = store(at(low), "whale one", "whale whale two", "whale three", event_time={"seconds": 1}, tags=["t"])

    def seen():
        asked = [
            *pages(at(low).list_passages, page_size=2),
            *pages(at(low).list_passages, page_size=2, tags=["t"]),
            at(low).search_passages(query="whale two", max_results=2),
        ]
        return [answer.SerializeToString(deterministic=True) for answer in asked]

    before = seen()
    store(at(high), "whale two", "two two two", event_time={"seconds": 1}, tags=["t"])
    at(high).import_passages({"content": "whale", "passage_id": str(uuid.uuid4())})
    assert refusal(at(high).store_passage, content="x", passage_id=first.passage_id).startswith("ALREADY_EXISTS")

    assert seen() == before


def test_c09_each_page_has_its_own_classification(at):
    store(at(RESTRICTED), "whale", event_time={"seconds": 1})
    store(at(PUBLIC), "whale", event_time={"seconds": 2})

    assert [page.classification for page in pages(at(RESTRICTED).list_passages, page_size=1)] == [PUBLIC, RESTRICTED]
    assert at(RESTRICTED).search_passages(query="whale").classification == RESTRICTED


@pytest.mark.parametrize("level", LEVELS)
def test_the_classification_of_nothing_is_public(at, level):
    assert at(level).list_passages().classification == PUBLIC
    assert at(level).search_passages(query="whale").classification == PUBLIC


@pytest.mark.parametrize("level", LEVELS)
def test_c03_nothing_of_another_agent_is_listed_or_found(session, level):
    store(session(level), "whale", tags=["t"], thread="x")
    bob = session(level, agent_id="bob")

    for fields in ({}, {"tags": ["t"]}, {"thread": "x"}):
        assert listed(bob, **fields) == found(bob, **fields) == []


def test_c03_nothing_of_another_tenant_is_listed_or_found(shared, tenant, at):
    store(at(PUBLIC), "whale")
    stranger = shared.session(RESTRICTED, tenant=tenant + "-other")

    assert listed(stranger) == found(stranger) == []


def test_passages_are_no_memories_and_memories_no_passages(at):
    at(PUBLIC).save_memory(key="k", content="memory whale")
    store(at(PUBLIC), "passage whale")

    assert listed(at(PUBLIC)) == found(at(PUBLIC)) == ["passage whale"]
    assert [memory.content for memory in at(PUBLIC).list_memories().memories] == ["memory whale"]


# --- Filters


@pytest.fixture
def tagged(at):
    """A session with passages of several tags; all match `whale`."""
    for number, (content, tags) in enumerate(
        {"none": [], "a": ["a"], "b": ["b"], "ab": ["b", "a"], "A": ["A"]}.items()
    ):
        store(at(PUBLIC), f"{content} whale", tags=tags, event_time={"seconds": -number})
    return at(PUBLIC)


@pytest.mark.parametrize(
    ("tags", "match", "wanted"),
    [
        ([], 0, ["none", "a", "b", "ab", "A"]), ([], ANY, ["none", "a", "b", "ab", "A"]), (["a"], 0, ["a", "ab"]),
        (["a"], ANY, ["a", "ab"]), (["a", "b"], 0, ["ab"]), (["a", "b"], ALL, ["ab"]),
        (["a", "b"], ANY, ["a", "b", "ab"]), (["a", "c"], ALL, []),
        (["a", "c"], ANY, ["a", "ab"]), (["c"], ANY, []), ([" a ", "a"], ALL, ["a", "ab"]),
        (["%"], ANY, []), (["_"], ALL, []),
    ],
)  # fmt: skip
def test_passages_are_filtered_by_all_tags_or_by_any(tagged, tags, match, wanted):
    fields = {"tags": tags, "tag_match": match}

    assert listed(tagged, **fields) == [f"{name} whale" for name in wanted]
    assert sorted(found(tagged, **fields)) == sorted(f"{name} whale" for name in wanted)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"tags": ["t"] * 33}, "tags"), ({"tags": [""]}, "tags[0]"), ({"tags": ["a\nb"]}, "tags[0]"),
        ({"tag_match": 3}, "tag_match"), ({"thread": " a"}, "thread"), ({"thread": "a\0"}, "thread"),
        ({"start_time": {"nanos": -1}}, "start_time"), ({"end_time": {"seconds": 2**60}}, "end_time"),
    ],
)  # fmt: skip
def test_other_filters_are_refused(at, fields, named):
    assert invalid(at(PUBLIC).list_passages, **fields) == [named]
    assert invalid(at(PUBLIC).search_passages, query="x", **fields) == [named]


def test_a_filter_returns_all_it_should_among_many_that_do_not_match(at):
    at(PUBLIC).import_passages(*({"content": "whale whale", "tags": ["other"]} for _ in range(60)))
    at(PUBLIC).import_passages(
        *({"content": f"whale {number} of many", "tags": ["wanted"], "thread": "x"} for number in range(5)),
    )
    at(PUBLIC).import_passages(*({"content": "whale whale", "tags": ["other"]} for _ in range(60)))
    wanted = [f"whale {number} of many" for number in range(5)]

    for fields in ({"tags": ["wanted"]}, {"tags": ["wanted", "never"], "tag_match": ANY}, {"thread": "x"}):
        assert sorted(found(at(PUBLIC), max_results=5, **fields)) == wanted
        page = at(PUBLIC).list_passages(page_size=5, **fields)
        assert ([passage.content for passage in page.passages], page.next_page_token) == (wanted[::-1], "")


@pytest.mark.parametrize("thread", ["x", "X", "x y", "%", "_", "நினைவு", "க\u0bc6\u0bbe"])
def test_passages_are_filtered_by_their_thread_exactly(at, thread):
    """And a thread's name is kept as that of a memory is."""
    names = ["x", "X", "x y", "xy", "x%", "%", "_", "நினைவு", "க\u0bca", ""]
    for name in names:
        store(at(PUBLIC), f"whale {name}", thread=name)
    wanted = [f"whale {thread}".replace("க\u0bc6\u0bbe", "க\u0bca")]

    assert listed(at(PUBLIC), thread=thread) == found(at(PUBLIC), thread=thread) == wanted


def test_a_thread_is_in_the_order_of_its_turns(at):
    """Newest first, whatever was stored in between."""
    for number in range(6):
        store(at(LEVELS[number % 4]), f"turn {number}", thread=f"thread {number % 2}", event_time={"seconds": 9})

    assert listed(at(RESTRICTED), thread="thread 1", page_size=1) == ["turn 5", "turn 3", "turn 1"]


@pytest.fixture
def dated(at):
    """A session with passages around the midnights of 2024-05-02 and 03; all match `whale`."""
    times = [
        "2024-05-01T23:59:59.999999", "2024-05-02T00:00:00", "2024-05-02T12:00:00", "2024-05-02T23:59:59.999999",
        "2024-05-03T00:00:00", "2024-05-03T00:00:00.000001",
    ]  # fmt: skip
    for time in times:
        store(at(PUBLIC), f"whale {time}", event_time=at_time(time))
    return at(PUBLIC)


@pytest.mark.parametrize(
    ("start", "end", "wanted"),
    [
        ("2024-05-02", "2024-05-03", [1, 2, 3]), ("2024-05-02", None, [1, 2, 3, 4, 5]),
        (None, "2024-05-03", [0, 1, 2, 3]), ("2024-05-02", "2024-05-02", []), ("2024-05-03", "2024-05-02", []),
        ("2024-05-02", "2024-05-02T00:00:00.000001", [1]),
        (None, "2024-05-03T00:00:00.000001", [0, 1, 2, 3, 4]), ("2024-05-03T00:00:00.000001", None, [5]),
        ("2025-01-01", None, []), ("0001-01-01", "9999-12-31T23:59:59.999999", [0, 1, 2, 3, 4, 5]),
    ],
)  # fmt: skip
def test_a_range_of_time_has_its_start_and_not_its_end(dated, start, end, wanted):
    """A date is its midnight: the whole of a day is from it to that of the next."""
    everything = listed(dated)[::-1]
    fields = {name: at_time(time) for name, time in (("start_time", start), ("end_time", end)) if time}

    assert listed(dated, **fields) == [everything[number] for number in wanted][::-1]
    assert sorted(found(dated, **fields)) == [everything[number] for number in wanted]


def test_the_time_that_counts_is_that_of_the_event(at):
    (stored,) = store(at(PUBLIC), "whale", event_time=at_time("2024-05-02"))

    assert listed(at(PUBLIC), start_time=stored.create_time) == found(at(PUBLIC), start_time=stored.create_time) == []


def test_a_passage_without_an_event_time_is_in_the_range_of_its_create_time(at):
    (stored,) = store(at(PUBLIC), "whale")

    assert (
        listed(at(PUBLIC), start_time=stored.create_time)
        == found(at(PUBLIC), start_time=stored.create_time)
        == ["whale"]
    )
    assert listed(at(PUBLIC), end_time=stored.create_time) == found(at(PUBLIC), end_time=stored.create_time) == []


def test_all_filters_together(at):
    fields = {"tags": ["t"], "thread": "x", "event_time": at_time("2024-05-02")}
    store(at(PUBLIC), "whale", **fields)
    for other in ({"tags": ["u"]}, {"thread": "y"}, {"event_time": at_time("2024-05-03")}):
        store(at(PUBLIC), "other whale", **(fields | other))
    wanted = {"tags": ["t"], "thread": "x", "start_time": at_time("2024-05-02"), "end_time": at_time("2024-05-03")}

    assert listed(at(PUBLIC), **wanted) == found(at(PUBLIC), **wanted) == ["whale"]


# --- Search


def test_a_result_has_the_passage_a_score_and_a_snippet(at):
    (stored,) = store(at(PUBLIC), "word " * 60 + "the blue whale " + "word " * 60, tags=["t"], author="Ann")
    answer = at(PUBLIC).search_passages(query="whales")
    (result,) = answer.results

    assert result.passage == stored
    assert "whale" in result.snippet
    assert len(result.snippet) < len(stored.content)
    assert result.score > 0
    assert not answer.semantic


def test_better_matches_come_first(at):
    store(at(PUBLIC), "a whale", "whale whale whale", "a zebra", "the whale and the zebra")

    assert found(at(PUBLIC), "whale zebra")[0] == "the whale and the zebra"
    assert set(found(at(PUBLIC), "whale zebra")) == {
        "a whale",
        "whale whale whale",
        "a zebra",
        "the whale and the zebra",
    }


def test_of_equal_scores_the_id_decides(at):
    ids = sorted(str(uuid.UUID(int=random.Random(3).getrandbits(128) + number, version=4)) for number in range(8))
    for passage_id in random.Random(5).sample(ids, 8):
        store(at(PUBLIC), "whale", passage_id=passage_id)

    hits = at(PUBLIC).search_passages(query="whale").results
    assert [result.passage.passage_id for result in hits] == ids


@pytest.mark.parametrize("query", ["%", "_", "%%", "wh_le", "wh%", "\\", "*"])
def test_percent_and_underscore_are_ordinary(at, query):
    store(at(PUBLIC), "whale")

    assert found(at(PUBLIC), query) == []


@pytest.mark.parametrize(
    "query",
    ["user-name", "it's", "C++", '""', "a AND", "NOT", "bo*", "col:term", "(", "'", "\\'", ":*", "<->", "!", "&|"],
)
def test_nothing_in_a_query_is_syntax(at, query):
    store(at(PUBLIC), f"here is {query} of all", "another")

    assert "another" not in found(at(PUBLIC), query)
    assert at(PUBLIC).observe("SearchPassages", query=query).code.name == "OK"


@pytest.mark.parametrize("query", ["", " ", "\t\n", "\0", "x" * 1025])
def test_an_invalid_query_is_refused(at, query):
    assert invalid(at(PUBLIC).search_passages, query=query) == ["query"]


def test_content_author_and_tags_are_searched_and_nothing_else(at):
    """Not the names of levels, agents and threads."""
    store(at(PUBLIC), "whale", thread="thread", author="author", tags=["tag"])

    queries = ("whale", "author", "tag", "PUBLIC", "alice", "thread")
    assert [query for query in queries if found(at(PUBLIC), query)] == ["whale", "author", "tag"]


@pytest.mark.parametrize("query", ["cafe", "deadbeef", "deadbeef-cafe-4ace-8bad-facadefeed01"])
def test_the_id_is_not_searched(at, query):
    """It is noise: three random passages in 65,536 would match a word such as `cafe`, `face` or `1234`."""
    store(at(PUBLIC), "whale", passage_id="deadbeef-cafe-4ace-8bad-facadefeed01")

    assert found(at(PUBLIC), query) == []


@pytest.mark.parametrize("word", ["நினைவு", "Wörter", "память", "記憶"])
def test_a_word_of_any_script_is_found(at, word):
    store(at(PUBLIC), f"one {word} two", "other")

    assert found(at(PUBLIC), word) == [f"one {word} two"]


def test_a_word_deep_in_a_long_passage_is_found(at):
    store(at(PUBLIC), " ".join(f"w{number:06}" for number in range(32_000)) + " whale")

    assert len(found(at(PUBLIC), "whale")) == 1
    assert len(found(at(PUBLIC), "w031999")) == 1


# --- Audit


@pytest.mark.parametrize("level", LEVELS)
def test_reads_are_recorded_from_confidential_up_with_how_many_they_found(at, host, level):
    store(at(level), "whale", "whale", "zebra")
    at(level).list_passages()
    at(level).list_passages(tags=["never"])
    at(level).search_passages(query="whale")
    at(level).search_passages(query="never")
    recorded = [
        (event.method, event.kind, event.result_count)
        for event in events(host)
        if event.result_count or event.method[:4] in ("List", "Sear")
    ]

    assert recorded == (
        [("ListPassages", 4, 3), ("ListPassages", 4, 0), ("SearchPassages", 4, 2), ("SearchPassages", 4, 0)]
        if level >= CONFIDENTIAL
        else []
    )


def test_a_read_of_one_page_counts_what_the_page_holds(at, host):
    store(at(CONFIDENTIAL), "a", "b", "c")
    pages(at(CONFIDENTIAL).list_passages, page_size=2)

    assert [event.result_count for event in events(host) if event.method == "ListPassages"] == [2, 1]


@pytest.mark.proof
def test_a_page_that_ends_early_counts_what_it_holds(at, host):
    for _ in range(13):
        store(at(CONFIDENTIAL), heavy(262144))
    held = [len(page.passages) for page in pages(at(CONFIDENTIAL).list_passages)]

    assert held == [11, 2]
    assert [event.result_count for event in events(host) if event.method == "ListPassages"] == held


def test_a_search_that_finds_one_names_it(at, host):
    store(at(CONFIDENTIAL), "whale", "zebra")
    at(CONFIDENTIAL).search_passages(query="zebra")
    *_, stored, read = [event for event in events(host) if event.kind]

    assert (read.method, read.item_id, read.result_count) == ("SearchPassages", stored.item_id, 1)


def test_a_read_that_cannot_be_recorded_is_not_answered(service):
    session = service.session(CONFIDENTIAL)
    (stored,) = store(session, "whale")
    with service.database.as_owner() as owner:
        owner.execute("REVOKE INSERT ON muniment_confidential.audit FROM muniment_confidential")

    answers = [
        refusal(session.get_passage, passage_id=stored.passage_id),
        refusal(session.list_passages),
        refusal(session.search_passages, query="whale"),
    ]

    assert answers == ["INTERNAL INTERNAL"] * 3
