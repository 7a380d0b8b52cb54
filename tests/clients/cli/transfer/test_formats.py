"""What is read from files of others, and what is refused; no server is asked."""

from __future__ import annotations

import gzip
import io
import json
import os
import sqlite3
import time
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from muniment import Classification, Tier
from muniment.cli.transfer import docker_agent, formats
from muniment.cli.transfer import openmemory as openmemory_format
from muniment.cli.transfer.items import BlockItem, MemoryItem, NoteItem, PassageItem, Unreadable

INTERNAL = Classification.INTERNAL


@pytest.fixture
def read(tmp_path):
    """Read a file, or what is put into one, for the agent `alice` at INTERNAL."""

    def read(given, *, level=INTERNAL, agent_id="alice", **options):
        path = given
        if isinstance(given, str | bytes):
            path = tmp_path / "given"
            path.write_bytes(given.encode() if isinstance(given, str) else given)
        return formats.read(formats.Source(path, agent_id, level=level, **options))

    return read


def error_of(call, *arguments, **options):
    """What a refusal says."""
    with pytest.raises(Unreadable) as caught:
        call(*arguments, **options)
    return f"{caught.value.message} {caught.value.hint}"


def lines(*objects):
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects)


# The MCP server-memory.

GRAPH = lines(
    {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["likes tea", "speaks C"]},
    {"type": "entity", "name": "Acme", "entityType": "organization", "observations": []},
    {"type": "entity", "name": "Nobody", "entityType": "", "observations": []},
    {"type": "relation", "from": "Ada", "to": "Acme", "relationType": "works_at"},
)


def test_an_entity_is_a_memory_with_its_observations_and_relations(read):
    assert read(GRAPH).items == (
        MemoryItem("", INTERNAL, key="Ada", content="likes tea\nspeaks C\nworks_at: Acme", tags=("person",)),
        MemoryItem("", INTERNAL, key="Acme", content="Acme", tags=("organization",)),
        MemoryItem("", INTERNAL, key="Nobody", content="Nobody"),
    )


@pytest.mark.parametrize("named", [None, "mcp"])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_graph_may_be_one_document(read, named, indent):
    """As the tool `read_graph` returns it."""
    each = [json.loads(line) for line in GRAPH.splitlines()]
    graph = {
        "entities": [entity for entity in each if entity.pop("type") == "entity"],
        "relations": [relation for relation in each if "from" in relation],
    }
    assert read(json.dumps(graph, indent=indent), format=named).items == read(GRAPH).items
    assert read('{"entities": [], "relations": []}', format=named).items == ()


def test_lines_of_one_entity_are_taken_together(read):
    twice = GRAPH + lines({"type": "entity", "name": "Ada", "entityType": "pioneer", "observations": ["speaks C", "é"]})
    assert read(twice).items[0] == MemoryItem(
        "", INTERNAL, key="Ada", content="likes tea\nspeaks C\né\nworks_at: Acme", tags=("person", "pioneer")
    )


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("{hush", "line 5: is not JSON"),
        ("[1]", "line 5: is not a JSON object"),
        (b"\xff\xfe", "line 5: is not in UTF-8"),
        ('{"type": "hush"}', "line 5: type must be entity or relation"),
        ('{"type": "entity", "name": 7}', "line 5: name must be a string"),
        ('{"type": "entity", "name": "x", "observations": ["a", 7]}', "line 5: observations must be a list of strings"),
        ('{"type": "entity", "name": "\\ud800"}', "line 5: contains half of a surrogate pair"),
        ('{"type": "entity", "name": "x", "observations": ["\\ud800"]}', "line 5: contains half of a surrogate pair"),
        ("[" * 100000, "line 5: is not readable JSON"),
        ('{"type": "entity", "name": "x", "name": "hush"}', "line 5: has a name twice in one object"),
    ],
)
def test_a_bad_line_is_reported_by_number_and_never_shown(read, line, rule):
    bad = GRAPH.encode() + (line if isinstance(line, bytes) else line.encode())
    refused = error_of(read, bad)
    assert rule in refused
    assert "hush" not in refused


@pytest.mark.parametrize(
    "written",
    [
        lines({"type": "entity", "name": "muniment:langgraph/u.1/k2", "entityType": "x", "observations": ["{}"]}),
        lines({"type": "entity", "name": "k2", "entityType": "muniment:langgraph", "observations": ["{}"]}),
        json.dumps([{"id": "1", "memory": "x", "categories": ["tea", " muniment:adk:5f"]}]),
        json.dumps({"blocks": [], "core_memory": [], "passages": [{"text": "x", "tags": ["muniment:adk:5f"]}]}),
    ],
    ids=["key", "tag", "mem0", "letta"],
)
def test_an_item_of_another_system_is_none_of_an_adapter(read, written):
    """A model may have chosen its names there."""
    assert "a key or tag begins with muniment:, which only adapters may write" in error_of(read, written)


