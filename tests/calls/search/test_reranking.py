"""Searches that a reranker at an address orders, through the service: what is sent, and what becomes of the answer.

The stub prefers texts with more exclamation marks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import grpc
import pytest

from muniment_server.domain.classification import Classification, Label
from muniment_server.embedder import socket as embedder_socket
from muniment_server.embedder.remote import reranking_service as remote_reranking
from muniment_server.embedder.remote.configuration import RerankerConfig
from muniment_server.embedder.remote.reranking_service import reranking
from muniment_server.embedder.socket import reranker
from muniment_server.search import search
from muniment_server.search.reranking import LabeledText
from muniment_server.search.snippets import SNIPPET_CHARS
from tests.proof.noninterference.mutants.damage import as_restricted
from tests.proof.noninterference.mutants.scheme import Mutant, Patch, applied, setting
from tests.support.answers import CONFIDENTIAL, INTERNAL, LEVELS, PUBLIC, RESTRICTED, keys
from tests.support.model_server import answer_body
from tests.support.model_worlds import ModelWorld
from tests.support.reranking_server import RerankingServer, answer_scores, rerank_well, reranking_server
from tests.support.searches import passages
from tests.support.services import serving

pytestmark = pytest.mark.usefixtures("more_time")


class World(ModelWorld[RerankingServer]):
    """A server with a reranker."""

    def search(self, level: Classification, query: str = "cat", **fields):
        return self.at(level).search_memories(query=query, **fields)

    def found(self, level: Classification, query: str = "cat", **fields) -> list[str]:
        return keys(self.search(level, query, **fields))


@contextmanager
def world_of(database, folder, server, ceiling) -> Iterator[World]:
    path = str(folder / "e")
    with (
        reranking(server.config(ceiling), server.reranker(ceiling), path),
        serving(database, reranker=reranker(path, ceiling)) as service,
    ):
        yield World(service, server)


@pytest.fixture
def server():
    with reranking_server() as server:
        yield server


@pytest.fixture
def one_turn(monkeypatch):
    """One search of each level is reranked at a time."""
    monkeypatch.setattr(remote_reranking, "_AT_ONCE", 1)


@pytest.fixture
def world(database, tmp_path, server):
    """A world whose ceiling is INTERNAL."""
    with world_of(database, tmp_path, server, INTERNAL) as world:
        yield world


def fill(world):
    """At each level a better and a worse match: the stub prefers the worse one."""
    for level in LEVELS:
        world.at(level).save_memory(key=f"a-{level.name}", content=f"cat cat cat {level.name}")
        world.at(level).save_memory(key=f"b-{level.name}", content=f"cat in a text about other things {level.name}!")


def unranked(world, level, **fields) -> list[str]:
    """What the same search finds on a server without a reranker."""
    with serving(world.service.database) as service:
        return keys(service.session(level, agent_id="alice").search_memories(query="cat", **fields))


# What is sent.


def no_text_above_the_ceiling_is_ever_sent(world):
    fill(world)
    for level in LEVELS:
        passages(world.at(level), "t", f"first cat {level.name}", f"second cat {level.name}")
        world.at(level).add_note(content=f"cat note {level.name}")
        world.at(level).add_note(content=f"another cat note {level.name}")
        world.search(level, f"cat query at {level.name}")
        world.at(level).search_passages(query=f"cat where at {level.name}")
        world.at(level).search_notes(query=f"cat note at {level.name}")

    assert world.received_levels() == [PUBLIC, INTERNAL]
    for text in ("cat cat cat PUBLIC", "second cat INTERNAL", "another cat note INTERNAL", "query at INTERNAL"):
        assert text in world.received()


def test_no_text_above_the_ceiling_is_ever_sent(world):
    """Neither what is stored there, nor a query of a session there, not even what it found below."""
    no_text_above_the_ceiling_is_ever_sent(world)


def what_a_broken_view_shows_is_not_sent(world):
    fill(world)
    with world.service.database.as_admin() as admin:
        for view in ("visible", "visible_chunk"):
            for statement in as_restricted(view):
                admin.execute(statement)
    with pytest.raises(grpc.RpcError):  # the guard of what leaves refuses the answer
        world.search(PUBLIC)

    assert world.server.requests == []


def test_what_a_broken_view_shows_is_not_sent(world):
    """The level of each match is compared with the ceiling, too, not the session's alone."""
    what_a_broken_view_shows_is_not_sent(world)


