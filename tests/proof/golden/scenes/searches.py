"""Searches by words and by embeddings, with their scores."""

from __future__ import annotations

from collections.abc import Iterable

from tests.proof.golden.contract import LEVELS, PUBLIC
from tests.proof.golden.stage import Actor, Stage

ALL, ANY = 1, 2
_TEXTS = {
    "whale": "A blue whale sings in the cold sea. The whale is large.",
    "dog": "The dog barks at the postman every morning.",
    "car": "She drives a red car to work.",
    "run": "She runs daily, and was running when it rained.",
    "plan": "It's C++: 100% user-name, snake_case",
    "tamil": "என் நினைவு நல்லது",
    "german": "Die Häuser sind groß und grün",
    "chinese": "我昨天在北京吃了烤鸭",
    "long": " ".join(f"word{number}" for number in range(60)) + " needle " + "hay " * 100,
}
_BY_WORDS = (
    "whale", "whales sing zebra", "running", "C++ 100%", "நினைவு", "needle", "is it the", "?", "January 2030",
)  # fmt: skip
_SEMANTIC = ("hound", "automobile whale", "of level", "நினைவு", "hay")


def searches(stage: Stage) -> None:
    stage.host().create_agent(agent_id="alice", language="en", memory_settings={"memory_char_limit": 100_000})
    sessions = stage.levels()
    for session in sessions.values():
        session.search_memories(query="whale")
        session.search_notes(query="whale")
        session.search_passages(query="whale")
        _fill(session)
    stage.say("By words")
    for session in sessions.values():
        _asked(session, _BY_WORDS)
        _filtered(session)
        _refused(session)
    _semantic(stage, sessions)
    _other_languages(stage)


def _fill(session: Actor) -> None:
    for number, (name, text) in enumerate(_TEXTS.items()):
        if (number + session.level) % 3 == 0:
            continue
        content = f"{text} Level {session.level}."
        session.save_memory(key=f"{name}{number % 2 * session.level or ''}", content=content, tags=[f"t{number % 3}"])
        session.add_note(content=content, tier=1 + number % 2 if name != "long" else 1)
        session.store_passage(
            content=content,
            thread=f"thread {number % 2}",
            tags=[f"t{number % 3}", f"l{session.level}"],
            author="Ann" if number % 2 else "",
            event_time={"seconds": 1_700_000_000 + 86_400 * number},
        )


def _asked(session: Actor, queries: Iterable[str]) -> None:
    for query in queries:
        for rpc in ("SearchMemories", "SearchNotes", "SearchPassages"):
            session.call(rpc, query=query, max_results=3)


def _filtered(session: Actor) -> None:
    session.search_memories(query="whale dog car", max_results=1)
    session.search_memories(query="whale dog car", max_results=1000, tags=["t0"])
    session.search_memories(query="whale dog car", tags=["t0", "t1"], tag_match=ALL)
    session.search_memories(query="whale dog car", tags=["t0", "t1"], tag_match=ANY)
    session.search_notes(query="whale dog car", tier=2)
    session.search_passages(query="whale dog car", thread="thread 1", tags=["t1", "t2"], tag_match=ANY)
    session.search_passages(query="whale dog car", start_time={"seconds": 1_700_086_400})
    session.search_passages(query="whale dog car", end_time={"seconds": 1_700_086_400}, tags=["l1"])


def _refused(session: Actor) -> None:
    for rpc in ("SearchMemories", "SearchNotes", "SearchPassages"):
        session.call(rpc)
        session.call(rpc, query=" \0")
        session.call(rpc, query="x" * 1025, max_results=-1)
    session.search_memories(query="x", tags=[""], tag_match=3)
    session.search_passages(query="x", thread="x" * 257)
    session.search_passages(query="x", start_time={"seconds": 10**13}, tags=["a\0"])
    session.search_notes(query="x", tier=3)


def _semantic(stage: Stage, sessions: dict[int, Actor]) -> None:
    stage.say("By meaning, while no item has a vector")
    stage.stand.set_query_embeddings(True)
    _asked(sessions[PUBLIC], _SEMANTIC[:2])
    stage.say("By meaning, when all have")
    stage.stand.embed()
    for session in sessions.values():
        _asked(session, _SEMANTIC)
        _filtered(session)
    sessions[PUBLIC].save_memory(key="dog", content="Now of a cat.")
    sessions[PUBLIC].delete_memory(key="whale")
    for session in sessions.values():
        session.search_memories(query="hound")
        session.search_memories(query="whale")
    stage.stand.set_query_embeddings(False)


def _other_languages(stage: Stage) -> None:
    for language in ("de", "ta", "zh", ""):
        agent = f"speaks-{language or 'none'}"
        stage.say(f"An agent with the language {language or 'none'}")
        stage.host().create_agent(agent_id=agent, language=language)
        session = stage.open(PUBLIC, agent)
        for name, text in _TEXTS.items():
            session.save_memory(key=name, content=text)
        for query in ("Haus", "Häuser", "running", "நினைவு", "北京 烤鸭"):
            session.search_memories(query=query)
    stage.host().update_agent(agent_id="speaks-none", language="de")
    session = stage.open(PUBLIC, "speaks-none")
    session.save_memory(key="german", content=_TEXTS["german"] + ".")
    session.search_memories(query="Haus")
    for level in LEVELS:
        stage.open(level, "speaks-none").search_memories(query="Haus")
