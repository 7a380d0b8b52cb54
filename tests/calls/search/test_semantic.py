"""Semantic search, through the service. Most tests take a quick embedder, in whose eyes some words mean the same."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing

import psycopg
import pytest

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.inspection import waiting_chunks
from muniment_server.domain.classification import Classification, Label
from muniment_server.embedder import main as embedder
from muniment_server.embedder import queue as embedding_queue
from muniment_server.embedder.e5.model import Model
from muniment_server.embedder.main import EmbeddingSchedule, embed_queued_chunks
from muniment_server.embedder.queue import START, embed_batch
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.placement import Databases
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.process.stop_signal import StopSignal
from muniment_server.search import ranking, search
from muniment_server.search.reindex import reindex
from tests.support.answers import CONFIDENTIAL, INTERNAL, LEVELS, PUBLIC, RESTRICTED, UP, in_future, keys
from tests.support.clock import Clock
from tests.support.concurrency import lock_rows
from tests.support.embedders import Quick, embed_all, quick
from tests.support.erasing import erase_all
from tests.support.labels import untrusted
from tests.support.searches import ANY, SCANS, passages
from tests.support.services import Caller, serving


@pytest.fixture
def service(database):
    """A server whose embedder is the quick one."""
    with serving(database, embed=quick) as service:
        yield service


@pytest.fixture
def at(service):
    sessions: dict[Classification, Caller] = {}

    def session_at(level):
        return sessions.setdefault(level, service.session(level))

    return session_at


@pytest.fixture(scope="module")
def model():
    """The real one."""
    return Model()


def save(session, **contents):
    for key, content in contents.items():
        session.save_memory(key=key, content=content)


def found(session, query, **fields):
    return keys(session.search_memories(query=query, **fields))


def bytes_of(answer):
    return answer.SerializeToString(deterministic=True)


def searches(session):
    return [
        bytes_of(session.search_memories(query="hound automobile", max_results=40)),
        bytes_of(session.search_memories(query="hound", tags=["t1"], max_results=5)),
        bytes_of(session.search_notes(query="automobile")),
        bytes_of(session.search_passages(query="where is the hound", max_results=40)),
    ]


def fill(session, count=12):
    for number in range(count):
        words = f"{'dog ' * (number % 3)}{'car ' * (number % 2)}matter {number}"
        session.save_memory(key=f"k{number}", content=words, tags=[f"t{number % 2}"])
        session.add_note(content=f"the car of note {number}")
    passages(session, "t", *[f"a dog {'barks' if number % 3 else 'sleeps'} {number}" for number in range(count)])


# With the real embedder.


def test_a_question_without_a_shared_word_finds_its_memory_in_any_language(database, model):
    with serving(database, embed=model.embed_query) as service:
        session = service.session(PUBLIC)
        save(
            session,
            doctor="She sees the doctor on Thursday afternoon",
            dog="Bruno barks at the postman every morning",
            money="The invoice for March has not been paid yet",
            sea="We swam with dolphins near Lisbon",
        )
        embed_all(database, model)
        asked = {
            "physician appointment": "doctor", "Wann ist der Arzttermin?": "doctor", "डॉक्टर से मुलाकात": "doctor",
            "debts that are still open": "money", "海で泳いだ": "sea",
        }  # fmt: skip

        answers = {query: session.search_memories(query=query) for query in asked}

    assert {query: keys(answer)[0] for query, answer in answers.items()} == asked
    assert all(answer.semantic for answer in answers.values())


def test_a_long_memory_is_shown_by_the_part_that_was_meant(database, model):
    filler = f"{'the weather was as before ' * 23}."[-590:]
    with serving(database, embed=model.embed_query) as service:
        session = service.session(PUBLIC)
        save(session, long=f"{filler}\nShe sees the doctor on Thursday.", other="a whale")
        embed_all(database, model)
        (first, *_) = session.search_memories(query="physician appointment").results

    assert first.memory.key == "long"
    assert first.snippet == "She sees the doctor on Thursday."


def test_texts_that_have_nothing_in_common_are_no_match(database, model):
    with serving(database, embed=model.embed_query) as service:
        session = service.session(PUBLIC)
        save(session, run="she runs daily", whale="a blue whale", dog="Bruno barks at the postman")
        embed_all(database, model)

        answer = session.search_memories(query="physician appointment")

    assert answer.semantic
    assert keys(answer) == []


# What is said of it, and how both halves come together.


def test_a_search_says_whether_embeddings_were_compared(service, at):
    save(at(PUBLIC), dog="my dog barks")
    before = at(PUBLIC).search_memories(query="hound").semantic
    embed_all(service.database, Quick())

    assert not before
    assert at(PUBLIC).search_memories(query="hound").semantic
    assert not at(PUBLIC).search_memories(query="hound", tags=["none"]).semantic
    assert not service.session(PUBLIC, agent_id="other").search_memories(query="hound").semantic


def test_what_is_not_embedded_yet_is_found_by_its_words(service, at):
    save(at(PUBLIC), dog="my dog barks")
    embed_all(service.database, Quick())
    save(at(PUBLIC), new="a hound was here")

    assert found(at(PUBLIC), "hound") == ["new", "dog"]


def test_without_an_answer_from_the_embedder_search_uses_words_alone(database):
    with serving(database, embed=quick) as service:
        save(service.session(PUBLIC), dog="my dog barks", hound="a hound was here")
        embed_all(database, Quick())
    with serving(database) as service:
        answer = service.session(PUBLIC).search_memories(query="hound")

    assert (keys(answer), answer.semantic) == (["hound"], False)


def test_words_and_embeddings_add_up(service, at):
    save(at(PUBLIC), both="a hound", word="a hound in a long text about other things", meant="a dog", none="zebra")
    embed_all(service.database, Quick())

    results = at(PUBLIC).search_memories(query="a hound").results

    assert [result.memory.key for result in results] == ["both", "word", "meant"]
    assert [result.score for result in results] == sorted((result.score for result in results), reverse=True)
    assert results[0].score == 1.0


def test_what_is_clearly_most_relevant_leads_although_another_has_a_word_of_the_query(service, at):
    """A word of the query counts for more, unless an embedding fits far better. Scores stay with their places."""
    save(at(PUBLIC), word="the zebra stripes", near="dog car")
    by_words = at(PUBLIC).search_memories(query="hound automobile zebra")
    embed_all(service.database, Quick())

    (first, second) = at(PUBLIC).search_memories(query="hound automobile zebra").results
    alone = at(PUBLIC).search_memories(query="hound automobile zebra", max_results=1)

    assert keys(by_words) == ["word"]
    assert (first.memory.key, second.memory.key) == ("near", "word")
    assert first.relevance >= second.relevance + 0.1
    assert first.score > second.score
    assert keys(alone) == ["near"]


def test_vectors_of_another_embedder_are_not_compared(service, at):
    save(at(PUBLIC), dog="my dog barks")
    embed_all(service.database, Quick())
    with service.database.as_owner() as owner:
        owner.execute("UPDATE muniment_public.meaning SET embedder = 99")
    answer = at(PUBLIC).search_memories(query="hound")

    with connect_operator(service.database.admin) as operator:
        counts = [waiting_chunks(operator)]
        list(reindex(operator.connection))
        counts.append(waiting_chunks(operator))

    assert (keys(answer), answer.semantic) == ([], False)
    assert counts == [(0, 1), (1, 0)]


# Levels.


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_shadowed_version_does_not_resurface_by_its_embedding(service, at, low, high):
    save(at(low), plan="dog")
    save(at(high), plan="zebra")
    embed_all(service.database, Quick())

    assert found(at(high), "hound") == []
    assert found(at(low), "hound") == ["plan"]


def test_shadowed_versions_crowd_out_nothing(service, at):
    """Two hundred are compared: none of them may be one that is not seen."""
    for level, content in ((PUBLIC, "dog"), (INTERNAL, "zebra")):
        save(at(level), **{f"k{number}": content for number in range(205)})
    save(at(PUBLIC), seen="dog and cat")
    embed_all(service.database, Quick())

    assert found(at(INTERNAL), "hound") == ["seen"]


def test_nothing_above_is_found_by_its_embedding(service, at):
    for level in LEVELS:
        save(at(level), **{level.name: "dog"})
    embed_all(service.database, Quick())

    assert {level: sorted(found(at(level), "hound")) for level in LEVELS} == {
        level: sorted(lower.name for lower in LEVELS if lower <= level) for level in LEVELS
    }


@pytest.mark.proof
@pytest.mark.parametrize(
    ("low", "high", "vectors"),
    [
        pytest.param(INTERNAL, RESTRICTED, True, id="vectors"),
        pytest.param(PUBLIC, INTERNAL, False, id="no vectors"),
    ],
)
def test_answers_are_the_same_bytes_whatever_is_above(service, at, low, high, vectors):
    """1,500 higher items full of the query's own words: before they are written, before and after they are embedded."""
    fill(at(low))
    if vectors:
        embed_all(service.database, Quick())
    before = searches(at(low))
    stored = at(high).import_passages(
        *(
            {"content": f"where is the hound dog automobile {number}", "thread": "t" if number % 2 else "u"}
            for number in range(1400)
        ),
        timeout=120,
    )
    for number in range(100):
        at(high).save_memory(key=f"k{number}", content=f"hound dog automobile car {number}", tags=["t1"])
    for number in range(20):
        at(high).add_note(content=f"hound automobile {number}")
    with_waiting = searches(at(low))
    if vectors:
        embed_all(service.database, Quick())

    assert stored.stored_count == 1400
    assert with_waiting == before
    assert searches(at(low)) == before
    assert searches(at(high)) != before


