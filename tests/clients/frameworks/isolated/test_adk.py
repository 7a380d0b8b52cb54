"""The memory services for Google's ADK: its own runner and its own service, beside ours."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.adk.agents import LlmAgent
from google.adk.cli.service_registry import get_service_registry, load_services_module
from google.adk.events.event import Event
from google.adk.memory import BaseMemoryService, InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools import load_memory
from google.genai.types import Content, FunctionCall, Part

import muniment
from muniment import Classification, HostClient, ImportCounts, NewPassage, SessionClient
from muniment.adk import MunimentMemoryService, MunimentSharedMemoryService
from tests.clients.frameworks.forgery import assert_no_model_can_forge
from tests.clients.frameworks.isolated.readme import block, names_of
from tests.clients.frameworks.worlds import Calls, leaking, seen_below

pytestmark = pytest.mark.anyio

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
ADA = {"app_name": "tea", "user_id": "ada"}
BOB = {"app_name": "tea", "user_id": "bob"}
BESIDE = {"app_name": "te", "user_id": "aada"}


def event(text: str, author: str = "user", number: int = 1) -> Event:
    content = Content(parts=[Part(text=text)] if text else [])
    return Event(id=f"event {number}", author=author, timestamp=1_700_000_000.0 + number, content=content)


def conversation(*texts: str, id: str = "one", user_id: str = "ada") -> Session:
    events = [event(text, number=number) for number, text in enumerate(texts)]
    return Session(id=id, app_name="tea", user_id=user_id, events=events)


def failing(*_: object, **__: object) -> None:
    raise ConnectionError


def unavailable(*_: object, **__: object) -> None:
    raise muniment.Unavailable(grpc.StatusCode.UNAVAILABLE)


async def found(service: BaseMemoryService, query: str, **whose: str) -> list[str]:
    answer = await service.search_memory(query=query, **(whose or ADA))
    return sorted(str(part.text) for entry in answer.memories for part in entry.content.parts or ())


async def steps(service: BaseMemoryService) -> list[Any]:
    """What a service answers. Neighbors in an ADK session, which ours returns too, match themselves or not at all."""
    answers: list[Any] = []

    async def note(query: str, **whose: str) -> None:
        answers.append(await found(service, query, **whose))

    await note("Assam")
    await service.add_session_to_memory(conversation("She likes Assam.", ""))
    await service.add_session_to_memory(conversation("No sugar, ever.", id="two"))
    await note("Assam")
    await note("Assam", **BOB)
    await note("Assam", **BESIDE)
    await note("coffee")
    await note(" ")
    await service.add_session_to_memory(conversation("She likes Assam.", "", "Assam at nine."))
    await note("Assam")
    await service.add_events_to_memory(**ADA, events=[event("Sugar for guests.", number=7)], session_id="three")
    await service.add_events_to_memory(**ADA, events=[event("Sugar for guests.", number=7)], session_id="three")
    await note("sugar")
    (entry,) = (await service.search_memory(query="guests", **ADA)).memories
    answers.append((entry.author, (entry.timestamp or "")[:19]))
    await service.delete_memory(**BOB, memory_id=entry.id)
    await note("guests")
    await service.delete_memory(**ADA, memory_id=entry.id)
    await service.delete_memory(**ADA, memory_id=entry.id)
    await service.delete_memory(**ADA, memory_id="none")
    await service.delete_memory(**ADA)
    await note("guests")
    await service.add_events_to_memory(**ADA, events=[event("Sugar for guests.", number=7)], session_id="three")
    await note("guests")
    return answers


@pytest.mark.parametrize("taint", [PUBLIC, CONFIDENTIAL])
async def test_it_answers_like_adks_own_service(opened, monkeypatch, taint):
    """What was deleted stays deleted."""
    monkeypatch.setenv("TZ", "UTC")
    ours = await steps(MunimentMemoryService(opened(taint)))
    assert ours == await steps(InMemoryMemoryService())
    assert ours[:6] == [[], ["She likes Assam."], [], [], [], []]


async def test_what_was_said_beside_a_match_is_found_too(opened):
    service = MunimentMemoryService(opened(PUBLIC))
    await service.add_session_to_memory(conversation("Which tea?", "Assam.", id="one"))
    await service.add_session_to_memory(conversation("When?", "At nine.", id="two"))
    assert await found(service, "tea") == ["Assam.", "Which tea?"]


async def test_a_character_that_cannot_be_stored_stops_nothing(opened):
    service = MunimentMemoryService(opened(PUBLIC))
    await service.add_session_to_memory(conversation("Assam\0 please", "Assam \ud83d", "Assam at nine."))
    assert await found(service, "Assam") == ["Assam at nine.", "Assam \ufffd", "Assam\ufffd please"]
    assert await found(service, "nine \ud83d\0") == await found(service, "nine")


async def test_the_thoughts_of_a_model_are_no_speech(opened):
    service = MunimentMemoryService(opened(PUBLIC))
    added = conversation("", "")
    thought = Part(text="Assam is too strong for her.", thought=True)
    added.events[0].content = Content(parts=[thought, Part(text="Assam?")])
    added.events[1].content = Content(parts=[thought])
    await service.add_session_to_memory(added)
    assert await found(service, "Assam") == ["Assam?"]


async def test_an_event_that_is_too_long_stops_no_other(opened):
    service = MunimentMemoryService(opened(PUBLIC))
    with pytest.raises(ValueError, match="not stored: 1"):
        await service.add_session_to_memory(
            conversation("Assam", "é" * (128 * 1024 + 1), "é" * (128 * 1024), "Assam at nine.")
        )
    assert await found(service, "Assam") == ["Assam", "Assam at nine."]


async def test_at_two_taints(opened):
    low, high = MunimentMemoryService(opened(PUBLIC)), MunimentMemoryService(opened(CONFIDENTIAL))
    await low.add_session_to_memory(conversation("She likes Assam."))
    await high.add_session_to_memory(conversation("Her Assam costs 52,000 a year.", id="two"))

    assert await found(low, "Assam") == ["She likes Assam."]
    assert await found(high, "Assam") == ["Her Assam costs 52,000 a year.", "She likes Assam."]
    both = (await high.search_memory(query="Assam", **ADA)).memories
    salary = next(entry for entry in both if "52,000" in str(entry.content.parts))
    await low.delete_memory(**ADA, memory_id=salary.id)
    assert len(await found(high, "Assam")) == 2
    (tea,) = (await low.search_memory(query="Assam", **ADA)).memories
    with pytest.raises(muniment.WriteLevelMismatch):
        await high.delete_memory(**ADA, memory_id=tea.id)
    assert await found(low, "Assam") == ["She likes Assam."]


async def test_an_untrusted_conversation_deletes_nothing_trusted(opened):
    """Nor does it record the deletion, by which the memory would not be stored again."""
    trusted = MunimentMemoryService(opened(PUBLIC, muniment.Integrity.TRUSTED))
    session = opened(PUBLIC)
    await trusted.add_session_to_memory(conversation("She likes Assam."))
    (tea,) = (await trusted.search_memory(query="Assam", **ADA)).memories

    with pytest.raises(muniment.WriteLevelMismatch):
        await MunimentMemoryService(session).delete_memory(**ADA, memory_id=tea.id)

    assert list(session.list_memories()) == []
    assert await found(trusted, "Assam") == ["She likes Assam."]


async def test_a_raise_in_the_middle_of_an_import_starts_it_over_at_the_new_taint(owner, opened, monkeypatch):
    """What was deleted at the new taint stays deleted."""
    low, high = opened(PUBLIC), MunimentMemoryService(opened(CONFIDENTIAL))
    await high.add_session_to_memory(conversation("", "Assam at nine."))
    for entry in (await high.search_memory(query="nine", **ADA)).memories:
        await high.delete_memory(**ADA, memory_id=entry.id)
    import_passages = SessionClient.import_passages

    def raised(session: SessionClient, passages: list[NewPassage], **options: Any) -> ImportCounts:
        monkeypatch.undo()
        import_passages(session, passages[:1], **options)
        owner.raise_taint(session, CONFIDENTIAL, reason="read the payroll")
        raise muniment.TaintChanged(grpc.StatusCode.ABORTED, "TAINT_CHANGED")

    monkeypatch.setattr(SessionClient, "import_passages", raised)
    await MunimentMemoryService(low).add_session_to_memory(conversation("No sugar.", "Assam at nine.", "Assam, ever."))

    assert [each.content for each in opened(PUBLIC).list_passages()] == ["No sugar."]
    assert sorted(each.content for each in low.list_passages()) == ["Assam, ever.", "No sugar."]


def test_every_language_stores_the_same(opened):
    """Go's adk_test.go and Java's AdkMemories.java have the same names."""
    session = opened(PUBLIC)
    added = Session(id="one", app_name="tea", user_id="ada", events=[event("Tee für Ada", number=0)])
    asyncio.run(MunimentMemoryService(session).add_session_to_memory(added))
    (passage,) = session.list_passages()
    assert passage.tags == ("muniment:adk:a7466333386f189d1521d8e581abb47c",)
    assert (passage.passage_id, passage.thread) == ("c294d56f-dc4d-5d98-88f1-f9165894916e", "one")


async def test_the_memories_of_a_conversation_are_apart_by_user(opened):
    service = MunimentMemoryService(opened(PUBLIC))
    await service.add_session_to_memory(conversation("She likes Assam."))
    await service.add_session_to_memory(conversation("He likes Assam.", user_id="bob"))
    (entry,) = (await service.search_memory(query="Assam", **ADA)).memories
    await service.delete_memory(**BOB, memory_id=entry.id)

    assert await found(service, "Assam", **ADA) == ["She likes Assam."]
    assert await found(service, "Assam", **BOB) == ["He likes Assam."]
    assert await found(service, "Assam", app_name="coffee", user_id="ada") == []


async def test_the_memories_of_an_application_are_apart_by_user(owner):
    service, users = MunimentSharedMemoryService("muniment://internal"), [str(uuid.uuid4()) for _ in range(2)]
    for user_id in users:
        await service.add_session_to_memory(conversation(f"{user_id} likes Assam.", user_id=user_id))

    for user_id in users:
        assert await found(service, "Assam", app_name="tea", user_id=user_id) == [f"{user_id} likes Assam."]
        with owner.open_session(agent_of(user_id), INTERNAL) as session:
            assert [each.content for each in session.list_passages()] == [f"{user_id} likes Assam."]
    await service.close()


async def test_no_model_can_forge_a_memory_or_a_deletion(owner, monkeypatch):
    """A model that knows the names of another user can compute the tag and the ids of that user's memories."""
    monkeypatch.setattr("importlib.metadata.version", lambda _: "0")  # of MCP's server: the client is not installed
    own, other, third = (owner.open_session(owner.create_agent().agent_id, PUBLIC) for _ in range(3))

    async def store(session: SessionClient) -> None:
        await MunimentMemoryService(session).add_session_to_memory(conversation("Assam, always."))

    async def delete(session: SessionClient) -> None:
        await store(session)
        service = MunimentMemoryService(session)
        for entry in (await service.search_memory(query="Assam", **ADA)).memories:
            await service.delete_memory(**ADA, memory_id=entry.id)

    async def seen(session: SessionClient) -> list[str]:
        return await found(MunimentMemoryService(session), "Assam")

    async def seen_if_stored_again(session: SessionClient) -> list[str]:
        await store(session)
        return await seen(session)

    await assert_no_model_can_forge(store, seen, own, other)
    await assert_no_model_can_forge(delete, seen_if_stored_again, third, own)