def test_a_match_is_sent_as_its_best_chunk_after_its_key_or_author(world):
    world.at(PUBLIC).save_memory(key="pets", content="First. " * 200 + "The cat sleeps. " + "Last. " * 200)
    world.at(PUBLIC).save_memory(key="cat", content="cat")
    world.search(PUBLIC)
    passages(world.at(PUBLIC), "t", "A cat!", "Which cat?", author="Ada")
    world.at(PUBLIC).search_passages(query="cat")
    (_, memories), (_, turns) = world.server.asked

    assert memories[0] == "cat: cat"
    assert memories[1].startswith("pets: ")
    assert "The cat sleeps." in memories[1]
    assert len(memories[1]) < 620
    assert sorted(turns) == ["Ada: A cat!", "Ada: Which cat?"]


def test_one_match_alone_is_not_sent(world):
    world.at(PUBLIC).save_memory(key="cat", content="cat")
    answer = world.search(PUBLIC)

    assert (keys(answer), answer.reranked) == (["cat"], False)
    assert world.server.requests == []


# What becomes of the answer.


def test_up_to_the_ceiling_searches_are_reranked_and_say_so(world):
    fill(world)
    answers = {level: world.search(level) for level in LEVELS}

    assert {level: answer.reranked for level, answer in answers.items()} == {
        PUBLIC: True, INTERNAL: True, CONFIDENTIAL: False, RESTRICTED: False,
    }  # fmt: skip
    assert keys(answers[PUBLIC]) == ["b-PUBLIC", "a-PUBLIC"]
    assert sorted(keys(answers[INTERNAL])[:2]) == ["b-INTERNAL", "b-PUBLIC"]
    assert keys(answers[CONFIDENTIAL])[0].startswith("a-")


def test_notes_and_passages_are_reranked(world):
    session = world.at(PUBLIC)
    for text in ("cat cat cat", "a cat among many other words!"):
        session.add_note(content=text)
    passages(session, "t", "cat cat cat", "a cat among many other words!")
    notes, turns = session.search_notes(query="cat"), session.search_passages(query="cat")

    assert (notes.reranked, turns.reranked) == (True, True)
    assert notes.results[0].note.content == turns.results[0].passage.content == "a cat among many other words!"


def test_fifty_matches_are_reranked_and_the_limit_is_kept(world):
    session = world.at(PUBLIC)
    for number in range(80):
        session.save_memory(key=f"k{number:02}", content="cat " + "other " * number)
    session.save_memory(key="k30", content="cat " + "other " * 30 + "best!")
    session.save_memory(key="k70", content="cat " + "other " * 70 + "beyond!!")
    before = unranked(world, PUBLIC, max_results=80)
    few, many = world.found(PUBLIC, max_results=5), world.found(PUBLIC, max_results=80)
    asked = [len(texts) for _, texts in world.server.asked]

    assert asked == [50, 50]
    assert before.index("k30") < 50 <= before.index("k70")
    assert few == ["k30", *before[:4]]
    assert many == ["k30", *(key for key in before if key != "k30")]


def test_scores_still_fall_and_snippets_belong_to_their_items(world):
    session = world.at(PUBLIC)
    session.save_memory(key="a", content="cat cat")
    session.save_memory(key="b", content="filler " * 100 + "the cat of b!! " + "filler " * 100)
    session.save_memory(key="c", content="some cat of c!")
    results = world.search(PUBLIC).results
    scores = [result.score for result in results]

    assert [result.memory.key for result in results] == ["b", "c", "a"]
    assert scores == sorted(scores, reverse=True)
    assert "the cat of b!!" in results[0].snippet
    assert all(len(result.snippet) <= SNIPPET_CHARS for result in results)