@pytest.mark.proof
def test_semantic_answers_do_not_depend_on_the_plan(database):
    """Bit for bit, whatever way the rows come."""
    with serving(database, embed=quick) as service:
        session = service.session(INTERNAL)
        fill(session, 40)
        fill(service.session(PUBLIC), 10)
        embed_all(database, Quick())
        before = searches(session)

    for scan in SCANS:
        with database.as_admin() as admin:
            admin.execute(f"ALTER DATABASE {database.name} SET enable_{scan} = off".encode())
            with serving(database, embed=quick) as service:
                assert (scan, searches(Caller(service.channel, session.token))) == (scan, before)
            admin.execute(f"ALTER DATABASE {database.name} RESET enable_{scan}".encode())


def test_the_turn_before_a_similar_one_is_found_with_it(service, at):
    """The embedding has its text, too. By words, neither is found."""
    ids = passages(at(PUBLIC), "t", "far away", "not near", "some dog", "far from", "farthest", "far more")
    embed_all(service.database, Quick())

    results = at(PUBLIC).search_passages(query="hound").results
    assert [one.passage.passage_id for one in results] == [ids[2], ids[1], ids[3], ids[4]]


@pytest.mark.parametrize(
    ("authors", "is_raised"),
    [
        (("Bob", "Ann", "Bob"), True),
        (("Ann", "Bob", "Ann"), True),
        (("Bob", "Cid", "Bob"), False),  # the query names neither
    ],
)
def test_a_similar_turn_raises_the_turn_before_an_interruption(service, at, authors, is_raised):
    """Above the notes, which match by their author's name alone."""
    at(PUBLIC).import_passages(*({"content": f"note {number}", "author": "Ann"} for number in range(60)))
    at(PUBLIC).store_passage(content="nothing but a whale")
    first, *_ = [
        at(PUBLIC)
        .store_passage(content=text, thread="t", author=author, event_time={"seconds": 1_000_000_000 + number})
        .passage.passage_id
        for number, (author, text) in enumerate(zip(authors, ("far away", "not near", "some dog"), strict=True))
    ]
    # Without the name, which the query has, too.
    embed_all(service.database, Quick(lambda text: quick(text.replace("Ann", "she"))))

    results = at(PUBLIC).search_passages(query="whale hound Ann", max_results=100).results
    whale, *turns, fourth = results[:4]
    assert whale.passage.content == "nothing but a whale"
    assert {one.passage.content for one in turns} == {"not near", "some dog"}
    assert (fourth.passage.passage_id == first) is is_raised


