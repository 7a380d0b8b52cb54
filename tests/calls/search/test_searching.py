"""SearchMemories."""

from __future__ import annotations

import re
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.inspection import broken_index
from muniment_server.search import index
from muniment_server.search.marks import author_mark
from muniment_server.search.ranking import Term
from muniment_server.search.reindex import reindex
from tests.support.answers import CONFIDENTIAL, INTERNAL, LEVELS, PUBLIC, RESTRICTED, UP, invalid, keys
from tests.support.erasing import erase_all
from tests.support.searches import ALL, ANY, SCANS, passages
from tests.support.services import Caller, serving

PUNCTUATION = [
    "user-name", "what is my name?", "it's", "C++", '"', "'", '""', "''", "a AND", "NOT", "OR", "AND OR NOT",
    "col:term",
    "bo*", "*", "%", "_", "%%", "\\", "\\'", "a\\b", "!", "&", "|", "<->", "a <-> b", "a & b", "a | b", "!a", "(", ")",
    "((", "a:*", "a:A", "a:*D", "'a':1", "name:", ":", "::", "^", "~", "$1", "%s", "%(tenant)s", "{}", "--", "/*", ";",
    "'; DROP TABLE item; --", "NEAR(a b)", "\t\n a", "http://user:pw@host/%20?a=b#c", "a@b.c", "1e309", "-1", "١٢٣",
    "\x01", "\x7f", "\u202e", "\ufeff", "\ufffd", "👩\u200d💻", "🇮🇳", "நினைவு", "க\u0bc6\u0bbe", "ﷺ", "中文", "ไทย",
    "a" * 1024, "Ⱥ" * 682 + "x", "\U0010ffff", "<b>x</b>", "&lt;", "RESTRICTED", "muniment_restricted",
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
    """C05."""
    library.search_memories(query=query)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(query=WORDS)
def test_c05_no_text_raises(library, query):
    library.search_memories(query=query)


@pytest.mark.parametrize("query", ["%", "_", "%%", "100_", "*", "wh*", "wh_le", "wh%", "!zebra", "NOT zebra"])
def test_nothing_in_a_query_is_a_wildcard(library, query):
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


@pytest.mark.parametrize("query", ["?", "...", "!", "👩", "%", "\u0bcd"])
def test_a_query_without_a_word_finds_nothing(library, query):
    assert found(library, query) == []


def test_stop_words_count_only_in_a_query_without_other_words(library):
    assert found(library, "is it my") == ["memo", "plan"]
    assert found(library, "is it my whale") == ["whale"]
    assert found(library, "is it my xylophone") == []


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


def test_a_tamil_word_is_found_by_the_same_word(at):
    save(at(PUBLIC), tamil="என் நினைவு நல்லது", other="மழை பெய்கிறது")

    assert found(at(PUBLIC), "நினைவு") == ["tamil"]


def test_a_tamil_word_is_one_word(at):
    """Not its letters without the vowel signs: another word of the same consonants is no match."""
    save(at(PUBLIC), memory="நினைவு", other="நான வா")

    assert found(at(PUBLIC), "நினைவு") == ["memory"]


@pytest.mark.parametrize("word", ["ஞாபகம்", "याददाश्त", "می\u200cخواهم", "память", "μνήμη", "זיכרון", "記憶", "été"])
def test_a_word_of_any_script_is_found_by_the_same_word(at, word):
    save(at(PUBLIC), it=f"one {word} two", other="three four")

    assert found(at(PUBLIC), word) == ["it"]


def test_level_and_agent_are_not_searchable_text(at):
    """`RESTRICTED` found rows by their level."""
    at(RESTRICTED).save_memory(key="plan", content="text", tags=["whale"])

    assert [found(at(RESTRICTED), query) for query in ("RESTRICTED", "restricted", "alice", "memory", "tags")] == [
        []
    ] * 5


def test_tags_and_the_day_are_searched_too(at):
    at(PUBLIC).save_memory(key="plan", content="text", tags=["whale"])
    month = at(PUBLIC).get_memory(key="plan").memory.update_time.ToDatetime().strftime("%B %Y")

    assert found(at(PUBLIC), "whales") == ["plan"]
    assert found(at(PUBLIC), f"what was written in {month}?") == ["plan"]


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
    """No statistics span levels."""
    save(at(low), one="whale whale zebra", two="zebra whale", three="a long text with one whale somewhere in it")
    before = at(low).search_memories(query="whale zebra").SerializeToString(deterministic=True)
    save(at(high), **{f"high{number}": "whale " * 100 + "zebra" for number in range(5)}, one="gone")

    assert at(low).search_memories(query="whale zebra").SerializeToString(deterministic=True) == before


def test_c36_hidden_matches_do_not_crowd_out_visible_ones(service):
    """500 high and 10 low matches, limit 10."""
    low = service.session(PUBLIC)
    save(low, **{f"low{number}": "one whale in a long text about other things" for number in range(10)})
    with service.database.as_owner() as owner:
        owner.execute(
            "INSERT INTO muniment_restricted.item (tenant, agent, kind, name, item_id, change_id, content)"
            " SELECT tenant, agent, 1, 'high' || n, gen_random_uuid(), gen_random_uuid(), 'whale'"
            "   FROM vault.agent, generate_series(1, 500) AS n"
        )
    with connect_operator(service.database.admin) as operator:
        list(reindex(operator.connection))

    assert sorted(found(low, "whale", max_results=10)) == [f"low{number}" for number in range(10)]
    assert len(found(service.session(RESTRICTED), "whale", max_results=100)) == 100


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


def test_tags_are_filtered_before_the_limit(at):
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
    assert result.snippet in result.memory.content
    assert len(result.snippet) <= 240


def test_a_deleted_memory_is_not_found(at):
    save(at(PUBLIC), plan="whale")
    at(PUBLIC).delete_memory(key="plan")

    assert found(at(PUBLIC), "whale") == []


def test_an_overwritten_text_is_not_found(at):
    save(at(PUBLIC), plan="whale")
    save(at(PUBLIC), plan="zebra")

    assert found(at(PUBLIC), "whale") == []


def test_a_search_without_vectors_says_so(at):
    assert not at(PUBLIC).search_memories(query="whale").semantic


def test_every_hit_is_what_get_returns(at):
    """Lists and searches at every level, over names at several levels."""
    for number, level in enumerate([*LEVELS, *LEVELS, *LEVELS]):
        at(level).save_memory(key=f"k{number % 5}", content=f"whale {number}", tags=[f"t{number % 2}"])

    for level in LEVELS:
        session = at(level)
        hits = [result.memory for result in session.search_memories(query="whale", tags=["t1"]).results]
        for memory in (*hits, *session.list_memories().memories, *session.list_memories(tag="t0").memories):
            assert memory == session.get_memory(key=memory.key).memory


# Words of any language.


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("நாய்களுக்கு உணவு கொடுக்கிறேன்", "நாய்க்கு என்ன கொடுத்தாய்?"),
        ("Die Krankenversicherungskarte liegt im Schrank", "Karte der Versicherung"),
        ("明日、東京都庁の展望台に行きます", "東京の展望台はいつ？"),
        ("我们在北京的博物馆参观了一天", "北京博物馆"),
        ("ฉันชอบกินข้าวผัดกะเพราทุกวัน", "ข้าวผัด"),
        ("서울에서 친구를 만났다", "친구"),
        ("Le café préféré d'Hélène est fermé", "cafe prefere de helene"),
        ("मुझे आम की मिठाइयाँ पसंद हैं", "मिठाई"),
        ("она читала интересные книги", "интересная книга"),
        ("kitaplarımızdan birini kaybettim", "kitap kaybetmek"),
    ],
)
def test_other_forms_of_words_are_found_in_any_language(at, content, query):
    """By stems, or by parts of words."""
    save(at(PUBLIC), wanted=content, other="nothing of that kind is said here", ta="மழை பெய்கிறது", zh="今天天气很好")

    assert found(at(PUBLIC), query)[0] == "wanted"