def test_a_directory_has_no_items_of_an_adapter(read, tmp_path):
    (tmp_path / "vault" / "muniment:files").mkdir(parents=True)
    (tmp_path / "vault" / "muniment:files" / "tea.md").write_text("Assam")
    assert "a key or tag begins with muniment:" in error_of(read, tmp_path / "vault")


# mem0.

MEM0 = {
    "results": [
        {
            "id": "b2", "memory": "Likes tea.", "hash": "5f", "metadata": {"source": "chat"}, "user_id": "ada",
            "created_at": "2026-01-02T00:00:00-08:00", "updated_at": None, "run_id": "trip", "role": "user",
            "categories": ["food"], "expiration_date": "2027-01-01",
        },
        {"id": "a1", "memory": "Speaks C.", "hash": "6a", "user_id": "ada", "created_at": "2026-01-01T00:00:00"},
    ]
}  # fmt: skip


@pytest.mark.parametrize("document", [MEM0, MEM0["results"]], ids=["results", "list"])
def test_memories_of_mem0_are_passages_oldest_first(read, document):
    first, second = read(json.dumps(document)).items

    assert (first.content, first.event_time) == ("Speaks C.", datetime(2026, 1, 1, tzinfo=UTC))
    assert second == PassageItem(
        "", INTERNAL, passage_id=second.passage_id, content="Likes tea.", tags=("food",), thread="trip", author="user",
        event_time=datetime(2026, 1, 2, 8, tzinfo=UTC), expire_time=datetime(2027, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    assert read(json.dumps(document)).remarks == ("omitted fields: hash (2), metadata.source (1)",)


def test_memories_of_mem0_may_be_on_lines(read):
    assert read(lines(*MEM0["results"])).items == read(json.dumps(MEM0)).items
    assert "line 3: is not JSON" in error_of(read, lines(*MEM0["results"]) + "hush")


@pytest.mark.parametrize("document", [{"results": []}, {"results": [], "relations": []}])
def test_a_user_of_mem0_may_have_no_memories(read, document):
    assert read(json.dumps(document)).items == ()
    assert read(json.dumps(document), from_agent="ada").items == ()


def test_the_relations_of_mem0_are_omitted_by_name(read):
    graph = MEM0 | {"relations": [{"source": "ada", "relationship": "works_at", "destination": "acme"}]}
    assert read(json.dumps(graph)).remarks == ("omitted fields: hash (2), metadata.source (1), relations (1)",)


def test_names_of_omitted_fields_are_few_and_short_and_steer_no_terminal(read):
    strange = {"\x1b[31m\u202e" + "x" * 99: 1} | {f"y{number:02}": 1 for number in range(30)}
    (remark,) = read(json.dumps([{"id": "a1", "memory": "Likes tea."} | strange])).remarks

    assert remark.endswith("y18 (1), 11 more")
    assert remark.startswith("omitted fields: \\x1b[31m\\u202exxx")
    assert len(remark) < 400


@pytest.mark.parametrize("metadata", [{}, None, {"expiration_date": "2027-01-01"}])
def test_the_expiration_date_may_be_in_the_metadata(read, metadata):
    """As mem0's own library returns it."""
    (item,) = read(json.dumps([{"id": "a1", "memory": "Likes tea.", "metadata": metadata}])).items
    assert item.expire_time == (datetime(2027, 1, 1, tzinfo=UTC) if metadata else None)


def test_what_mem0_wrote_itself_is_read(read):
    """mem0.json is what `get_all` of mem0ai 2.2.1 returned after four calls of `add`, with Qdrant in a folder."""
    found = read((Path(__file__).parent / "mem0.json").read_text("utf-8"))
    items = {item.content: item for item in found.items}

    assert len(items) == 4
    assert items["Ada takes her tea without sugar."].tags == ("food",)
    assert items["I moved to Graz in May."].thread == "trip-7"
    assert [items[text].author for text in ("I moved to Graz in May.", "Noted: you live in Graz now.")] == [
        "ada",
        "assistant",
    ]
    ticket = items["The ticket is valid until the end of the year."]
    assert ticket.expire_time == datetime(2126, 12, 31, tzinfo=UTC)
    assert found.remarks == (
        "omitted fields: hash (4), metadata.category (1), metadata.source (1), role (1), updated_at (4)",
    )


@pytest.mark.parametrize("tags", ["food", {"a": 1}, [1], [""]])
def test_tags_in_the_metadata_that_are_no_texts_are_omitted(read, tags):
    found = read(json.dumps([{"id": "a1", "memory": "Likes tea.", "metadata": {"tags": tags}}]))
    assert found.items[0].tags == ()
    assert len(found.remarks) == 1


def test_a_memory_of_mem0_keeps_its_id_from_import_to_import(read):
    ids = [[item.passage_id for item in read(json.dumps(MEM0), agent_id=agent).items] for agent in ("alice", "bob")]
    assert ids[0] == [item.passage_id for item in read(json.dumps(MEM0["results"])).items]
    assert set(ids[0]).isdisjoint(ids[1])


def test_of_several_users_of_mem0_one_is_named(read):
    both = json.dumps([*MEM0["results"], {"id": "c3", "memory": "Is Bob.", "agent_id": "bob"}])

    assert "memories of 2 users or agents" in error_of(read, both)
    assert [item.content for item in read(both, from_agent="bob").items] == ["Is Bob."]
    assert "no memories of that user" in error_of(read, both, from_agent="hush")


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"memory": 7}, "memory 2: memory must be a string"),
        ({"id": None}, "memory 2: id must be a string"),
        ({"created_at": "hush"}, "memory 2: created_at must be a time"),
        ({"expiration_date": "9999-12-31T23:59:59-05:00"}, "expiration_date must be a time from year 1 to 9999 in UTC"),
        ({"created_at": "0001-01-01T00:00:00+05:00"}, "created_at must be a time from year 1 to 9999 in UTC"),
        ({"categories": "hush"}, "memory 2: categories must be a list"),
        ({"id": "b2"}, "memory 1: the same passage at the same level as in memory 2"),
    ],
)
def test_what_is_wrong_in_memories_of_mem0_is_reported_by_number(read, changed, rule):
    refused = error_of(read, json.dumps([MEM0["results"][0], MEM0["results"][1] | changed]))
    assert rule in refused
    assert "hush" not in refused