# Filters, and how many are looked at.


@pytest.mark.proof
def test_filters_are_applied_before_any_limit(service, at):
    """1,100 that are more alike do not crowd out the three that are asked for."""
    at(PUBLIC).import_passages(
        *({"content": "dog", "tags": ["other"], "thread": f"x{number}"} for number in range(1100)),
        timeout=120,
    )
    wanted = [
        at(PUBLIC).store_passage(content=f"dog and {word}", tags=["wanted"], thread="w").passage.passage_id
        for word in ("cat", "cow", "hen")
    ]
    embed_all(service.database, Quick())
    search = at(PUBLIC).search_passages

    for fields in ({"tags": ["wanted"]}, {"tags": ["wanted"], "tag_match": ANY}, {"thread": "w"}):
        results = search(query="hound", **fields).results
        assert sorted(result.passage.passage_id for result in results) == sorted(wanted)
    assert len(search(query="hound", max_results=50).results) == 50


# What is gone.


def rows(database, statement):
    with database.as_owner() as owner:
        return [tuple(row) for row in owner.execute(statement.encode()).fetchall()]


def test_deleting_an_item_deletes_its_vectors(service, at):
    save(at(PUBLIC), kept="dog", gone="dog " * 400, over="dog")
    passage = at(PUBLIC).store_passage(content="dog").passage.passage_id
    embed_all(service.database, Quick())
    at(PUBLIC).delete_memory(key="gone")
    at(PUBLIC).delete_passage(passage_id=passage)
    save(at(PUBLIC), over="zebra")

    left = rows(service.database, "SELECT name, embedder FROM muniment_public.meaning ORDER BY name")

    assert left == [("kept", 1), ("over", None)]