def adk(session: SessionClient, text: str) -> Calls:
    service = MunimentMemoryService(session)

    def seen(query: str) -> list[Any]:
        answer = asyncio.run(service.search_memory(query=query, **ADA))
        return [entry.model_dump() for entry in answer.memories]

    def delete() -> None:
        for entry in seen("sugar"):
            asyncio.run(service.delete_memory(**ADA, memory_id=entry["id"]))

    def of(id: str) -> Calls:
        added = conversation("Assam", f"{text} sugar", id=id)
        yield lambda: seen("sugar")
        yield lambda: asyncio.run(service.add_session_to_memory(added))
        yield lambda: seen("Assam high low")

    for id in ("one", text, "one"):
        yield from of(id)
    yield delete
    yield lambda: seen("Assam")


def test_what_happens_above_changes_nothing_below_and_a_leak_is_found(owner):
    """As tests/clients/frameworks/test_two_worlds.py plays the other adapters."""

    def someone() -> Any:
        agent_id = owner.create_agent().agent_id
        return lambda taint: owner.open_session(agent_id, taint)

    alone = seen_below(someone(), adk, above=False)
    assert alone[5]
    assert alone == seen_below(someone(), adk, above=True)
    assert alone == seen_below(someone(), leaking(adk), above=False)
    assert alone != seen_below(someone(), leaking(adk), above=True)