# LangGraph's PostgresStore.

STORE = lines(
    {
        "prefix": "users.42", "key": "theme", "value": {"name": "dark", "é": [1]}, "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z", "expires_at": "2027-01-01T00:00:00+00:00", "ttl_minutes": 60,
    },
    {"prefix": "docs", "key": "a/b", "value": {}, "created_at": "2026-01-01T00:00:00Z", "expires_at": None},
)  # fmt: skip


TAG = "muniment:langgraph"


def test_an_item_of_the_table_is_the_memory_of_a_store(read):
    assert read(STORE).items == (
        MemoryItem(
            "", INTERNAL, key="muniment:langgraph/users.42/theme", content='{"name": "dark", "é": [1]}',
            tags=(TAG, f"{TAG}:users", f"{TAG}:users.42"), expire_time=datetime(2027, 1, 1, tzinfo=UTC),
        ),
        MemoryItem("", INTERNAL, key="muniment:langgraph/docs/a%2Fb", content="{}", tags=(TAG, f"{TAG}:docs")),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ('{"prefix": "a", "key": "b", "value": {"hush": 1e999}}', "line 3: is not readable JSON"),
        ('{"prefix": "a", "key": "b", "value": {"hush": NaN}}', "line 3: is not readable JSON"),
        ('{"prefix": "a", "key": "b", "value": "hush"}', "line 3: value must be an object"),
        ('{"prefix": 7, "key": "b", "value": {}}', "line 3: prefix must be a string"),
        ('{"prefix": "docs", "key": "a/b", "value": {"hush": 1}}', "line 3: the same memory at the same level as in"),
        ("hush", "line 3: is not JSON"),
    ],
)
def test_a_bad_row_of_the_table_is_reported_by_number(read, line, rule):
    refused = error_of(read, STORE + line)
    assert rule in refused
    assert "hush" not in refused


# Letta.

AGENT_FILE = {
    "agents": [{"id": "agent-0", "name": "ada", "block_ids": ["block-1", "block-0", "block-2"], "messages": []}],
    "groups": [],
    "blocks": [
        {"id": "block-0", "label": "human", "value": "Likes tea.\n", "limit": 20000, "read_only": False},
        {"id": "block-1", "label": "system/human/work", "value": "", "description": None},
        {"id": "block-2", "label": "/notes", "value": "x"},
        {"id": "block-9", "label": "human", "value": "somebody else's"},
    ],
    "tools": [],
    "metadata": {"revision_id": "495bf419787f"},
    "created_at": "2026-03-13T22:11:00.000000+00:00",
}
PASSAGES = [
    {"id": "passage-2", "text": "second", "tags": ["a", "b"], "created_at": "2026-01-02T00:00:00Z", "embedding": [0.1]},
    {"id": "passage-1", "text": "first", "tags": None, "created_at": "2026-01-01T01:00:00.5+01:00"},
]