def test_an_agent_that_is_deleted_leaves_no_vector(service, at):
    save(at(PUBLIC), dog="dog")
    passages(at(RESTRICTED), "t", "dog", "barks")
    embed_all(service.database, Quick())
    service.host().delete_agent(agent_id="alice")
    erase_all(service.database)

    assert rows(service.database, "SELECT 1 FROM muniment_public.meaning") == []
    assert rows(service.database, "SELECT 1 FROM muniment_restricted.meaning") == []


def test_a_turn_is_embedded_with_the_previous_one_until_that_is_deleted(service, at):
    first, second, _ = passages(at(PUBLIC), "t", "Where do you live?", "In Kochi", "By the sea", author="Anu")
    before, after = Quick(), Quick()
    embed_all(service.database, before)
    at(PUBLIC).delete_passage(passage_id=first)
    waiting = rows(service.database, "SELECT name, signs, vector FROM muniment_public.meaning WHERE embedder IS NULL")
    embed_all(service.database, after)

    assert sorted(before.chunks) == [
        "Anu: In Kochi\nAnu: By the sea", "Anu: Where do you live?", "Anu: Where do you live?\nAnu: In Kochi",
    ]  # fmt: skip
    assert waiting == [(second, None, None)]
    assert after.chunks == ["Anu: In Kochi"]


def test_a_turn_is_not_embedded_with_one_that_is_being_deleted(service, at):
    (first,) = passages(at(PUBLIC), "t", "my secret")
    later = {"thread": "t", "event_time": {"seconds": 1_000_000_001}}
    with ThreadPoolExecutor(1) as pool, service.database.as_owner() as owner:
        with owner.transaction():
            owner.execute("UPDATE muniment_public.item SET delete_time = now() WHERE name = %s", [first])
            owner.execute("DELETE FROM muniment_public.chunk WHERE name = %s", [first])
            storing = pool.submit(at(PUBLIC).store_passage, content="and so on", **later)
            wait([storing], timeout=0.5)
            was_waiting = not storing.done()
        storing.result()

    assert was_waiting
    assert rows(service.database, "SELECT prior FROM muniment_public.meaning") == [(None,)]