@pytest.mark.parametrize("written", [str.upper, "{{{}}}".format, "urn:uuid:{}".format])
async def test_a_deletion_is_recorded_however_the_id_is_written(opened, written):
    service = MunimentMemoryService(opened(PUBLIC))
    await service.add_session_to_memory(conversation("Assam"))
    (entry,) = (await service.search_memory(query="Assam", **ADA)).memories

    await service.delete_memory(**ADA, memory_id=written(entry.id))
    await service.add_session_to_memory(conversation("Assam"))

    assert await found(service, "Assam") == []


async def test_a_deletion_that_could_not_be_recorded_can_be_repeated(opened, monkeypatch):
    session = opened(PUBLIC)
    service = MunimentMemoryService(session)
    await service.add_session_to_memory(conversation("Assam"))
    (entry,) = (await service.search_memory(query="Assam", **ADA)).memories
    with monkeypatch.context() as patch:
        patch.setattr(SessionClient, "save_memory", failing)
        with pytest.raises(ConnectionError):
            await service.delete_memory(**ADA, memory_id=entry.id)

    await service.delete_memory(**ADA, memory_id=entry.id)
    await service.add_session_to_memory(conversation("Assam"))

    assert await found(service, "Assam") == []


async def test_a_refused_deletion_is_not_recorded(opened):
    low, session = MunimentMemoryService(opened(PUBLIC)), opened(CONFIDENTIAL)
    await low.add_session_to_memory(conversation("Assam"))
    (entry,) = (await low.search_memory(query="Assam", **ADA)).memories

    with pytest.raises(muniment.WriteLevelMismatch):
        await MunimentMemoryService(session).delete_memory(**ADA, memory_id=entry.id)

    assert session.list_memories().all() == []