def test_the_blocks_of_the_agent_are_read_and_their_paths_get_dots(read):
    reading = read(json.dumps(AGENT_FILE, indent=2))
    assert reading.items == (
        BlockItem("", INTERNAL, label="human", content="Likes tea.\n"),
        BlockItem("", INTERNAL, label="system.human.work", content=""),
        BlockItem("", INTERNAL, label="notes", content="x"),
    )
    assert reading.remarks == (
        "labels in which `/` became `.`, or what no label can have `_`: 2",
        "omitted blocks of other agents: 1",
        "omitted fields: created_at (1), limit (1), metadata (1), name (1), read_only (1)",
    )


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("Current Project", "Current_Project"),
        ("Über-uns.2", "Über-uns.2"),
        ("a/b c!", "a.b_c_"),
        ("-x", "_-x"),
        ("/", ""),
        ("用户", "用户"),
    ],
)
def test_a_label_that_no_block_can_have_is_converted(read, label, expected):
    (item,) = read(json.dumps({"core_memory": [{"label": label, "value": "x"}]})).items
    assert item.name == expected


def test_labels_that_become_the_same_are_refused(read):
    blocks = [{"label": "a b"}, {"label": "a_b"}]
    assert "the same block at the same level as in" in error_of(read, json.dumps({"core_memory": blocks}))


def test_a_file_that_is_a_string_in_json_is_read_as_well(read):
    assert read(json.dumps(json.dumps(AGENT_FILE))).items == read(json.dumps(AGENT_FILE)).items


def test_the_first_form_had_its_blocks_in_core_memory(read):
    first = {"agent_type": "memgpt_agent", "core_memory": [{"label": "persona", "value": "I am Sam.", "limit": 2000}]}
    assert read(json.dumps(first)).items == (BlockItem("", INTERNAL, label="persona", content="I am Sam."),)


@pytest.mark.parametrize(
    "holding",
    [
        PASSAGES,
        AGENT_FILE | {"blocks": [], "agents": [{"id": "agent-0"}], "passages": PASSAGES},
        AGENT_FILE | {"blocks": [], "agents": [{"id": "agent-0", "archival_memory": PASSAGES}]},
        {"core_memory": [], "archival_passages": PASSAGES},
    ],
    ids=["the API's list", "of the file", "of the agent", "of the first form"],
)
def test_archival_passages_are_read_oldest_first(read, holding):
    first, second = read(json.dumps(holding)).items
    assert isinstance(first, PassageItem)
    assert (first.content, first.tags, first.event_time) == ("first", (), datetime(2026, 1, 1, 0, 0, 0, 500000, UTC))
    assert isinstance(second, PassageItem)
    assert (second.content, second.tags) == ("second", ("a", "b"))


def test_of_several_agents_each_has_only_the_passages_that_name_it(read):
    passages = [
        {"id": "p-0", "text": "Ada's", "agent_id": "agent-0"},
        {"id": "p-1", "text": "Bob's", "agent_id": "agent-1"},
        {"id": "p-2", "text": "whose?"},
    ]
    cara = {"name": "cara", "passages": [{"id": "p-3", "text": "Cara's"}]}
    agents = [{"id": "agent-0", "name": "ada"}, {"id": "agent-1", "name": "bob"}, cara]
    holding = json.dumps({"agents": agents, "blocks": [], "archival_passages": passages})

    found = {name: read(holding, from_agent=name) for name in ("ada", "agent-1", "cara")}

    assert {name: [item.content for item in each.items] for name, each in found.items()} == {
        "ada": ["Ada's"],
        "agent-1": ["Bob's"],
        "cara": ["Cara's"],
    }
    assert found["ada"].remarks == ("omitted passages that name another agent, or none: 2",)


def test_a_passage_keeps_its_id_from_import_to_import(read):
    once, again, elsewhere = (
        [item.name for item in read(json.dumps(PASSAGES), agent_id=agent).items] for agent in ("alice", "alice", "bob")
    )
    assert once == again
    assert not set(once) & set(elsewhere)
    assert once[0] == "5061f2a4-8def-531e-9cbc-9f02572b5779"  # or what was imported before would be imported anew


def test_an_id_is_never_made_of_a_text(read):
    without = [{"text": text, "created_at": "2026-01-01T00:00:00Z"} for text in ("one", "two")]
    changed = [each | {"text": each["text"] + "!"} for each in without]
    assert [item.name for item in read(json.dumps(without)).items] == [
        item.name for item in read(json.dumps(changed)).items
    ]