def test_a_turn_is_not_embedded_with_one_that_expires_is_long_or_at_another_level(service, at):
    expiring = {"expire_time": {"seconds": 4_000_000_000}}
    passages(at(PUBLIC), "one", "of public")
    passages(at(INTERNAL), "one", "of internal", start=1_000_000_001)
    passages(at(PUBLIC), "two", "expires", **expiring)
    passages(at(PUBLIC), "two", "stays", start=1_000_000_001)
    passages(at(PUBLIC), "three", "long. " * 200)
    passages(at(PUBLIC), "three", "short", start=1_000_000_001)
    model = Quick()
    embed_all(service.database, model)

    assert [text for text in model.chunks if "\n" in text] == []


def test_the_text_of_an_expired_item_is_embedded_by_the_built_in_model(service, at):
    """That model is part of the server. For a model at an address, the text is empty."""
    at(PUBLIC).save_memory(key="old", content="an old cat", expire_time=in_future(hours=1))
    Clock(service.database).advance(hours=2)
    model = Quick()
    embed_all(service.database, model)

    assert model.chunks == ["old: an old cat"]


# What changes while a search is at it.


@pytest.fixture
def meanwhile(monkeypatch):
    """What is to happen once, between the statement that compares embeddings and the one that reads what was found."""
    acts: list[Callable[[], object]] = []
    compare = search._similar

    def compare_and_wait(*arguments):
        found = compare(*arguments)
        while acts:
            acts.pop()()
        return found

    monkeypatch.setattr(search, "_similar", compare_and_wait)
    return acts.append


def test_what_was_replaced_after_it_was_compared_is_no_match(service, at, meanwhile):
    """The new text was never compared: it must not be shown as what was meant."""
    save(at(PUBLIC), plan="dog", other="dog and cat")
    embed_all(service.database, Quick())
    meanwhile(lambda: save(service.session(PUBLIC), plan="zebra"))

    assert found(at(PUBLIC), "hound") == ["other"]


def test_what_was_replaced_after_it_was_compared_is_found_by_its_words(service, at, meanwhile):
    save(at(PUBLIC), plan="dog", other="one hound")
    embed_all(service.database, Quick())
    meanwhile(lambda: save(service.session(PUBLIC), plan="a hound and a zebra"))
    results = at(PUBLIC).search_memories(query="hound").results

    assert {result.memory.key: result.snippet for result in results} == {
        "plan": "a hound and a zebra", "other": "one hound"
    }  # fmt: skip


@pytest.mark.parametrize(("low", "high"), [(PUBLIC, INTERNAL), (INTERNAL, RESTRICTED)])
def test_what_was_deleted_after_it_was_compared_is_no_match(service, at, meanwhile, low, high):
    """Nor is the lower version that is seen again."""
    save(at(low), plan="zebra")
    save(at(high), plan="dog", gone="dog")
    embed_all(service.database, Quick())

    def delete():
        for key in ("plan", "gone"):
            service.session(high).delete_memory(key=key)

    meanwhile(delete)

    assert found(at(high), "hound") == []


@pytest.mark.parametrize(("low", "high"), [(PUBLIC, INTERNAL), (INTERNAL, RESTRICTED)])
def test_what_was_shadowed_after_it_was_compared_is_no_match(service, at, meanwhile, low, high):
    save(at(low), plan="dog")
    embed_all(service.database, Quick())
    meanwhile(lambda: save(service.session(high), plan="zebra"))

    assert found(at(high), "hound") == []
    assert found(at(low), "hound") == ["plan"]


def test_the_audit_counts_what_is_shown_of_what_was_compared(service, at, meanwhile):
    save(at(RESTRICTED), plan="dog")
    embed_all(service.database, Quick())
    meanwhile(lambda: save(service.session(RESTRICTED), plan="zebra"))
    found(at(RESTRICTED), "hound")

    counted = "SELECT result_count, item_id FROM muniment_restricted.audit WHERE method = 'SearchMemories'"
    assert rows(service.database, counted) == [(0, None)]


# The embedder at its work.


