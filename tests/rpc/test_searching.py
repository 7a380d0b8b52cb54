"""SearchMemories."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rpc.answers import CONFIDENTIAL, INTERNAL, LEVELS, PUBLIC, RESTRICTED, UP, invalid, keys

ANY, ALL = 2, 1

PUNCTUATION = [
    "user-name", "what is my name?", "it's", "C++", '"', "'", '""', "''", "a AND", "NOT", "OR", "AND OR NOT",
    "col:term",
    "bo*", "*", "%", "_", "%%", "\\", "\\'", "a\\b", "!", "&", "|", "<->", "a <-> b", "a & b", "a | b", "!a", "(", ")",
    "((", "a:*", "a:A", "a:*D", "'a':1", "name:", ":", "::", "^", "~", "$1", "%s", "%(tenant)s", "{}", "--", "/*", ";",
    "'; DROP TABLE item; --", "NEAR(a b)", "\t\n a", "http://user:pw@host/%20?a=b#c", "a@b.c", "1e309", "-1", "١٢٣",
    "\x01", "\x7f", "\u202e", "\ufeff", "\ufffd", "👩\u200d💻", "🇮🇳", "நினைவு", "க\u0bc6\u0bbe", "ﷺ", "中文", "ไทย",
    "a" * 1024, "\U0010ffff", "<b>x</b>", "&lt;", "RESTRICTED", "muniment_restricted",
]  # fmt: skip

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    lambda text: text.replace("\0", " ").strip()
)
"""Any text that is not blank."""


def save(session, **contents):
    for key, content in contents.items():
        session.save_memory(key=key, content=content)


def found(session, query, **fields):
    return keys(session.search_memories(query=query, **fields))


@pytest.fixture(scope="module")
def library(shared):
    """A session whose agent has a few memories."""
    session = shared.session(PUBLIC, tenant="library")
    save(session, whale="a blue whale", plan="It's C++: 100% user-name, snake_case", memo="my name is Anu")
    return session


@pytest.mark.parametrize("query", PUNCTUATION)
def test_nothing_in_a_query_is_syntax_and_nothing_raises(library, query):
    """C05, TF7."""
    library.search_memories(query=query)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(query=WORDS)
def test_c05_no_text_raises(library, query):
    library.search_memories(query=query)


@pytest.mark.parametrize("query", ["%", "_", "%%", "100_", "*", "wha*", "wh_le", "whal%", "!zebra", "NOT zebra"])
def test_of2_nothing_in_a_query_is_a_wildcard(library, query):
    assert "whale" not in found(library, query)


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("user-name", "plan"), ("what is my name?", "memo"), ("C++", "plan"), ("it's C++", "plan"), ("100%", "plan"),
        ("snake_case", "plan"), ("blue & !whale", "whale"), ("whale:*A", "whale"), ("WHALE", "whale"),
        ("zebra whale", "whale"), ('"whale', "whale"), ("whale\0zebra", "whale"), ("anu", "memo"),
    ],
)  # fmt: skip
def test_a_query_finds_by_its_words(library, query, key):
    """Any word may match."""
    assert key in found(library, query)


@pytest.mark.parametrize("query", ["the", "is it a", "?", "...", "!", "👩"])
def test_a_query_without_a_word_that_counts_finds_nothing(library, query):
    """Stop words alone, punctuation alone."""
    assert found(library, query) == []


@pytest.mark.parametrize("query", [" ", "\t\n", "\0", " \0\0 "])
def test_a_blank_query_is_refused(library, query):
    assert invalid(library.search_memories, query=query) == ["query"]


@pytest.mark.parametrize("query", ["", "x" * 1025])
def test_a_query_has_1_to_1024_code_points(library, query):
    assert invalid(library.search_memories, query=query) == ["query"]


def test_a_long_query_of_any_script_is_taken(library):
    library.search_memories(query="நி" * 512)


def test_a_negative_number_of_results_is_refused(library):
    assert invalid(library.search_memories, query="whale", max_results=-1) == ["max_results"]


def test_an_unknown_way_to_match_tags_is_refused(library):
    assert invalid(library.search_memories, query="whale", tag_match=3) == ["tag_match"]


def test_any_form_of_a_word_is_found(at):
    save(at(PUBLIC), run="she runs daily")

    assert found(at(PUBLIC), "running") == ["run"]


def test_a_key_is_searched_too(at):
    save(at(PUBLIC), whale="big")

    assert found(at(PUBLIC), "whale") == ["whale"]


def test_tf18_a_tamil_word_is_found_by_the_same_word(at):
    save(at(PUBLIC), tamil="என் நினைவு நல்லது", other="மழை பெய்கிறது")

    assert found(at(PUBLIC), "நினைவு") == ["tamil"]


def test_tf18_a_tamil_word_is_one_word(at):
    """Not its letters without the vowel signs: another word of the same consonants is no match."""
    save(at(PUBLIC), memory="நினைவு", other="நான வா")

    assert found(at(PUBLIC), "நினைவு") == ["memory"]


@pytest.mark.parametrize("word", ["ஞாபகம்", "याददाश्त", "می\u200cخواهم", "память", "μνήμη", "זיכרון", "記憶", "été"])
def test_a_word_of_any_script_is_found_by_the_same_word(at, word):
    save(at(PUBLIC), it=f"one {word} two", other="three four")

    assert found(at(PUBLIC), word) == ["it"]


def test_level_agent_and_tags_are_not_searchable_text(at):
    """TF7: `RESTRICTED` found rows by their level."""
    at(RESTRICTED).save_memory(key="plan", content="text", tags=["whale"])

    assert [found(at(RESTRICTED), query) for query in ("RESTRICTED", "restricted", "alice", "whale", "4")] == [[]] * 5


@pytest.mark.parametrize(("low", "high"), UP)
def test_c06_a_shadowed_version_does_not_resurface_by_its_word(at, low, high):
    save(at(low), plan="whale")
    save(at(high), plan="zebra")

    assert found(at(high), "whale") == []
    assert found(at(high), "zebra") == ["plan"]
    assert found(at(low), "whale") == ["plan"]


@pytest.mark.parametrize(("low", "high"), UP)
def test_c06_a_shadowed_version_does_not_resurface_by_its_tag(at, low, high):
    at(low).save_memory(key="plan", content="whale", tags=["urgent"])
    at(high).save_memory(key="plan", content="whale", tags=["done"])

    assert found(at(high), "whale", tags=["urgent"]) == []
    assert found(at(high), "whale", tags=["urgent"], tag_match=ANY) == []
    assert found(at(low), "whale", tags=["urgent"]) == ["plan"]


def test_c01_nothing_above_is_found(at):
    for level in LEVELS:
        save(at(level), **{level.name: "whale"})

    assert {level: sorted(found(at(level), "whale")) for level in LEVELS} == {
        level: sorted(lower.name for lower in LEVELS if lower <= level) for level in LEVELS
    }


@pytest.mark.parametrize(("low", "high"), UP)
def test_c34_a_search_is_the_same_bytes_whatever_is_above(at, low, high):
    """TF6: no statistics span levels."""
    save(at(low), one="whale whale zebra", two="zebra whale", three="a long text with one whale somewhere in it")
    before = at(low).search_memories(query="whale zebra").SerializeToString(deterministic=True)
    save(at(high), **{f"high{number}": "whale " * 100 + "zebra" for number in range(5)}, one="gone")

    assert at(low).search_memories(query="whale zebra").SerializeToString(deterministic=True) == before


def test_c36_hidden_matches_do_not_crowd_out_visible_ones(shared, tenant, at):
    """TF5: 500 high and 10 low matches, limit 10."""
    save(at(PUBLIC), **{f"low{number}": "one whale in a long text about other things" for number in range(10)})
    at(RESTRICTED).save_memory(key="high", content="whale")
    with shared.database.as_owner() as owner:
        owner.execute(
            "INSERT INTO muniment_restricted.item (tenant, agent, kind, name, item_id, change_id, content)"
            " SELECT tenant, agent, 1, 'high' || n, gen_random_uuid(), gen_random_uuid(), 'whale'"
            "   FROM vault.agent JOIN vault.tenant USING (tenant), generate_series(1, 499) AS n WHERE tenant.name = %s",
            [tenant],
        )

    assert sorted(found(at(PUBLIC), "whale", max_results=10)) == [f"low{number}" for number in range(10)]


def test_results_are_ordered_by_score_and_then_by_key(at):
    save(at(PUBLIC), c="whale", a="whale", b="whale", d="whale whale whale", B="whale")

    results = at(PUBLIC).search_memories(query="whale").results

    assert [result.memory.key for result in results] == ["d", "B", "a", "b", "c"]
    assert [result.score for result in results] == sorted((result.score for result in results), reverse=True)


def test_the_order_is_the_same_each_time(at):
    save(at(PUBLIC), **{f"k{number}": "whale zebra" * (number % 3 + 1) for number in range(20)})

    answers = {at(PUBLIC).search_memories(query="whale zebra", max_results=20).SerializeToString() for _ in range(5)}

    assert len(answers) == 1


def test_all_tags_are_needed_unless_any_is_asked_for(at):
    for key, tags in {"ab": ["a", "b"], "a": ["a"], "b": ["b"], "none": []}.items():
        at(PUBLIC).save_memory(key=key, content="whale", tags=tags)
    search = at(PUBLIC).search_memories

    assert sorted(keys(search(query="whale", tags=["a", "b"]))) == ["ab"]
    assert sorted(keys(search(query="whale", tags=["a", "b"], tag_match=ALL))) == ["ab"]
    assert sorted(keys(search(query="whale", tags=["a", "b"], tag_match=ANY))) == ["a", "ab", "b"]
    assert sorted(keys(search(query="whale", tag_match=ANY))) == ["a", "ab", "b", "none"]


def test_lt2_tags_are_looked_at_before_the_limit(at):
    for number in range(40):
        at(PUBLIC).save_memory(key=f"many{number}", content="whale whale", tags=["other"])
    for number in range(3):
        at(PUBLIC).save_memory(key=f"few{number}", content="one whale in a long text", tags=["wanted"])

    for match in (ALL, ANY):
        assert sorted(found(at(PUBLIC), "whale", tags=["wanted"], tag_match=match, max_results=3)) == [
            "few0", "few1", "few2",
        ]  # fmt: skip


def test_c09_the_classification_of_a_search_is_the_join_of_what_it_holds(at):
    for level in (PUBLIC, INTERNAL, CONFIDENTIAL):
        save(at(level), **{level.name: "whale"})
    save(at(RESTRICTED), zebra="zebra")

    assert at(RESTRICTED).search_memories(query="whale").classification == CONFIDENTIAL
    assert at(RESTRICTED).search_memories(query="whale zebra").classification == RESTRICTED


def test_c37_a_snippet_is_a_part_of_the_content_that_matches(at):
    save(at(PUBLIC), long="word " * 500 + "the whale sings " + "word " * 500)
    (result,) = at(PUBLIC).search_memories(query="whale").results

    assert "whale" in result.snippet
    assert result.snippet.strip() in result.memory.content


def test_tf13_a_deleted_memory_is_not_found(at):
    save(at(PUBLIC), plan="whale")
    at(PUBLIC).delete_memory(key="plan")

    assert found(at(PUBLIC), "whale") == []


def test_an_overwritten_text_is_not_found(at):
    save(at(PUBLIC), plan="whale")
    save(at(PUBLIC), plan="zebra")

    assert found(at(PUBLIC), "whale") == []


def test_a_search_without_vectors_says_so(at):
    assert not at(PUBLIC).search_memories(query="whale").semantic


def test_tf4_every_hit_is_what_get_returns(at):
    """Lists and searches at every level, over names at several levels."""
    for number, level in enumerate([*LEVELS, *LEVELS, *LEVELS]):
        at(level).save_memory(key=f"k{number % 5}", content=f"whale {number}", tags=[f"t{number % 2}"])

    for level in LEVELS:
        session = at(level)
        hits = [result.memory for result in session.search_memories(query="whale", tags=["t1"]).results]
        for memory in (*hits, *session.list_memories().memories, *session.list_memories(tag="t0").memories):
            assert memory == session.get_memory(key=memory.key).memory