@pytest.mark.parametrize(
    ("language", "stemmer"), [("", "english"), ("de-AT", "german"), ("TA", "tamil"), ("xx", "simple")]
)
def test_the_language_of_an_agent_overrides_the_guess(shared, host, session, language, stemmer):
    host.create_agent(agent_id="bob", language=language)
    save(session(PUBLIC, agent_id="bob"), **{f"{language}-{stemmer}": "Ding"})

    with shared.database.as_owner() as owner:
        rows = owner.execute("SELECT language FROM muniment_public.chunk WHERE name = %s", [f"{language}-{stemmer}"])
        assert [name for (name,) in rows] == [stemmer]


def test_parts_that_words_share_by_chance_are_no_match(at):
    save(at(PUBLIC), team="the team met", teach="she will teach", game="a game", name="a name")

    assert found(at(PUBLIC), "tear") == []
    assert found(at(PUBLIC), "name") == ["name"]


# Ranking.


@pytest.mark.parametrize("query", ["Which city is home to Will?", "Where does Will live?"])
def test_a_name_that_is_a_stop_word_counts_where_it_has_a_capital(at, query):
    session = at(PUBLIC)
    save(session, name="Will moved to Graz.", verb="The train will be late.", live="Where the keys live.", cat="A cat.")

    assert found(session, query)[:1] == ["name"]
    assert found(session, query.lower())[:1] != ["name"]