def test_the_lowest_level_is_always_first(service, at):
    """Also when something comes in below while a higher level is at it: after the batch in hand."""

    def answer(text):
        if text == "k0: high":
            save(at(PUBLIC), late="low")
        return quick(text)

    save(at(RESTRICTED), **{f"k{number}": "high" for number in range(40)})
    save(at(INTERNAL), early="low")
    model = Quick(answer)
    embed_all(service.database, model)

    assert model.chunks[0] == "early: low"
    assert model.chunks.index("late: low") <= 1 + 16
    assert len(model.chunks) == 42


def test_a_higher_level_gets_a_batch_after_a_few_lower_ones(service, at):
    save(at(PUBLIC), **{f"k{number}": "low" for number in range(100)})
    save(at(INTERNAL), **{f"k{number}": "middle" for number in range(20)})
    save(at(RESTRICTED), one="high")
    model = Quick()
    embed_all(service.database, model)
    levels = [text.split(": ")[1] for text in model.chunks]

    assert levels[: 4 * 16] == ["low"] * 4 * 16
    assert levels[4 * 16 : 6 * 16] == ["middle"] * 16 + ["low"] * 16
    assert len(levels) == 121


def test_the_agents_of_a_level_are_served_in_turn(service, at):
    save(at(PUBLIC), **{f"k{number}": "many" for number in range(60)})
    save(service.session(PUBLIC, agent_id="other"), **{f"k{number}": "few" for number in range(20)})
    model = Quick()
    embed_all(service.database, model)
    agents = [text.split(": ")[1] for text in model.chunks]

    assert agents[:32] in (["many"] * 16 + ["few"] * 16, ["few"] * 16 + ["many"] * 16)  # their numbers are random
    assert len(agents) == 80


def test_no_text_takes_long(model):
    """2,000 characters of Han, each a token of its own, took six seconds."""
    text = "".join(chr(0x4E00 + 97 * number % 20_000) for number in range(2000))
    before = time.process_time()
    model.embed_query(text)
    query = time.process_time()
    model.embed_chunk(text)
    chunk = time.process_time()

    assert query - before < 1
    assert chunk - query < 2


def test_the_beginning_of_a_long_query_and_the_end_of_a_long_chunk_are_embedded(model):
    """The end: there a turn stands, after the one before it."""
    filler = "".join(chr(0x4E00 + 97 * number % 20_000) for number in range(900))

    assert model.embed_query(f"whale{filler}") != model.embed_query(f"tea{filler}")
    assert model.embed_query(f"{filler}whale") == model.embed_query(f"{filler}tea")
    assert model.embed_chunk(f"{filler}whale") != model.embed_chunk(f"{filler}tea")
    assert model.embed_chunk(f"whale{filler}") == model.embed_chunk(f"tea{filler}")


@pytest.mark.proof
def test_an_embedding_does_not_depend_on_what_else_is_embedded(model):
    """To the bit: one embedder serves all levels, so what it keeps of one text must not show in another's vector."""
    texts = ["tea", "The launch is on Friday. " * 30, "\u7f8e" * 200, "", "x", "\ufdfa" * 300]
    alone = [(Model().embed_query(text), Model().embed_chunk(text)) for text in texts]
    other = ["a secret of another level", "\u0bf8" * 500, "tea " * 2000]

    def with_others(number):
        model.embed_chunk(other[number % 3])
        return model.embed_query(texts[number % 6]), model.embed_chunk(texts[number % 6])

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(with_others, range(18))) == alone * 3


@pytest.mark.parametrize("label", Label)
def test_at_one_label_the_embedder_reads_that_label_only(service, at, label):
    for each in Label:
        save(at(each), **{each.name: "text"})
        passages(at(each), "t", f"first {each.name}", f"second {each.name}")
    model = Quick()
    roles = RoleDatabase(service.database.conninfo, pool_sizes=SINGLE)
    with service.database.connect(label.role) as connection:
        while embed_batch(connection, model.embed_chunk, START):
            pass
    roles.close()

    assert len(model.chunks) == 3
    assert {word.rstrip(":") for text in model.chunks for word in text.split() if word.isupper()} == {label.name}