def test_of_several_agents_one_is_named(read):
    two = AGENT_FILE | {"agents": [{"id": "agent-0", "name": "ada", "block_ids": ["block-0"]}, {"id": "agent-1"}]}
    assert "the file has 2 agents" in error_of(read, json.dumps(two))
    assert "0 agents of that name" in error_of(read, json.dumps(two), from_agent="eve")
    for name in ("agent-0", "ada"):
        assert [item.name for item in read(json.dumps(two), from_agent=name).items] == ["human"]


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"blocks": [{"id": "block-0", "label": "hush hush", "value": "x"}]}, "are not among the file's blocks"),
        ({"agents": [{"block_ids": ["b"]}], "blocks": [{"id": "b"}]}, "blocks[0]: label must be a string"),
        ({"passages": [{"id": "p", "text": "hush", "created_at": "hush"}]}, "passages[0]: created_at must be a time"),
        ({"passages": [{"id": "\ud800", "text": "\ud800"}]}, "passages[0]: contains half of a surrogate pair"),
        ({"agents": "hush"}, "agents must be a list"),
        (
            {
                "agents": [{"block_ids": ["b", "c"]}],
                "blocks": [{"id": "b", "label": "x/hush"}, {"id": "c", "label": "x.hush"}],
            },
            "blocks[1]: the same block at the same level as in blocks[0]",
        ),
    ],
)
def test_what_is_wrong_in_an_agent_file_is_reported_by_place(read, changed, rule):
    refused = error_of(read, json.dumps(AGENT_FILE | changed))
    assert rule in refused
    assert "hush" not in refused


def test_a_name_that_stands_twice_in_one_object_is_refused(read):
    twice = '{"core_memory": [{"label": "human", "value": "x", "value": "hush"}]}'
    for written in (twice, json.dumps(twice)):
        refused = error_of(read, written)
        assert "has a name twice in one object" in refused
        assert "hush" not in refused


# OpenMemory.


def openmemory(*memories, member="memories.jsonl.gz", packed=None):
    """An export, as OpenMemory's server writes it."""
    lines = "".join(json.dumps(each) + "\n" for each in memories)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", compression=zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("memories.json", "{}")
        opened.writestr(member, gzip.compress(lines.encode()) if packed is None else packed)
    return written.getvalue()


def exported(**fields):
    return {
        "id": "6a9f5e0c-0000-4000-8000-000000000001",
        "content": "Likes tea.",
        "metadata": {},
        "created_at": "2026-05-03T09:30:00+00:00",
        "updated_at": "2026-05-04T09:30:00+00:00",
        "state": "active",
        "app": "claude",
        "categories": ["food", "preferences"],
    } | fields


def test_active_memories_of_openmemory_become_passages(read):
    later = exported(id="2", content="Later.", created_at="2026-06-01T00:00:00+00:00", app=None, categories=[])
    hidden = [exported(id=state, content="hidden", state=state) for state in ("paused", "archived", "deleted")]

    found = read(openmemory(later, exported(), *hidden))

    assert [(item.content, item.tags, item.author, item.event_time) for item in found.items] == [
        ("Likes tea.", ("food", "preferences"), "claude", datetime(2026, 5, 3, 9, 30, tzinfo=UTC)),
        ("Later.", (), None, datetime(2026, 6, 1, tzinfo=UTC)),
    ]
    assert found.remarks == (
        "omitted fields: updated_at (2)",
        "omitted memories that are paused, archived or deleted: 3",
    )
    assert found.items == read(openmemory(later, exported(), *hidden)).items, "the ids are the same in every import"


def test_an_export_without_memories_is_read(read):
    assert read(openmemory()).items == ()


@pytest.mark.parametrize(
    ("file", "rule"),
    [
        (openmemory(member="other.gz"), "is not an export of OpenMemory"),
        (openmemory(packed=b"hush"), "is damaged"),
        (openmemory(packed=gzip.compress(b"hush" * 100)[:-9]), "is damaged"),
        (openmemory(exported())[:-30], "is damaged"),
        (openmemory(exported())[:-6] + b"\xff\xff\xff\xff\0\0", "is damaged"),
        (openmemory(exported(content=5)), "line 1: content must be a string"),
        (openmemory("hush"), "line 1: is not a JSON object"),
        (openmemory(exported(categories=["muniment:files"])), "only adapters may write"),
    ],
)
def test_what_is_wrong_in_an_export_is_reported(read, file, rule):
    refused = error_of(read, file)
    assert rule in refused
    assert "hush" not in refused


def test_an_export_that_unpacks_to_too_much_is_refused(read, monkeypatch):
    monkeypatch.setattr(openmemory_format, "_MAX_BYTES", 1000)
    assert "unpacks to more than" in error_of(read, openmemory(exported(content="x" * 2000)))


# docker-agent.