def test_texts_that_are_equally_good_stay_in_the_order_of_search(world):
    fill(world)
    world.server.answer = lambda handler, _, texts: answer_scores(handler, [0.5] * len(texts))
    answer = world.search(INTERNAL)

    assert (keys(answer), answer.reranked) == (unranked(world, INTERNAL), True)


def test_a_read_is_audited_with_what_is_returned(database, tmp_path, server):
    """And not with all that was reranked."""
    with world_of(database, tmp_path, server, RESTRICTED) as world:
        session = world.at(CONFIDENTIAL)
        for number in range(20):
            session.save_memory(key=f"k{number}", content="cat")
        found = world.search(CONFIDENTIAL, max_results=3)
        (event,) = [
            event
            for event in world.service.host().list_audit_events(agent_id="alice").audit_events
            if event.method.endswith("SearchMemories")
        ]

    assert (len(found.results), found.reranked, event.result_count) == (3, True, 3)


def a_search_up_to_the_ceiling_is_the_same_whatever_is_above(world):
    for level in (PUBLIC, INTERNAL):
        for number in range(4):
            world.at(level).save_memory(
                key=f"{level.name}{number}", content="cat " * number + "cat" + "!" * (number % 3)
            )

    def answers():
        return [world.search(level).SerializeToString(deterministic=True) for level in (PUBLIC, INTERNAL)]

    before = answers()
    for level in (CONFIDENTIAL, RESTRICTED):
        for number in range(60):
            world.at(level).save_memory(key=f"PUBLIC{number}", content="cat !!!")
        world.search(level)

    assert answers() == before


def test_a_search_up_to_the_ceiling_is_the_same_whatever_is_above(world):
    a_search_up_to_the_ceiling_is_the_same_whatever_is_above(world)


# Failures.


@pytest.mark.parametrize(
    "answer",
    [
        lambda handler, *_: answer_body(handler, b"secrets", 503),
        lambda handler, *_: answer_body(handler, b"<secrets>"),
        lambda handler, *_: answer_scores(handler, [1.0]),
        lambda handler, *_: answer_body(handler, b'[{"index": 0, "score": 1}, {"index": 0, "score": 2}]'),
    ],
    ids=["away", "not JSON", "too few", "doubled"],
)
def test_a_reranker_that_fails_leaves_the_order_and_one_line_in_the_log(world, answer, caplog):
    fill(world)
    world.server.answer = answer
    found = again = world.search(PUBLIC)
    sent = 0
    while len(world.server.requests) > sent:  # until a search falls into the pause
        sent = len(world.server.requests)
        again = world.search(PUBLIC)
    lines = [message for message in caplog.messages if "not reranked" in message]

    assert keys(found) == keys(again) == ["a-PUBLIC", "b-PUBLIC"]
    assert not found.reranked
    assert not again.reranked
    assert len(lines) == 1
    assert "secrets" not in caplog.text
    assert "cat" not in caplog.text


@pytest.mark.parametrize("drips", [False, True])
def test_a_slow_reranker_costs_a_search_little_and_leaves_the_order(world, monkeypatch, drips):
    monkeypatch.setattr(embedder_socket, "_RERANKING_SECONDS", 0.3)
    fill(world)
    ended = threading.Event()

    def answer(handler, *_):
        while drips and not ended.wait(0.02):
            handler.wfile.write(b"H")
        ended.wait(20)

    world.server.answer = answer
    before = time.monotonic()
    found = world.search(PUBLIC)
    took = time.monotonic() - before
    ended.set()

    assert (keys(found), found.reranked) == (["a-PUBLIC", "b-PUBLIC"], False)
    assert took < 10  # much less than the reranker takes


def hanging(ended: threading.Event):
    """Answer a slow query with an error, when the test has *ended* it, and any other well."""

    def answer(handler, query, texts):
        if "slow" in query:
            ended.wait(20)
            answer_body(handler, b"", 503)
        else:
            rerank_well(handler, query, texts)

    return answer