@pytest.mark.parametrize(
    ("one", "other"), [("護照在抽屜裡", "护照在抽屉里"), ("渡邊", "渡辺"), ("臺北的貓", "台北的猫")]
)
def test_simplified_and_traditional_characters_find_each_other_and_the_same_first(at, one, other):
    session = at(PUBLIC)
    save(session, a=f"我的{other}。", b=f"我的{one}。")

    assert (found(session, one), found(session, other)) == (["b", "a"], ["a", "b"])


def test_a_word_that_many_texts_have_finds_them_only_if_no_other_word_does(at):
    """Such as a preposition of a language without a list of stop words. Whether it is one depends on no hidden text."""
    session = at(PUBLIC)
    save(session, dentist="Dentysta w Gdyni", car="Opony w garażu", cat="Kot śpi w szafie", hotel="Hotel 'Gryf', Sopot")
    for number in range(20):
        at(CONFIDENTIAL).save_memory(key=f"hidden {number}", content="Hotel, Sopot")

    assert found(session, "hotel w Sopocie") == ["hotel"]
    results = session.search_memories(query="rower w Osace").results
    assert {result.memory.key for result in results} == {"dentist", "car", "cat"}
    assert max(result.relevance for result in results) < 0.1
    assert set(found(session, "w")) == {"dentist", "car", "cat"}


def test_a_rare_word_weighs_more_than_a_common_one(at):
    save(at(PUBLIC), **{f"k{number}": "the meeting was long" for number in range(9)}, rare="the meeting about zebras")

    assert found(at(PUBLIC), "zebra meeting")[0] == "rare"


def test_a_long_memory_is_found_by_its_best_part(at):
    """Not thinned by all the rest of it."""
    filler = "Nothing of interest was said about the weather or the food on that day. "
    save(at(PUBLIC), long=filler * 100 + "The blue whale sings at night. " + filler * 100)
    save(at(PUBLIC), **{f"k{number}": f"One whale {filler}" for number in range(5)})

    assert found(at(PUBLIC), "blue whale sings")[0] == "long"
    (first, *_) = at(PUBLIC).search_memories(query="blue whale sings").results
    assert "blue whale sings" in first.snippet


@pytest.mark.parametrize("tags", [[], ["wanted"]])
def test_a_search_fills_its_limit_if_enough_items_match(at, tags):
    """Also where the rarest words alone would find fewer: they are looked for first."""
    for number in range(30):
        at(PUBLIC).save_memory(key=f"many{number}", content="a whale " + "and another " * 5, tags=["wanted"])
    save(at(PUBLIC), rare="a zebra")

    assert len(found(at(PUBLIC), "zebra whale", max_results=20, tags=tags)) == 20


# Passages in threads.


def ids_found(session, query, **fields):
    return [result.passage.passage_id for result in session.search_passages(query=query, **fields).results]


def test_a_hit_raises_the_scores_of_its_neighbors_in_the_thread(at):
    """Two on each side, equally. They have one length, which weighs a turn."""
    ids = passages(at(PUBLIC), "t", "far off", "is near", "there is the whale", "the bay", "far out", "farther")
    passages(at(PUBLIC), "other", "elsewhere", start=1_000_000_002)

    assert ids_found(at(PUBLIC), "whale") == [ids[2], *sorted([ids[0], ids[1], ids[3], ids[4]])]