@pytest.fixture
def database(tmp_path):
    """Make a memory file of docker-agent."""

    def make(rows, columns="id TEXT PRIMARY KEY, created_at TEXT, memory TEXT, category TEXT DEFAULT ''", wal=False):
        path = tmp_path / "memory.db"
        with sqlite3.connect(path) as made:
            if wal:
                made.execute("PRAGMA journal_mode=WAL")
            made.execute(f"CREATE TABLE memories ({columns})")
            for row in rows:
                made.execute(f"INSERT INTO memories VALUES ({', '.join('?' * len(row))})", row)
        made.close()
        return path

    return make


def notes(reading):
    return [(item.tier, item.content) for item in reading.items if isinstance(item, NoteItem)]


def test_rows_are_notes_of_the_agent_oldest_first(read, database):
    path = database(
        [
            ("1717000000000000002", "2026-01-01T10:00:00+02:00", "second\n", "fact"),
            ("1717000000000000003", "2026-01-01T09:00:00Z", "third", None),
            ("1717000000000000001", "2026-01-01T07:00:00Z", "first", ""),
        ]
    )
    reading = read(path)
    assert notes(reading) == [(Tier.MEMORY, "first"), (Tier.MEMORY, "second\n"), (Tier.MEMORY, "third")]
    assert reading.remarks == ("omitted categories, which notes do not have: 1",)
    assert reading.items[0].level is INTERNAL


def test_old_files_have_no_category(read, database):
    path = database([("1", "2026-01-01T00:00:00Z", "x")], "id TEXT PRIMARY KEY, created_at TEXT, memory TEXT")
    assert notes(read(path)) == [(Tier.MEMORY, "x")]


@pytest.mark.parametrize("column", ["tier", "target"])
def test_a_tier_is_heeded_where_there_is_one(read, database, column):
    path = database(
        [("1", "1", "a", "user"), ("2", "2", "b", "memory"), ("3", "3", "c", None), ("4", "4", "d", "")],
        f"id TEXT PRIMARY KEY, created_at TEXT, memory TEXT, {column} TEXT",
    )
    assert notes(read(path)) == [(Tier.USER, "a"), (Tier.MEMORY, "b"), (Tier.MEMORY, "c"), (Tier.MEMORY, "d")]


def test_rows_that_say_nothing_new_are_left_out(read, database):
    path = database([("1", "1", "a", ""), ("2", "2", "", ""), ("3", "3", "a", ""), ("4", "4", "b", "")])
    reading = read(path)
    assert notes(reading) == [(Tier.MEMORY, "a"), (Tier.MEMORY, "b")]
    assert reading.remarks == ("omitted rows that are empty or repeat an earlier one: 2",)


@pytest.mark.parametrize("wal", [False, True])
def test_the_database_is_not_touched(read, database, tmp_path, wal):
    path = database([("1", "1", "a", "")], wal=wal)
    before = path.read_bytes(), sorted(os.listdir(tmp_path))
    assert notes(read(path)) == [(Tier.MEMORY, "a")]
    assert (path.read_bytes(), sorted(os.listdir(tmp_path))) == before


def test_what_is_only_in_the_log_of_a_running_docker_agent_is_read(read, database):
    path = database([("1", "1", "a", "")], wal=True)
    with sqlite3.connect(path) as running:
        running.execute("INSERT INTO memories VALUES ('2', '2', 'b', '')")
        running.commit()
        assert notes(read(path)) == [(Tier.MEMORY, "a"), (Tier.MEMORY, "b")]
    running.close()


@pytest.mark.parametrize(
    ("rows", "columns", "rule"),
    [
        ([], "id TEXT, text TEXT", "is not a memory file of docker-agent"),
        ([("1", "1", "a", "hush")], "id TEXT, created_at TEXT, memory TEXT, tier TEXT", "row 1: its tier must be"),
        ([("1", "1", b"hush", "")], "id TEXT, created_at TEXT, memory, category TEXT", "row 1: memory must be text"),
    ],
)
def test_what_is_wrong_in_a_database_is_reported_by_row(read, database, rows, columns, rule):
    refused = error_of(read, database(rows, columns))
    assert rule in refused
    assert "hush" not in refused


def test_a_damaged_database_is_reported_in_one_message(read):
    assert "SQLite cannot read the file" in error_of(read, b"SQLite format 3\0" + b"\1" * 200)


@pytest.fixture
def crafted(tmp_path):
    """Make a memory file of SQL that docker-agent would not write."""

    def make(*statements):
        path = tmp_path / "crafted.db"
        with sqlite3.connect(path) as made:
            for statement in statements:
                made.execute(statement)
        made.close()
        return path

    return make


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS rowid, {} FROM n"
ROW = "'1' AS id, '1' AS created_at, '1' AS memory"