def test_a_search_whose_reranking_is_always_late_stops_no_others(world, monkeypatch):
    fill(world)
    ended = threading.Event()
    world.server.answer = hanging(ended)
    with monkeypatch.context() as hurried:
        hurried.setattr(embedder_socket, "_RERANKING_SECONDS", 1.0)
        late = [world.search(PUBLIC, "cat slow").reranked for _ in range(3)]
    in_time = world.search(PUBLIC, "cat").reranked
    ended.set()

    assert (late, in_time) == ([False] * 3, True)


def test_without_the_process_that_sends_the_order_stays(database, tmp_path):
    with serving(database, reranker=reranker(str(tmp_path / "absent"), RESTRICTED)) as service:
        world = World(service, RerankingServer())
        fill(world)
        answer = world.search(PUBLIC)

    assert (keys(answer), answer.reranked) == (["a-PUBLIC", "b-PUBLIC"], False)


def a_level_waits_neither_for_the_searches_of_another_nor_for_its_failures(world):
    """Many searches of a higher level hang, and one has failed."""
    fill(world)
    ended = threading.Event()
    world.server.answer = hanging(ended)
    high = [threading.Thread(target=world.found, args=(INTERNAL, f"cat slow {number}")) for number in range(12)]
    for thread in high:
        thread.start()
    while not world.server.requests:
        time.sleep(0.01)
    found = [world.search(PUBLIC).reranked for _ in range(3)]
    were_hanging = all(thread.is_alive() for thread in high)
    ended.set()
    for thread in high:
        thread.join()
    found.append(world.search(PUBLIC).reranked)

    assert found == [True] * 4
    assert were_hanging


@pytest.mark.usefixtures("one_turn")
def test_a_level_waits_neither_for_the_searches_of_another_nor_for_its_failures(world):
    a_level_waits_neither_for_the_searches_of_another_nor_for_its_failures(world)


def test_what_is_under_way_at_a_level_is_bounded(world, monkeypatch):
    monkeypatch.setattr(embedder_socket, "_RERANKING_SECONDS", 0.3)
    fill(world)
    ended, running, most, lock = threading.Event(), 0, 0, threading.Lock()

    def answer(handler, query, texts):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        ended.wait(20)
        with lock:
            running -= 1

    world.server.answer = answer
    threads = [threading.Thread(target=world.found, args=(PUBLIC,)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended.set()

    assert 1 <= most <= 4


# Guards, broken.

_LABELED = search._labeled
_ALL_LEVELS = setting(RerankerConfig, "levels", property(lambda _: tuple(Label)))
_SENDS_ALL = setting(Classification, "can_flow_to", lambda *_: True)
_ALL_PUBLIC = setting(search, "_labeled", lambda *found: LabeledText(Label.PUBLIC, _LABELED(*found).text))
_ONE_SOCKET = setting(embedder_socket, "reranker_socket", lambda path, _: f"{path}.r1")
_BROKEN: Mapping[str, tuple[Callable[[World], None], tuple[Patch, ...]]] = {
    "there is no ceiling for sessions": (no_text_above_the_ceiling_is_ever_sent, (_ALL_LEVELS, _SENDS_ALL)),
    "there is no ceiling for texts": (what_a_broken_view_shows_is_not_sent, (_ALL_PUBLIC,)),
    "all levels share the turns of one": (
        a_level_waits_neither_for_the_searches_of_another_nor_for_its_failures,
        (_ONE_SOCKET,),
    ),
}


@pytest.mark.proof
@pytest.mark.usefixtures("one_turn")
@pytest.mark.parametrize("name", _BROKEN)
def test_a_guard_that_is_missing_is_noticed(request, name):
    noticed_by, patches = _BROKEN[name]
    with applied(Mutant(name, "", patches)):
        world = request.getfixturevalue("world")
        with pytest.raises(AssertionError):
            noticed_by(world)