@pytest.mark.parametrize(
    "authors",
    [
        ("Bob", "Ann", "Bob", "Cid", "Bob"),
        ("Ann", "Bob", "Ann", "Ann", "Ann"),
        ("Cid", "Ann", "Bob", "Cid", "Bob"),  # Cid and Bob count as one author: the query names neither
    ],
)
def test_a_turn_two_places_away_gets_twice_as_much_if_the_turn_between_interrupts(at, authors):
    """The turn before the hit is across an interruption, the one after is not. Both have the same length."""
    at(PUBLIC).import_passages(*({"content": f"note {number}", "author": "Ann"} for number in range(60)))
    texts = ("far away, out", "in the harbor", "a blue whale", "in the street", "far from here")
    ids = [
        at(PUBLIC)
        .store_passage(content=text, thread="t", author=author, event_time={"seconds": 1_000_000_000 + number})
        .passage.passage_id
        for number, (author, text) in enumerate(zip(authors, texts, strict=True))
    ]

    results = at(PUBLIC).search_passages(query="a whale of Ann", max_results=100).results
    scores = {result.passage.passage_id: result.score for result in results}
    # Without the part of the best turn of the thread. Ann's name is a word, too: so many have it that it weighs little.
    own = [6 * scores[name] - max(scores.values()) for name in ids]
    assert own[0] / own[4] == pytest.approx(2, abs=0.3)


def test_a_word_without_weight_is_found(at, monkeypatch):
    """A word that nearly all of some millions of chunks contain weighs less than half a millionth."""
    ids = passages(at(PUBLIC), "t", "the whale", "a harbor", "the whale")
    monkeypatch.setattr(Term, "weight", lambda *_: 0.4)

    assert sorted(ids_found(at(PUBLIC), "whale")) == sorted([ids[0], ids[2]])


@pytest.mark.parametrize("attempt", range(3))
def test_a_hit_that_asks_raises_the_turn_after_it_most(at, attempt):
    """It may be the answer. Ids are random, and would put the other first half of the time."""
    ids = passages(at(PUBLIC), "t", "far off", "quite near", "where is the whale?", "in the bay", "far out", "farther")

    assert ids_found(at(PUBLIC), "whale") == [ids[2], ids[3], ids[1], *sorted([ids[0], ids[4]])]


def test_a_hit_raises_a_neighbor_only_for_words_that_it_lacks(at):
    """A word that is repeated in the next turn counts once; one that only the next turn has counts there, too."""
    passages(at(PUBLIC), "t", "the whale", "the whale")
    passages(at(PUBLIC), "u", "the whale")
    passages(at(PUBLIC), "v", "the whale", "the zebra")

    found = at(PUBLIC).search_passages(query="whale zebra").results
    scores = {thread: {one.score for one in found if one.passage.thread == thread} for thread in "tuv"}
    assert scores["t"] == scores["u"]
    assert min(scores["v"]) > max(scores["u"])


def test_a_hit_does_not_raise_the_score_of_a_filtered_passage(at):
    passages(at(PUBLIC), "t", "before", "the whale", "after", tags=["kept"])
    passages(at(PUBLIC), "t", "between", start=1_000_000_001, tags=["left out"])

    assert len(ids_found(at(PUBLIC), "whale", tags=["kept"])) == 3
    assert len(ids_found(at(PUBLIC), "whale", tags=["kept"], start_time={"seconds": 1_000_000_001})) == 2


@pytest.mark.parametrize(("low", "high"), UP)
def test_neighbors_are_counted_among_visible_passages_only(at, low, high):
    """Hidden turns between visible ones widen no distance."""
    ids = passages(at(low), "t", "before", "the whale", "after")
    before = at(low).search_passages(query="whale").SerializeToString(deterministic=True)
    passages(at(high), "t", *["whale whale"] * 3, start=1_000_000_000)
    passages(at(high), "t", *["a hidden turn"] * 3, start=1_000_000_001)

    assert at(low).search_passages(query="whale").SerializeToString(deterministic=True) == before
    assert len(ids_found(at(low), "whale")) == len(ids) == 3


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_shadowed_turn_is_no_neighbor(at, low, high):
    """The version that is seen stands in another thread: the turn after it is next to the hit, and it is no match."""
    ids = passages(at(low), "t", "the whale", "between", "after")
    shadowed = at(high).store_passage(content="elsewhere", thread="u", passage_id=str(uuid.uuid4())).passage.passage_id
    at(low).store_passage(content="hidden", thread="t", passage_id=shadowed, event_time={"seconds": 1_000_000_000})

    results = at(high).search_passages(query="whale").results
    assert [result.passage.passage_id for result in results] == ids
    by_words = (1.0, 0.2, 0.2)
    alone = [score * weight(text) for score, text in zip(by_words, ("the whale", "between", "after"), strict=True)]
    expected = [(5 * score + alone[0]) / 6 for score in alone]
    assert [result.score for result in results] == pytest.approx(expected, abs=1e-5)