async def test_memories_are_added_by_themselves(opened):
    service = MunimentMemoryService(opened(PUBLIC))
    entry = MemoryEntry(
        content=Content(parts=[Part(text="Assam")]), timestamp="2026-11-01T09:00:00", author="ada", id="1"
    )
    await service.add_memory(**ADA, memories=[entry, entry], custom_metadata=None)
    again = MemoryEntry(content=Content(parts=[Part(text="Assam again")]))
    await service.add_memory(**ADA, memories=[again], custom_metadata=None)

    (first,) = [each for each in (await service.search_memory(query="Assam", **ADA)).memories if each.author]
    assert (first.author, first.timestamp) == ("ada", "2026-11-01T09:00:00+00:00")
    assert len(await found(service, "Assam")) == 2


class Scripted(BaseLlm):
    """A model that asks its memory, and then says what it was answered."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            part = Part(text=str(last.function_response.response))
        else:
            part = Part(function_call=FunctionCall(name="load_memory", args={"query": "tea"}))
        yield LlmResponse(content=Content(role="model", parts=[part]))


async def test_without_code(owner, tmp_path: Path):
    """As the README shows it: services.yaml, a URI, and ADK's tool for a model."""
    (tmp_path / "services.yaml").write_text(block("For Google's ADK", "yaml"))
    load_services_module(str(tmp_path))
    service = get_service_registry().create_memory_service("muniment://internal", agents_dir=str(tmp_path))
    assert isinstance(service, MunimentSharedMemoryService)
    user_id = str(uuid.uuid4())
    await service.add_session_to_memory(conversation("She likes her tea without sugar.", user_id=user_id))

    agent = LlmAgent(name="butler", model=Scripted(model="scripted"), tools=[load_memory])
    sessions = InMemorySessionService()
    runner = Runner(app_name="tea", agent=agent, session_service=sessions, memory_service=service)
    session = await sessions.create_session(app_name="tea", user_id=user_id)
    message = Content(role="user", parts=[Part(text="How does she like it?")])
    said = [
        str(each.content.parts[-1].text)
        async for each in runner.run_async(user_id=user_id, session_id=session.id, new_message=message)
    ]

    assert "without sugar" in said[-1]
    (mine,) = [each for each in owner.list_agents() if each.agent_id == agent_of(user_id)]
    with owner.open_session(mine.agent_id, RESTRICTED) as seen:
        assert {each.classification for each in seen.list_passages()} == {INTERNAL}
    with owner.open_session(mine.agent_id, PUBLIC) as below:
        assert list(below.list_passages()) == []
    assert await found(service, "tea", app_name="tea", user_id="somebody else") == []
    await service.close()


