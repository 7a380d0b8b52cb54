"""Each tool does what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator

import grpc
import pytest
from mcp.shared.exceptions import MCPError

import muniment
from muniment import Classification, MemorySettings
from muniment.v1.memory_service_pb2 import ListMemoriesResponse
from tests.clients.mcp.conftest import Model, talking
from tests.clients.python.scripted import ScriptedServer, error_info, serve, status
from tests.rpcs import RPCS
from tests.support.examples import TOKEN

pytestmark = pytest.mark.anyio

PUBLIC, _, CONFIDENTIAL, _ = Classification


@pytest.fixture
def session(opened):
    return opened(PUBLIC)


async def test_memories(session):
    async with talking(session) as model:
        await model.does("memory_save", key="tea", content="Assam, no sugar", tags=["taste"])
        await model.does("memory_save", key="plan", content="ship on Friday")
        got = await model.does("memory_get", key="tea")
        found = await model.does("search", query="how does she like her tea?", max_results=1)
        tagged = await model.does("memory_list", tag="taste")
        deleted = await model.does("memory_delete", key="plan")
        every = await model.does("memory_list")

    assert (got["content"], got["tags"]) == ("Assam, no sugar", ["taste"])
    assert [each["key"] for each in found["memories"]] == ["tea"]
    assert [each["key"] for each in tagged["memories"]] == ["tea"]
    assert deleted == {"deleted": "plan", "revealed": False}
    assert [each["key"] for each in every["memories"]] == ["tea"]


async def test_a_correction_below_is_mentioned_and_can_be_read(opened):
    opened(CONFIDENTIAL).save_memory("phone", "1, and private")
    opened(PUBLIC).save_memory("phone", "2")

    async with talking(opened(CONFIDENTIAL)) as model:
        got = await model.does("memory_get", key="phone")
        listed = await model.does("memory_list")
        found = await model.does("search", query="private")
        versions = await model.does("versions", kind="memory", name="phone")

    entries = [got, *listed["memories"], *found["memories"]]
    assert [each["newer_below"] for each in entries] == ["PUBLIC"] * 3
    assert [each["content"] for each in versions["versions"]] == ["2", "1, and private"]
    assert versions["classification"] == "CONFIDENTIAL"


async def test_what_a_version_has_replaced_is_listed_on_request_and_goes_on(session):
    for number in range(25):
        session.save_memory("phone", f"{number}")

    async with talking(session) as model:
        live = await model.does("versions", kind="memory", name="phone")
        first = await model.does("versions", kind="memory", name="phone", revisions=True)
        rest = await model.does("versions", kind="memory", name="phone", revisions=True, after=first["next"])

    assert [(each["content"], each["replaced"]) for each in live["versions"]] == [("24", False)]
    assert [each["replaced"] for each in first["versions"]] == [False] + 19 * [True]
    listed = [*first["versions"], *rest["versions"]]
    assert [int(each["content"]) for each in listed] == [*reversed(range(25))]
    assert (live["more"], first["more"], rest["more"]) == (False, True, False)


async def test_a_list_is_of_all_pages(session):
    keys = [f"key-{number:03}" for number in range(260)]
    for key in keys:
        session.save_memory(key, "It is so.")

    async with talking(session) as model:
        listed = await model.does("memory_list")

    assert [each["key"] for each in listed["memories"]] == keys
    assert listed["more"] is False


async def test_a_list_ends_somewhere_and_says_so(session, monkeypatch):
    monkeypatch.setattr("muniment.mcp.tools.MAX_PAGE_SIZE", 1)
    async with talking(session) as model:
        lists = []
        for key in ("a", "b", "c"):
            session.save_memory(key, "It is so.")
            listed = await model.does("memory_list")
            lists.append((len(listed["memories"]), listed["more"], "next" in listed))

    assert lists == [(1, False, False), (2, False, False), (2, True, True)]


async def test_a_list_goes_on_after_its_end(session, monkeypatch):
    monkeypatch.setattr("muniment.mcp.tools.MAX_PAGE_SIZE", 2)
    session.save_memories(muniment.NewMemory(f"key {number}", "It is so.", ["a"]) for number in range(9))
    stored = [session.store_passage(f"text {number}", tags=["a"]).passage_id for number in range(9)]
    async with talking(session) as model:
        memories = [each["key"] for each in await whole(model, "memory_list", "memories")]
        passages = [each["passage_id"] for each in await whole(model, "passage_list", "passages")]
        error = await model.fails("memory_list", after="key 3")

    assert memories == [f"key {number}" for number in range(9)]
    assert passages == stored[::-1]
    assert "PAGE_TOKEN_INVALID" in error
    assert "start again with the first page" in error


async def whole(model: Model, tool: str, name: str) -> list[dict[str, str]]:
    """Read a list to its end."""
    parts = [await model.does(tool, tag="a")]
    while parts[-1]["more"] and len(parts) < 9:
        parts.append(await model.does(tool, tag="a", after=parts[-1]["next"]))
    return [each for part in parts for each in part[name]]


async def test_long_contents_are_shown_whole_one_by_one_only(session):
    text = "The lighthouse keeper counts the ships. " * 100
    session.save_memory("log", text)
    session.store_passage(text, author="Ada")

    async with talking(session) as model:
        (entry,) = (await model.does("memory_list"))["memories"]
        (listed,) = (await model.does("passage_list"))["passages"]
        found = await model.does("search", query="lighthouse")
        (match,), (passage,) = found["memories"], found["passages"]
        whole = await model.does("memory_get", key="log")
        archived = await model.does("passage_get", passage_id=passage["passage_id"])

    assert (entry["whole"], match["whole"], passage["whole"]) == (False, False, False)
    assert entry["content"] == listed["content"] == text[:200]
    assert "lighthouse" in match["content"]
    assert len(match["content"]) <= 2000
    assert len(passage["content"]) <= 2000
    assert whole["content"] == archived["content"] == text


async def test_notes_are_in_two_targets(session):
    async with talking(session) as model:
        note = await model.does("note_add", content="Ships on Fridays.")
        await model.does("note_add", content="Prefers tea.", target="user")
        await model.does("note_update", note_id=note["note_id"], content="Ships on Mondays.")
        notes = await model.does("note_list")
        profile = await model.does("note_list", target="user")
        elsewhere = await model.fails("note_delete", note_id=note["note_id"], target="user")
        deleted = await model.does("note_delete", note_id=note["note_id"])

    assert [each["content"] for each in notes["notes"]] == ["Ships on Mondays."]
    assert [each["content"] for each in profile["notes"]] == ["Prefers tea."]
    assert profile["usage"] == {"used_chars": 12, "limit_chars": 1375, "percent": 0}
    assert "NOTE_NOT_FOUND" in elsewhere
    assert deleted == {
        "deleted": note["note_id"],
        "revealed": False,
        "usage": {"used_chars": 0, "limit_chars": 2200, "percent": 0},
    }


async def test_a_refused_note_says_all_that_it_takes_to_make_room(session):
    """What the refusal shows is enough to get the note in with the next call."""
    async with talking(session) as model:
        for number in range(4):
            await model.does("note_add", content=f"{number} " + "a long story " * 40)
        error = await model.fails("note_add", content="Ada has moved to Graz. " * 10)
        over = int(re.findall(r"free ([\d,]+) characters", error)[0].replace(",", ""))
        note_id, length, may = re.findall(r"note_id (\S+), ([\d,]+) characters, PUBLIC, (.+?):", error)[0]
        assert may == "delete or shorten"
        assert int(length.replace(",", "")) > over
        edited = await model.does(
            "note_edit",
            update=[{"note_id": note_id, "content": "A story."}],
            add=["Ada has moved to Graz. " * 10],
        )

    assert [each["content"] for each in edited["notes"]] == ["A story.", "Ada has moved to Graz. " * 10]


async def test_a_refusal_says_how_sensitive_is_what_it_quotes(opened, session):
    session.add_note("a long story " * 80)
    async with talking(opened(Classification.CONFIDENTIAL)) as model:
        await model.does("note_add", content="a longer story " * 70)
        error = await model.fails("note_add", content="Ada has moved to Graz. " * 10)

    assert "The largest notes, up to CONFIDENTIAL, are:" in error
    assert re.findall(r"characters, ([A-Z]+), (.+?):", error) == [
        ("CONFIDENTIAL", "delete or shorten"),
        ("PUBLIC", "shorten only"),
    ]


async def test_a_note_that_fits_nowhere_is_not_to_be_repeated(session):
    async with talking(session) as model:
        error = await model.fails("note_add", content="x" * 2201)

    assert "BUDGET_EXCEEDED" in error
    assert "fewer words" in error


async def test_edits_are_all_or_none(session):
    async with talking(session) as model:
        note = await model.does("note_add", content="Ships on Fridays.")
        missing = "5d0c4a0e-4f52-4d7b-9a53-6c2f6f6f2d10"
        error = await model.fails("note_edit", delete=[note["note_id"], missing], add=["Ships on Mondays."])
        notes = await model.does("note_list")

    assert "NOTE_NOT_FOUND" in error
    assert [each["content"] for each in notes["notes"]] == ["Ships on Fridays."]


async def test_notes_that_are_switched_off(owner, session):
    owner.update_agent("alice", memory_settings=MemorySettings(memory_enabled=False))

    async with talking(session) as model:
        error = await model.fails("note_add", content="Ships on Fridays.")

    assert "TIER_DISABLED" in error
    assert "memory_save" in error


async def test_blocks(session):
    async with talking(session) as model:
        await model.does("block_update", label="current_state", content="Preparing the release.")
        blocks = await model.does("block_list")

    assert {each["label"]: each["content"] for each in blocks["blocks"]} == {
        "current_state": "Preparing the release.",
        "personality": "",
        "relationships": "",
    }


async def test_a_shared_block_is_read_only(owner, session):
    owner.create_agent("bob")
    owner.create_shared_block("bob", "rules", "Be brief.")
    owner.attach_block("bob", "rules", "alice")

    async with talking(session) as model:
        blocks = await model.does("block_list")

    assert [each["label"] for each in blocks["blocks"] if each["read_only"]] == ["rules"]


async def test_passages(session):
    async with talking(session) as model:
        stored = await model.does("passage_store", content="The compiler is done.", author="Grace", tags=["standup"])
        found = await model.does("search", query="is the compiler finished?", kind="passage")
        tagged = await model.does("passage_list", tag="standup")
        other = await model.does("passage_list", tag="retro")
        deleted = await model.does("passage_delete", passage_id=stored["passage_id"])
        left = await model.does("passage_list")

    (passage,) = found["passages"]
    assert 0.3 < passage.pop("relevance") < 1
    assert tagged["passages"] == [passage]
    assert deleted == {"deleted": stored["passage_id"], "revealed": False}
    assert (other["passages"], left["passages"], left["more"]) == ([], [], False)
    assert (passage["passage_id"], passage["content"]) == (stored["passage_id"], "The compiler is done.")
    assert (passage["author"], passage["tags"], passage["whole"]) == ("Grace", ["standup"], True)


async def test_search_finds_every_kind_or_one(session):
    async with talking(session) as model:
        await model.does("memory_save", key="boat", content="The lighthouse has a boat.")
        await model.does("note_add", content="Lives in a lighthouse.", target="user")
        await model.does("note_add", content="The lighthouse is white.")
        await model.does("passage_store", content="We met at the lighthouse.")
        every = await model.does("search", query="lighthouse")
        notes = await model.does("search", query="lighthouse", kind="note")
        one = await model.does("search", query="lighthouse", kind="memory", max_results=1)

    assert [each["key"] for each in every["memories"]] == ["boat"]
    assert {each["target"]: each["content"] for each in every["notes"]} == {
        "user": "Lives in a lighthouse.",
        "memory": "The lighthouse is white.",
    }
    assert [each["content"] for each in every["passages"]] == ["We met at the lighthouse."]
    assert notes == every | {"memories": [], "passages": []}
    assert {
        each["relevance"] for found in (every["memories"], every["notes"], every["passages"]) for each in found
    } == {1}
    assert "hint" not in every
    assert one == every | {"notes": [], "passages": []}


async def test_a_search_says_in_words_that_nothing_fits(session):
    async with talking(session) as model:
        await model.does("memory_save", key="partner", content="Her partner plays the cello.")
        near = await model.does("search", query="hello")
        nothing = await model.does("search", query="quantum chromodynamics")

    assert [each["key"] for each in near["memories"]] == ["partner"]
    assert near["hint"].startswith("Nothing fits this well.")
    assert (nothing["memories"], nothing["hint"][:18]) == ([], "Nothing was found.")


async def test_the_prompt_is_a_prompt_and_a_resource(session):
    session.update_block("personality", "Dry humor.")
    session.add_note("Ships on Fridays.")
    async with talking(session) as model:
        (listed,) = (await model.client.list_prompts()).prompts
        (offered,) = (await model.client.list_resources()).resources
        prompt = await model.client.get_prompt(listed.name)
        resource = await model.client.read_resource(offered.uri)

    assert (listed.name, listed.arguments, str(offered.uri)) == ("memory", [], "muniment://prompt")
    rendered = session.render_prompt().text
    assert [message.content.model_dump()["text"] for message in prompt.messages] == [rendered]
    assert [content.model_dump()["text"] for content in resource.contents] == [rendered]


async def test_a_prompt_that_cannot_be_rendered_says_what_to_do(session):
    session.close()
    async with talking(session) as model:
        for read in (model.client.get_prompt("memory"), model.client.read_resource("muniment://prompt")):
            with pytest.raises(MCPError, match="do not retry"):
                await read


async def test_a_field_that_breaks_a_rule_is_named(session):
    async with talking(session) as model:
        error = await model.fails("block_update", label="my rules!", content="x")

    assert "FIELD_INVALID" in error
    assert "label: " in error


@pytest.fixture
def scripted() -> Iterator[tuple[ScriptedServer, str]]:
    """A server that answers as scripted, and its address."""
    answering = ScriptedServer()
    server, port = serve(answering, "127.0.0.1:0")
    yield answering, f"127.0.0.1:{port}"
    server.stop(None).wait()


async def test_a_list_begins_again_when_the_taint_is_raised_between_two_pages(scripted):
    server, address = scripted
    first = ListMemoriesResponse()
    first.CopyFrom(RPCS["ListMemories"].answer)
    first.next_page_token = "second"
    server.script("ListMemories", first, status(grpc.StatusCode.ABORTED, error_info("TAINT_CHANGED")))

    with muniment.connect(address, token=TOKEN) as session:
        async with talking(session) as model:
            listed = await model.does("memory_list")

    assert [each["key"] for each in listed["memories"]] == ["tea"]
    assert [each.page_token for each in server.requests("ListMemories")] == ["", "second", ""]