def test_a_better_passage_without_a_thread_is_before_a_turn(at):
    """The thread adds nothing to its best turn."""
    turn = at(PUBLIC).store_passage(content="a whale " * 2 + "in the sea " * 22, thread="t").passage.passage_id
    alone = at(PUBLIC).store_passage(content="a whale " * 2 + "in the sea " * 20).passage.passage_id

    assert ids_found(at(PUBLIC), "whale") == [alone, turn]


def weight(content):
    """What a turn counts that neither asks nor is by an author whom the query names."""
    return 1000 * len(content) // (len(content) + 30) / 1000


def test_a_turn_by_an_author_whom_the_query_names_counts_more(at):
    turns = [
        at(PUBLIC).store_passage(content="saw a whale", thread=f"t{number}", author=author).passage.passage_id
        for number, author in enumerate(["Ana", "Bo", "Cy"])
    ]

    assert ids_found(at(PUBLIC), "What did Bo's friend see, a whale?")[0] == turns[1]


def scopes_of_posing_authors(at, shared, tenant):
    """The scopes among the terms of chunks whose authors are named like the scope of memories, and their own scopes."""
    at(PUBLIC).save_memory(key="plan", content="a zebra")
    with shared.database.as_owner() as owner:
        (agent,) = owner.execute(
            "SELECT agent.agent FROM vault.agent JOIN vault.tenant USING (tenant) WHERE tenant.name = %s", [tenant]
        ).fetchone()
        scope = f"{agent}:1"
        for author in (scope, f"@{scope}", f"'@{scope}'", scope.replace(":", "\uff1a")):
            at(PUBLIC).store_passage(content="a zebra", author=author)
        chunks = owner.execute(
            "SELECT tsvector_to_array(stems) AS terms, format('@%%s:%%s', agent, kind) AS own"
            " FROM muniment_public.chunk WHERE agent = %s",
            [agent],
        ).fetchall()
    return [({term for term in chunk.terms if re.fullmatch(r"@\d+:\d+", term)}, {chunk.own}) for chunk in chunks]


def test_an_author_cannot_pose_as_a_scope(at, shared, tenant):
    """Chunks are looked up by their scope, the term `@agent:kind`. The marks of their authors are terms as well."""
    assert all(scopes == own for scopes, own in scopes_of_posing_authors(at, shared, tenant))


def test_an_author_whose_whole_name_is_a_mark_poses_as_a_scope(at, shared, tenant, monkeypatch):
    """The guard, broken. It is that a mark holds one word of a name, without what separates words."""
    monkeypatch.setattr(index, "marks", lambda author, _text, _words: [author_mark(author)] if author else [])

    assert any(scopes > own for scopes, own in scopes_of_posing_authors(at, shared, tenant))


def test_a_turn_that_asks_or_says_little_counts_less(at):
    texts = ["is it a whale or a zebra", "is it a whale or a zebra?", "a whale"]
    for number, content in enumerate(texts):
        at(PUBLIC).store_passage(content=content, thread=f"t{number}")

    scores = {one.passage.content: one.score for one in at(PUBLIC).search_passages(query="zebra whale").results}
    assert scores[texts[0]] > scores[texts[1]] > scores[texts[2]]


def test_the_best_turn_raises_its_whole_thread(at):
    first, second = (
        at(PUBLIC)
        .store_passage(content=f"whale {number}", thread=f"t{number}", passage_id=passage_id)
        .passage.passage_id
        for number, passage_id in enumerate(sorted(str(uuid.uuid4()) for _ in range(2)))
    )
    passages(at(PUBLIC), "t1", "far", "off", "farther", "whale zebra whale whale", start=1_900_000_000)

    found_ids = ids_found(at(PUBLIC), "whale zebra")
    assert found_ids.index(second) < found_ids.index(first)