async def test_a_user_who_is_known_is_served_when_no_more_agents_may_be_created(monkeypatch):
    """A tenant's limits are checked before the id of a new agent."""
    service, user_id = MunimentSharedMemoryService("muniment://internal"), str(uuid.uuid4())
    await service.add_session_to_memory(conversation("Assam", user_id=user_id))
    monkeypatch.setattr(HostClient, "create_agent", failing)

    await service.add_session_to_memory(conversation("Assam at nine.", id="two", user_id=user_id))

    assert await found(service, "Assam", app_name="tea", user_id=user_id) == ["Assam", "Assam at nine."]
    with pytest.raises(ConnectionError):
        await service.add_session_to_memory(conversation("Assam", user_id=str(uuid.uuid4())))
    await service.close()


async def test_only_storing_creates_the_agent_of_a_user(owner):
    service, user_id = MunimentSharedMemoryService("muniment://internal"), str(uuid.uuid4())

    assert await found(service, "Assam", app_name="tea", user_id=user_id) == []
    await service.delete_memory(app_name="tea", user_id=user_id, memory_id=str(uuid.uuid4()))
    assert agent_of(user_id) not in {each.agent_id for each in owner.list_agents()}

    await service.add_session_to_memory(conversation("Assam", user_id=user_id))
    assert agent_of(user_id) in {each.agent_id for each in owner.list_agents()}
    await service.close()


async def test_an_agent_that_is_created_meanwhile_serves_the_new_user(monkeypatch):
    service, user_id = MunimentSharedMemoryService("muniment://internal"), str(uuid.uuid4())
    create_agent = HostClient.create_agent

    def create_twice(*arguments: Any, **options: Any) -> muniment.Agent:
        create_agent(*arguments, **options)
        return create_agent(*arguments, **options)

    monkeypatch.setattr(HostClient, "create_agent", create_twice)
    await service.add_session_to_memory(conversation("Assam", user_id=user_id))

    assert await found(service, "Assam", app_name="tea", user_id=user_id) == ["Assam"]
    await service.close()


async def test_what_was_done_is_no_failure_if_its_session_cannot_be_closed(owner, monkeypatch):
    service, user_id = MunimentSharedMemoryService("muniment://internal"), str(uuid.uuid4())
    with monkeypatch.context() as patch:
        patch.setattr(SessionClient, "close", unavailable)
        await service.add_session_to_memory(conversation("Assam", user_id=user_id))
        assert await found(service, "Assam", app_name="tea", user_id=user_id) == ["Assam"]
        patch.setattr(SessionClient, "search_passages", failing)
        with pytest.raises(ConnectionError):
            await found(service, "Assam", app_name="tea", user_id=user_id)

    left_open = list(owner.list_sessions(agent_of(user_id)))
    assert [each.expire_time - each.create_time for each in left_open] == [timedelta(hours=1)] * 3
    await service.add_session_to_memory(conversation("Assam at nine.", id="two", user_id=user_id))
    assert len(list(owner.list_sessions(agent_of(user_id)))) == 3
    await service.close()


def agent_of(user_id: str) -> str:
    from muniment.adk import _agent_of  # noqa: PLC0415

    return _agent_of("tea", user_id)


@pytest.mark.parametrize(
    "uri",
    [
        "muniment://",
        "muniment://top",
        "muniment:internal",
        "sqlite://",
        "sqlite://internal",
        "muniment://\u0131nternal",
        "muniment://internal/restricted",
        "muniment://internal?level=restricted",
    ],
)
def test_a_uri_must_name_a_level(uri):
    with pytest.raises(ValueError, match="one of public, internal, confidential, restricted"):
        MunimentSharedMemoryService(uri)


async def test_a_runner_for_one_conversation(opened):
    session, sessions = opened(INTERNAL), InMemorySessionService()
    await MunimentMemoryService(session).add_session_to_memory(conversation("She likes her tea without sugar."))
    agent = LlmAgent(name="butler", model=Scripted(model="scripted"), tools=[load_memory])
    runner = names_of("For Google's ADK")["runner"](agent, sessions, session)
    talk = await sessions.create_session(**ADA)
    message = Content(role="user", parts=[Part(text="How does she like it?")])
    said = [each async for each in runner.run_async(user_id="ada", session_id=talk.id, new_message=message)]
    assert "without sugar" in str(said[-1].content)