@pytest.mark.parametrize(
    "statements",
    [
        [f"CREATE VIEW memories AS {ENDLESS.format(ROW)} WHERE i < 0"],
        ["CREATE VIEW memories AS SELECT '1' AS id, '1' AS created_at, hex(zeroblob(450000000)) AS memory"],
        ["CREATE VIRTUAL TABLE memories USING rtree(id, created_at, memory)"],
        ["CREATE TABLE memories (id TEXT, created_at TEXT, memory TEXT AS (hex(zeroblob(9))))"],
        ["CREATE TABLE memories (id TEXT, created_at TEXT, memory TEXT, x TEXT AS (hex(zeroblob(9))))"],
    ],
    ids=["endless view", "large view", "virtual table", "computed memory", "computed column"],
)
def test_what_is_no_table_with_rows_of_its_own_is_refused(read, crafted, statements):
    assert "is not a memory file of docker-agent" in error_of(read, crafted(*statements))


@pytest.mark.parametrize(
    ("count", "text", "rule"),
    [
        (11, "''", "is too large"),
        (10, "''", None),
        (7, "hex(zeroblob(8000))", "is too large"),
        (6, "hex(zeroblob(8000))", None),
    ],
)
def test_more_rows_or_text_than_notes_can_be_are_refused(read, crafted, monkeypatch, count, text, rule):
    monkeypatch.setattr(docker_agent, "_MAX_ROWS", 10)
    monkeypatch.setattr(docker_agent, "_MAX_BYTES", 100_000)
    path = crafted(
        "CREATE TABLE memories (id TEXT, created_at TEXT, memory TEXT)",
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "
        f"INSERT INTO memories SELECT i, i, {text} FROM n",
    )
    assert rule in error_of(read, path) if rule else read(path)


def test_a_row_that_is_larger_than_any_note_is_not_even_read(read, database):
    assert "is too large" in error_of(read, database([("1", "1", "x" * 1_100_000, "")]))


def test_a_database_that_is_read_for_too_long_is_given_up(read, crafted, monkeypatch):
    """With a column named `rowid`, all rows are sorted before the first is given."""
    monkeypatch.setattr(docker_agent, "_MAX_STEPS", 10_000)
    path = crafted(
        "CREATE TABLE memories (rowid TEXT, id TEXT, created_at TEXT, memory TEXT)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
        "INSERT INTO memories SELECT i, i, i, i FROM n",
    )
    assert "is too large" in error_of(read, path)


# Markdown.


@pytest.fixture
def vault(tmp_path):
    """Make a directory of notes."""

    def make(files):
        folder = tmp_path / "vault"
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content.encode())
        return folder

    return make


def test_each_file_is_a_memory_by_its_path(read, vault):
    folder = vault({"plan.md": "# Plan\r\n", "people/Ada.MD": "é\u2028\n", "image.png": "x", "notes.md.bak": "x"})
    assert read(folder).items == (
        MemoryItem("", INTERNAL, key="people/Ada", content="é\u2028\n"),
        MemoryItem("", INTERNAL, key="plan", content="# Plan\r\n"),
    )


@pytest.mark.parametrize(
    ("front_matter", "tags"),
    [
        ("---\ntags: [work, 'soon']\n---\n", ("work", "soon")),
        ("---\r\ntitle: x\r\ntags: work, soon\r\n---\r\n", ("work", "soon")),
        ("---\ntags: ['#work', \"#soon\"]\n---\n", ("work", "soon")),
        ("---\ntags: null\n---\n", ()),
        ("---\ntags: ['null', null, ~, soon]\n---\n", ("null", "soon")),
        ("---\ntags: [work, soon] # mine\n---\n", ("work", "soon")),
        ("---\ntags: [work,\n  soon]\n---\n", ("work", "soon")),
        ("---\ntags: [2026-01-01, 0x10, yes, 1.50]\n---\n", ("2026-01-01", "0x10", "yes", "1.50")),
        ("---\ntags: &a [*a, {b: c}, [d], e]\n---\n", ("e",)),
        ("---\n- tags\n---\n", ()),
        ('---\ntags:\n  - work\n  - "soon"\nother: y\n---\n', ("work", "soon")),
        ("---\ntags:\n---\n", ()),
        ("---\ntitle: x\n---\ntags: no\n", ()),
        ("text\n---\ntags: no\n---\n", ()),
        ("---\ntags: no\n", ()),
    ],
)
def test_tags_come_from_the_front_matter_which_stays_in_the_text(read, vault, front_matter, tags):
    (item,) = read(vault({"a.md": front_matter + "text"})).items
    assert isinstance(item, MemoryItem)
    assert (item.tags, item.content) == (tags, front_matter + "text")


@pytest.mark.parametrize(
    "front_matter", ["tags: [a\n", "tags: a: b\n", "tags: \a\n", "[" * 9000 + "\n", "#" * 70_000 + "\n"]
)
def test_tags_that_cannot_be_read_are_counted(read, vault, front_matter):
    found = read(vault({"a.md": f"---\n{front_matter}---\n"}))
    assert [item.tags for item in found.items] == [()]
    assert found.remarks == ("omitted tags in front matter that is not YAML: 1",)