# Nothing is learned from what is hidden; nothing is found that is gone.


def test_answers_do_not_depend_on_the_plan(database):
    """Bit for bit, whatever way the rows come."""
    with serving(database) as service:
        session = service.session(INTERNAL)
        for number in range(40):
            repeated = "whale zebra meeting budget " * (number % 7 + 1)
            session.save_memory(key=f"k{number}", content=f"{repeated}w{number % 3}")
        passages(session, "t", *[f"whale {number}" for number in range(20)])
        before = _answers(session)

    for scan in SCANS:
        with database.as_admin() as admin:
            admin.execute(f"ALTER DATABASE {database.name} SET enable_{scan} = off".encode())
            with serving(database) as service:
                assert (scan, _answers(Caller(service.channel, session.token))) == (scan, before)
            admin.execute(f"ALTER DATABASE {database.name} RESET enable_{scan}".encode())


def _answers(session):
    asked = [
        session.search_memories(query="whale zebra w1", max_results=40),
        session.search_passages(query="whale 7", max_results=20),
    ]
    return [answer.SerializeToString(deterministic=True) for answer in asked]


@pytest.mark.parametrize(("low", "high"), UP)
def test_notes_and_passages_are_found_as_if_nothing_were_above(at, low, high):
    for number in range(5):
        at(low).add_note(content=f"whale {'zebra ' * number}note {number}")
        at(low).store_passage(content=f"whale {'zebra ' * number}passage {number}")
    searches = [
        lambda: at(low).search_notes(query="zebra whale").SerializeToString(deterministic=True),
        lambda: at(low).search_passages(query="zebra whale").SerializeToString(deterministic=True),
    ]
    before = [search() for search in searches]
    for number in range(9):
        at(high).add_note(content=f"whale zebra {number} " * 5)
        at(high).store_passage(content=f"whale zebra {number} " * 50)

    assert [search() for search in searches] == before


def test_a_deleted_item_is_in_no_index(service):
    """Deleted, overwritten, expired and replaced, purged: in the same transaction."""
    session = service.session(PUBLIC)
    save(session, kept="whale", over="whale " * 400, gone="whale")
    save(session, over="zebra")
    session.delete_memory(key="gone")
    stored = session.store_passage(content="whale").passage.passage_id
    session.delete_passage(passage_id=stored)
    note = session.add_note(content="whale").note.note_id
    session.update_note(note_id=note, content="zebra")

    with service.database.as_owner() as owner:
        names = owner.execute("SELECT name FROM muniment_public.chunk WHERE stems @@ 'whale'").fetchall()
    assert [name for (name,) in names] == ["kept"]
    with connect_operator(service.database.admin) as operator:
        assert set(broken_index(operator).values()) == {0}


def test_term_statistics_are_folded_after_a_while(service):
    """Rows of counts are added up by about every 64th write."""
    session = service.session(PUBLIC)
    for number in range(600):
        session.save_memory(key=f"k{number % 7}", content=f"whale {number}")

    with service.database.as_owner() as owner:
        ((rows,),) = owner.execute("SELECT count(*) FROM muniment_public.stat").fetchall()
    assert rows < 500
    with connect_operator(service.database.admin) as operator:
        assert set(broken_index(operator).values()) == {0}


def test_an_agent_that_is_deleted_leaves_nothing_in_the_index(service):
    save(service.session(PUBLIC), plan="whale")
    service.host().delete_agent(agent_id="alice")
    erase_all(service.database)

    with service.database.as_owner() as owner:
        rows = owner.execute(
            "SELECT 1 FROM muniment_public.chunk UNION ALL SELECT 1 FROM muniment_public.stat"
        ).fetchall()
    assert rows == []


def test_a_long_passage_with_the_maximum_of_tags_is_stored(at):
    """Repeated in each of its chunks, they took half a minute."""
    tags = [f"label{number:02} " + "\ufdfa" * 50 for number in range(32)]
    stored = at(PUBLIC).store_passage(content="whale. " * 30_000, tags=tags, timeout=20)

    found = at(PUBLIC).search_passages(query="label31")
    assert [result.passage.passage_id for result in found.results] == [stored.passage.passage_id]