def test_what_is_deleted_while_it_is_embedded_gets_no_vector(service, at):
    first, second = passages(at(PUBLIC), "t", "my secret", "and so on")

    def answer(text):
        if text == "my secret\nand so on":
            at(PUBLIC).delete_passage(passage_id=first)
        return quick(text)

    model = Quick(answer)
    for _ in range(2):
        embed_all(service.database, model)

    assert model.chunks[-1] == "and so on"
    assert rows(service.database, "SELECT name, embedder FROM muniment_public.meaning") == [(second, 1)]


def test_what_is_found_by_its_embedding_does_not_end_the_search_by_words(service, at, monkeypatch):
    """The rarest word, which is looked for first, has no match that passes the filter."""
    monkeypatch.setattr(ranking, "MAX_FIRST", 2)
    for number in range(4):
        at(PUBLIC).save_memory(key=f"quartz{number}", content=f"quartz {number}", tags=["other"])
    for number in range(6):
        at(PUBLIC).save_memory(key=f"invoice{number}", content=f"the invoice of account {number}", tags=["wanted"])
        at(PUBLIC).save_memory(key=f"dog{number}", content=f"dog {number}", tags=["wanted"])
    embed_all(service.database, Quick())

    answer = at(PUBLIC).search_memories(query="quartz invoice hound", tags=["wanted"], max_results=5)

    assert answer.semantic
    assert {key.rstrip("0123456789") for key in keys(answer)} == {"invoice"}


# What fails.


@pytest.mark.parametrize(("failing", "other"), [(PUBLIC, INTERNAL), (INTERNAL, PUBLIC)])
def test_other_levels_continue_after_an_unexpected_error(service, at, caplog, monkeypatch, failing, other):
    """At once. It is logged without what it says: that may quote a text."""
    made = embedding_queue._embedded

    def failing_for_one(chunk, vector):
        if "secret" in chunk.text:
            raise psycopg.DataError(chunk.text)
        return made(chunk, vector)

    def embedded(level):
        return rows(service.database, f"SELECT embedder FROM {untrusted(level).role}.meaning")

    monkeypatch.setattr(embedding_queue, "_embedded", failing_for_one)
    with closing(RoleDatabase(service.database.conninfo, pool_sizes=SINGLE)) as database:
        turns = EmbeddingSchedule(Databases.of_one(database), quick)
        save(at(failing), waits="my secret")
        embed_queued_chunks(turns, Disk(None), StopSignal())
        save(at(other), dog="dog")
        embed_queued_chunks(turns, Disk(None), StopSignal())

    assert (embedded(failing), embedded(other)) == ([(None,)], [(1,)])
    assert "DataError" in caplog.text
    assert "embed_batch" in caplog.text
    assert "secret" not in caplog.text


def test_chunks_that_are_locked_keep_no_level_waiting(service, caplog, monkeypatch):
    """A deletion at a higher level locks its chunks until it ends. The one thread that embeds does not wait for it."""
    monkeypatch.setattr(embedder._Pause, "first", 3600.0)
    embedded = []

    def vector(text):
        embedded.append(text)
        if len(embedded) == 1:
            save(service.session(PUBLIC), low="dog")
            lock_rows(deleting, "muniment_confidential.meaning")
        return quick(text)

    with closing(RoleDatabase(service.database.conninfo, pool_sizes=SINGLE)) as database:
        schedule = EmbeddingSchedule(Databases.of_one(database), vector)
        save(service.session(CONFIDENTIAL), high="cat")
        with service.database.as_owner() as deleting, deleting.transaction():
            for _ in range(2):
                embed_queued_chunks(schedule, Disk(None), StopSignal())
        while_locked = list(embedded)
        schedule._pauses.clear()
        embed_queued_chunks(schedule, Disk(None), StopSignal())

    assert while_locked == ["high: cat", "low: dog"]
    assert embedded == ["high: cat", "low: dog", "high: cat"]
    assert caplog.messages == []
    assert rows(service.database, "SELECT embedder FROM muniment_confidential.meaning") == [(1,)]