def test_what_is_hidden_empty_or_elsewhere_is_left_out(read, vault, tmp_path):
    folder = vault({"a.md": "x", ".obsidian/b.md": "x", ".c.md": "x", "empty.md": "", "d/e.md": "y", "f.png": "z"})
    (tmp_path / "secret.md").write_text("s")
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    (folder / "in.md").symlink_to("a.md")
    (folder / "up").symlink_to(tmp_path)
    (folder / "round").symlink_to(folder)
    reading = read(folder)
    assert [item.name for item in reading.items] == ["a", "d/e", "in"]
    assert reading.remarks == (
        "omitted files that do not end in .md: 1",
        "omitted links out of the directory or to hidden files, and special files: 1",
        "omitted empty files: 1",
    )


def test_a_link_to_what_is_hidden_is_left_out_as_that_is(read, vault):
    folder = vault({"a.md": "x", ".git/secret": "s", ".b.md": "s", "d/.c/e.md": "s"})
    for name, target in (("1", ".git/secret"), ("2", ".b.md"), ("3", "d/.c/e.md"), ("4", "1.md")):
        (folder / f"{name}.md").symlink_to(target)
    assert [item.name for item in read(folder).items] == ["a"]
    assert read(folder).remarks[0].endswith("special files: 4")


def test_a_directory_that_is_itself_hidden_is_read(read, vault):
    folder = vault({".notes/a.md": "x"})
    assert [item.name for item in read(folder / ".notes").items] == ["a"]


def test_a_file_that_is_not_regular_is_skipped(read, vault):
    folder = vault({"a.md": "x"})
    os.mkfifo(folder / "pipe.md")
    (folder / "linked.md").symlink_to("pipe.md")
    (folder / "self.md").symlink_to("self.md")
    (folder / "nowhere.md").symlink_to("no-such-file")
    assert [item.name for item in read(folder).items] == ["a"]
    assert read(folder).remarks[0].endswith("special files: 4")


@pytest.mark.parametrize(
    "front_matter",
    [
        f"tags:a{' ' * 60_000}b\n",
        f"tags:{' ' * 60_000}\n",
        f"tags:\n-{' ' * 60_000}b\n",
        f"---{' ' * 60_000}b\n",
        f"tags:\n{' ' * 60_000}b\n",
    ],
    ids=["in a tag", "alone", "in a list", "in a fence", "before a list"],
)
def test_front_matter_of_blanks_is_read_in_no_time(read, vault, front_matter):
    folder = vault({"a.md": f"---\n{front_matter}---\n"})
    began = time.process_time()
    read(folder)
    assert time.process_time() - began < 2


def test_a_file_that_is_not_text_is_refused_by_name(read, vault):
    folder = vault({"plain.md": "x"})
    (folder / "latin.md").write_bytes(b"\xe9")
    assert "'latin.md': is not in UTF-8" in error_of(read, folder)


def test_files_of_one_name_are_refused(read, vault):
    assert "the same memory" in error_of(read, vault({"caf\u00e9.md": "a", "cafe\u0301.md": "b"}))


# Which it is.


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\n\n",
        "hush",
        "{}",
        "[]",
        "7",
        '{"agents": []}',
        "PK\3\4hush",
        '{"type": ["hush"]}',
        '{"type": {"hush": 1}}',
    ],
)
def test_an_unknown_format_is_reported(read, content):
    refused = error_of(read, content)
    assert "hush" not in refused


@pytest.mark.parametrize("written", [GRAPH, STORE, json.dumps(MEM0), json.dumps(PASSAGES), json.dumps(AGENT_FILE)])
def test_a_byte_order_mark_hides_no_format(read, written):
    assert read("\ufeff" + written).items == read(written).items


def test_a_level_is_never_taken_for_granted(read):
    with pytest.raises(click.UsageError, match="there is no default: give --level"):
        read(GRAPH, level=None)
    with pytest.raises(click.UsageError, match="omit --level"):
        read(lines({"format": "muniment", "version": 1}))


def test_another_format_than_the_one_that_is_named_is_refused(read, database, vault):
    assert "not of the format mcp, but docker-agent" in error_of(read, database([]), format="mcp")
    assert "not of the format letta, but markdown" in error_of(read, vault({"a.md": "x"}), format="letta")
    assert "not of the format markdown" in error_of(read, GRAPH, format="markdown")
    assert "type must be a string" in error_of(read, json.dumps(AGENT_FILE), format="mcp")


def test_standard_input_is_read(read, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GRAPH.encode())))
    assert len(read(Path("-")).items) == 3
