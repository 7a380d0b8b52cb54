"""What is exported can be imported, and then it is what it was: on a real server, at every level."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from unittest.mock import ANY

import pytest
from langgraph.store.postgres import PostgresStore

import muniment as client
from muniment import AddNote, NewPassage, Tier
from muniment.langgraph import MunimentStore
from muniment.settings import DEVELOPMENT_FILE
from tests.clients.cli.transfer.samples import HOSTILE
from tests.support.commands import line_of, objects, on_a_terminal

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = client.Classification
LATER = datetime(2099, 1, 1, 12, 30, 0, 123456, UTC)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SAME_ID = "0b6e1f0a-6d3c-4d2b-9b1e-3f6a5c8d7e90"


@pytest.fixture
def host(dev):
    """A client of the server in development."""
    written = json.loads((dev.folder / DEVELOPMENT_FILE).read_text())
    with client.connect(written["address"], host_key=written["host_key"]) as host:
        yield host


@pytest.fixture
def at(host, agent):
    """A session of the test's agent at a level."""
    opened = {level: host.open_session(agent, level) for level in client.Classification}
    yield opened.__getitem__
    for session in opened.values():
        session.close()


@pytest.fixture
def full(at, agent, host):
    """An agent with every kind of item at every level, and every way in which one hides another."""
    for level in client.Classification:
        at(level).save_memory("plan", f"{level.name} {HOSTILE}", tags=("é", level.name))
    at(CONFIDENTIAL).save_memory("👩‍💻 only here", "x", expire_time=LATER)
    fill_notes(at)
    at(PUBLIC).update_block("personality", "kind")
    at(RESTRICTED).update_block("personality", HOSTILE)
    at(RESTRICTED).update_block("relationships", "")  # the same as below, and still a version of its own
    at(INTERNAL).update_block("persönlich", "x\n")
    share_with(host, agent)
    fill_passages(at)
    return agent


def fill_notes(at):
    first = at(PUBLIC).add_note("first").note.note_id
    at(INTERNAL).add_note(HOSTILE)
    third = at(PUBLIC).add_note("third").note.note_id
    at(RESTRICTED).add_note("third, said above")
    at(PUBLIC).add_note("fifth")
    at(CONFIDENTIAL).update_note(first, "first, known better")
    at(RESTRICTED).update_note(third, "fifth")
    at(PUBLIC).update_note(third, "fifth")  # two notes of one content at one level
    at(INTERNAL).add_note("works at night", tier=Tier.USER)
    at(PUBLIC).add_note("works at night", tier=Tier.USER)


def share_with(host, agent):
    """Give *agent* a block of another one to read."""
    owner = host.create_agent().agent_id
    host.create_shared_block(owner, "news", "not the agent's own")
    host.attach_block(owner, "news", agent)


def fill_passages(at):
    at(RESTRICTED).import_passages([NewPassage("above", passage_id=SAME_ID)])
    at(PUBLIC).import_passages(
        [
            NewPassage("below, and not the same", passage_id=SAME_ID),
            NewPassage(HOSTILE, tags=("t", "u"), thread="chat 1", author="Ada", event_time=NOON, expire_time=LATER),
            *(NewPassage(f"turn {number}", thread="chat 1", event_time=NOON) for number in range(9)),
        ]
    )
    at(INTERNAL).store_passage("in between", event_time=NOON)


@pytest.fixture
def fresh(host):
    """Make an agent that knows nothing."""
    return lambda **settings: host.create_agent(memory_settings=client.MemorySettings(**settings)).agent_id


def exported(muniment, agent, *options, **environment):
    """The items of an export, as they stand in it."""
    done = muniment("export", agent, *options, **environment)
    assert done.returncode == 0, done.stderr
    header, *items = done.stdout.removesuffix("\n").split("\n")
    assert json.loads(header) == {
        "format": "muniment", "version": 2, "agent_id": agent, "item_count": len(items), "sha256": ANY
    }  # fmt: skip
    return items


def counts(done):
    """The answer of an import, without what is zero."""
    return {
        (row["level"], row["kind"]): {name: row[name] for name in ("added", "replaced", "unchanged") if row[name]}
        for row in objects(done)
    }


def views(host, agent):
    """What sessions at each level see, in their order."""
    seen = {}
    for level in client.Classification:
        with host.open_session(agent, level) as session:
            seen[level] = (
                [(note.note_id, note.content) for tier in Tier for note in session.list_notes(tier)],
                [(passage.passage_id, passage.content) for passage in session.list_passages()],
                [(memory.key, memory.content, memory.tags, memory.expire_time) for memory in session.list_memories()],
                [(block.label, block.content) for block in session.list_blocks() if not block.shared],
            )
    return seen


def test_an_agent_is_the_same_after_export_and_import(muniment, host, full, fresh, dev):
    copy = fresh()
    assert muniment("export", full, "-o", "full.jsonl").returncode == 0
    assert muniment("import", copy, "full.jsonl").returncode == 0

    assert exported(muniment, copy) == exported(muniment, full)
    assert views(host, copy) == views(host, full)


def test_every_version_is_in_it_also_the_hidden_ones_and_nothing_of_others(muniment, full):
    items = [json.loads(line) for line in exported(muniment, full)]
    assert [item["level"] for item in items if item.get("key") == "plan"] == [
        "public", "internal", "confidential", "restricted",
    ]  # fmt: skip
    assert sorted(item["level"] for item in items if item.get("passage_id") == SAME_ID) == ["public", "restricted"]
    assert [item["level"] for item in items if item.get("label") == "relationships"] == ["public", "restricted"]
    assert "news" not in [item.get("label") for item in items]


def test_a_second_import_changes_nothing(muniment, host, full, fresh):
    copy = fresh()
    muniment("export", full, "-o", "twice.jsonl")
    first = counts(muniment("import", copy, "twice.jsonl", "--json"))
    before = etags(host, copy)
    second = counts(muniment("import", copy, "twice.jsonl", "--json"))

    assert sum(each.get("added", 0) for each in first.values()) > 20
    assert all(set(each) == {"unchanged"} for each in second.values())
    assert etags(host, copy) == before
    assert counts(muniment("import", full, "twice.jsonl", "--json")) == second


def etags(host, agent):
    """The versions that sessions at each level see."""
    seen = []
    for level in client.Classification:
        with host.open_session(agent, level) as session:
            listed = [*session.list_memories(), *session.list_notes(), *session.list_blocks()]
            seen += [item.etag for item in listed]
    return seen


def test_a_dry_run_foresees_what_an_import_does_and_does_nothing(muniment, full, fresh):
    copy = fresh()
    muniment("export", full, "-o", "dry.jsonl")
    before = exported(muniment, copy)
    dry = muniment("import", copy, "dry.jsonl", "--dry-run", "--json")

    assert "Nothing was written" in dry.stderr
    assert exported(muniment, copy) == before
    assert counts(dry) == counts(muniment("import", copy, "dry.jsonl", "--json"))
    again = muniment("import", copy, "dry.jsonl", "--dry-run", "--json")
    assert all(set(each) == {"unchanged"} for each in counts(again).values())


def test_a_version_of_the_same_name_and_level_is_replaced_and_others_stay(muniment, at, agent, fresh):
    kept = at(PUBLIC).add_note("as it was").note.note_id
    at(PUBLIC).save_memory("a", "as it was", tags=("x",))
    at(PUBLIC).update_block("personality", "as it was")
    muniment("export", agent, "-o", "before.jsonl")
    at(PUBLIC).update_note(kept, "changed")
    at(PUBLIC).save_memory("a", "as it was")
    at(PUBLIC).update_block("personality", "changed")
    at(INTERNAL).save_memory("a", "another level")
    at(PUBLIC).save_memory("b", "another name")

    replaced = counts(muniment("import", agent, "before.jsonl", "--json"))
    assert replaced == {
        ("PUBLIC", "memory"): {"replaced": 1},
        ("PUBLIC", "note"): {"replaced": 1},
        ("PUBLIC", "block"): {"replaced": 1, "unchanged": 2},
    }
    assert at(PUBLIC).get_memory("a").tags == ("x",)
    assert at(INTERNAL).get_memory("a").content == "another level"
    assert at(PUBLIC).get_memory("b").content == "another name"
    assert [note.content for note in at(PUBLIC).list_notes()] == ["as it was"]


def test_a_note_that_is_there_below_gets_its_version_at_its_own_level(muniment, at, agent, host, fresh):
    low = at(PUBLIC).add_note("as it is below").note.note_id
    at(INTERNAL).update_note(low, "as it is above")
    muniment("export", agent, "-o", "both.jsonl")
    copy = fresh()
    with host.open_session(copy, PUBLIC) as session:
        session.edit_notes([AddNote("as it is below", note_id=low)])

    assert counts(muniment("import", copy, "both.jsonl", "--json"))["INTERNAL", "note"] == {"added": 1}
    assert exported(muniment, copy) == exported(muniment, agent)


def test_a_note_that_is_there_under_another_id_is_not_doubled(muniment, at, agent, host, fresh):
    at(PUBLIC).add_note("likes tea")
    muniment("export", agent, "-o", "tea.jsonl")
    copy = fresh()
    with host.open_session(copy, PUBLIC) as session:
        session.add_note("likes tea")
        assert counts(muniment("import", copy, "tea.jsonl", "--json"))["PUBLIC", "note"] == {"unchanged": 1}
        assert len(list(session.list_notes())) == 1


@pytest.mark.proof
def test_many_items_go_in_several_calls_and_keep_their_order(muniment, at, agent, host, fresh):
    for begin in range(0, 250, 50):
        at(PUBLIC).edit_notes([AddNote(str(number)) for number in range(begin, begin + 50)])
    at(INTERNAL).import_passages(NewPassage(str(number), event_time=NOON) for number in range(1201))
    muniment("export", agent, "-o", "many.jsonl")
    copy = fresh()

    done = counts(muniment("import", copy, "many.jsonl", "--json"))
    assert (done["PUBLIC", "note"], done["INTERNAL", "passage"]) == ({"added": 250}, {"added": 1201})
    assert exported(muniment, copy) == exported(muniment, agent)
    assert views(host, copy) == views(host, agent)


def test_large_notes_go_in_calls_that_a_request_can_hold(muniment, host, fresh, dev):
    """Twenty of 60 KiB are more than the 1 MiB of one request."""
    contents = [f"{number:02}" + "é" * (30 * 1024 - 1) for number in range(20)]
    items = [
        {"kind": "note", "level": "public", "tier": "memory", "note_id": str(uuid.uuid4()), "content": content}
        for content in contents
    ]
    header = {"format": "muniment", "version": 1, "item_count": len(items)}
    (dev.folder / "heavy.jsonl").write_text("\n".join(json.dumps(each) for each in (header, *items)))
    copy = fresh(memory_char_limit=1_000_000)

    assert counts(muniment("import", copy, "heavy.jsonl", "--edited", "--json")) == {("PUBLIC", "note"): {"added": 20}}
    with host.open_session(copy, PUBLIC) as session:
        assert [note.content for note in session.list_notes()] == contents


# Ceilings.


@pytest.fixture
def up_to_internal(dev, muniment):
    """The environment of a caller whose host key ends at INTERNAL."""
    written = json.loads((dev.folder / DEVELOPMENT_FILE).read_text())
    made = muniment(
        "host-key", "create", "--tenant", "development", "--ceiling", "internal", "--data-dir", ".muniment", "--quiet"
    )
    return {"MUNIMENT_ADDRESS": written["address"], "MUNIMENT_HOST_KEY": line_of(made)}


def test_an_export_ends_at_the_ceiling_of_the_agent(muniment, full, up_to_internal):
    below = [line for line in exported(muniment, full) if json.loads(line)["level"] in {"public", "internal"}]
    assert exported(muniment, full, "--up-to", "internal") == below
    muniment("export", full, "--up-to", "internal", "-o", "below.jsonl")
    assert muniment("agent", "create", "bounded", **up_to_internal).returncode == 0
    assert muniment("import", "bounded", "below.jsonl", **up_to_internal).returncode == 0

    assert {json.loads(line)["level"] for line in exported(muniment, "bounded")} == {"public", "internal"}
    assert exported(muniment, "bounded", **up_to_internal) == exported(muniment, "bounded")
    refused = muniment("export", "bounded", "--up-to", "confidential", "-o", "no.jsonl")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "AGENT_CEILING_EXCEEDED" in refused.stderr
    assert "AGENT_NOT_FOUND" in muniment("export", full, "-o", "no.jsonl", **up_to_internal).stderr


def test_an_import_above_the_ceiling_is_refused_before_anything_is_written(muniment, full, fresh, up_to_internal, dev):
    copy = fresh()
    before = exported(muniment, copy)
    muniment("export", full, "-o", "above.jsonl")
    refused = muniment("import", copy, "above.jsonl", "--edited", **up_to_internal)

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "CEILING_EXCEEDED" in refused.stderr
    assert exported(muniment, copy) == before
    assert muniment("session", "list", copy).stdout == ""


def test_the_sessions_are_closed_and_in_the_list(muniment, full, fresh):
    copy = fresh()
    muniment("export", full, "--up-to", "internal", "-o", "closed.jsonl")
    muniment("import", copy, "closed.jsonl", "--edited")
    closed = objects(muniment("session", "list", copy, "--all", "--json"))
    assert muniment("session", "list", copy).stdout == ""
    assert [session["taint"] for session in closed] == ["PUBLIC", "INTERNAL"]
    assert len({session["conversation_id"] for session in closed}) == 2


# The data of other systems.


def test_what_langgraphs_own_store_had_is_found_by_ours(muniment, fresh, dev, host, database):
    with PostgresStore.from_conn_string(database.admin) as theirs:
        theirs.setup()
        theirs.put(("users", "42"), "theme", {"name": "dark", "sizes": [1, 2.5, None]})
        theirs.put(("users", "42"), "a/b %é", {"deep": {"text": HOSTILE}}, ttl=60)
        theirs.put(("docs",), "gone", {})
        theirs.delete(("docs",), "gone")
        had = {(item.namespace, item.key): item.value for item in theirs.search(())}
    (dev.folder / "store.jsonl").write_text(_as_psql_prints_it(database))
    copy = fresh()
    done = [muniment("import", copy, "store.jsonl", "--level", "internal").returncode for _ in range(2)]
    with host.open_session(copy, client.Classification.INTERNAL) as session:
        store = MunimentStore(session)
        found = {(item.namespace, item.key): item.value for item in store.search(())}
        matches = [item.key for item in store.search(("users",), query="dark")]
        expiring = [memory.key for memory in session.list_memories() if memory.expire_time]

    assert done == [0, 0]
    assert found == had
    assert len(found) == 2
    assert matches == ["theme"]
    assert len(expiring) == 1


def _as_psql_prints_it(database):
    """The table of PostgresStore, as `muniment import --help` says to print it."""
    with database.as_admin() as admin:
        return "".join(f"{row.row_to_json}\n" for row in admin.execute("SELECT row_to_json(store)::text FROM store"))


def test_what_mem0_had_is_searched_as_passages(muniment, fresh, dev, host):
    memories = [{"id": "a1", "memory": "Likes tea.", "user_id": "ada", "created_at": "2026-01-01T00:00:00-08:00"}]
    (dev.folder / "mem0.json").write_text(json.dumps({"results": memories}))
    copy = fresh()
    done = [muniment("import", copy, "mem0.json", "--level", "internal").returncode for _ in range(2)]
    with host.open_session(copy, client.Classification.INTERNAL) as session:
        found = [(each.passage.content, each.passage.classification) for each in session.search_passages("tea")]

    assert done == [0, 0]
    assert found == [("Likes tea.", client.Classification.INTERNAL)]


# Refusals.


def test_one_bad_line_and_nothing_is_imported(muniment, full, fresh, dev):
    copy = fresh()
    before = exported(muniment, copy)
    muniment("export", full, "-o", "bad.jsonl")
    file = dev.folder / "bad.jsonl"
    file.write_text(file.read_text().replace('"works at night"', '"hush\\u0000"', 1))
    refused = muniment("import", copy, "bad.jsonl", "--edited")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "content must not contain U+0000" in refused.stderr
    assert "hush" not in refused.stderr
    assert exported(muniment, copy) == before


@pytest.mark.parametrize(
    ("item", "rule"),
    [
        ({"kind": "memory", "key": " hush", "content": "x"}, "key must not begin or end with a space"),
        ({"kind": "memory", "key": "k", "content": "hush\0"}, "content must not contain U+0000"),
        ({"kind": "memory", "key": "k", "content": ""}, "content is too short"),
        ({"kind": "memory", "key": "k", "content": "hush" * 40_000}, "content is too long"),
        ({"kind": "memory", "key": "k", "content": "x", "tags": ["ok", "hush" * 20]}, "tags[1] must be at most 64"),
        ({"kind": "memory", "key": "k", "content": "x", "tags": [str(number) for number in range(33)]}, "tags has too"),
        ({"kind": "block", "label": "hush hush", "content": "x"}, "label must be letters"),
        ({"kind": "passage", "passage_id": "hush", "content": "x"}, "passage_id must be a UUID"),
        ({"kind": "passage", "passage_id": SAME_ID, "content": "x", "author": "hush\n"}, "author must not contain"),
    ],
    ids=lambda value: json.dumps(value)[:40] if isinstance(value, dict) else "",
)
def test_what_the_server_refuses_is_reported_by_line_before_anything_is_written(muniment, dev, fresh, item, rule):
    first = {"level": "public", "content": "x"} | (
        {"kind": "passage", "passage_id": str(uuid.uuid4())} if item["kind"] == "passage" else {"kind": item["kind"]}
    )
    first |= {"key": "a"} if item["kind"] == "memory" else {"label": "a"} if item["kind"] == "block" else {}
    header = {"format": "muniment", "version": 1}
    written = [header, first, item | {"level": "public"}]
    (dev.folder / "refused.jsonl").write_text("\n".join(map(json.dumps, written)))
    copy = fresh()
    before = exported(muniment, copy)
    for options in ((), ("--dry-run",)):
        refused = muniment("import", copy, "refused.jsonl", "--edited", *options)

        assert (refused.returncode, refused.stdout) == (1, "")
        assert f"refused: line 3: {rule}" in refused.stderr
        assert "the server refuses 1 of 2 items; nothing was imported" in refused.stderr
        assert "hush" not in refused.stderr
        assert exported(muniment, copy) == before


def test_all_that_is_refused_is_named_and_the_rest_can_be_imported(muniment, dev, fresh):
    """In each kind, in several calls, and at several levels; the dry run says the same."""
    passages = [
        {"kind": "passage", "passage_id": str(uuid.uuid4()), "content": "x" if number % 300 else ""}
        for number in range(601)
    ]
    memories = [
        {"kind": "memory", "key": f"key {number}" + " " * (number % 60 == 0), "content": "x"} for number in range(130)
    ]
    notes = [
        {
            "kind": "note",
            "tier": "memory",
            "note_id": str(uuid.uuid4()),
            "content": f"x {number}" + "\0" * (number == 25),
        }
        for number in range(30)
    ]
    blocks = [{"kind": "block", "label": label, "content": "x"} for label in ("good", "not good")]
    items = [{"level": "internal"} | item for item in (*passages, *memories, *notes, *blocks)]
    items.append({"kind": "memory", "level": "public", "key": "", "content": "x"})
    (dev.folder / "many.jsonl").write_text("\n".join(map(json.dumps, [{"format": "muniment", "version": 1}, *items])))
    bad = [0, 300, 600, 601, 661, 721, 756, 762, 763]
    copy = fresh()
    refused = muniment("import", copy, "many.jsonl", "--edited")
    dry = muniment("import", copy, "many.jsonl", "--edited", "--skip-refused", "--dry-run", "--json")
    done = muniment("import", copy, "many.jsonl", "--edited", "--skip-refused", "--json")

    named = [f"refused: line {index + 2}:" for index in bad]
    assert refused.returncode == 1
    assert [
        line.partition(":")[0] + ":" + line.split(":")[1] + ":" for line in refused.stderr.splitlines()[:-2]
    ] == named
    assert [line for line in done.stderr.splitlines() if line.startswith("refused: ")] == refused.stderr.splitlines()[
        :-2
    ]
    assert (
        counts(dry)
        == counts(done)
        == {
            ("INTERNAL", "passage"): {"added": 598},
            ("INTERNAL", "memory"): {"added": 127},
            ("INTERNAL", "note"): {"added": 29},
            ("INTERNAL", "block"): {"added": 1},
        }
    )


@pytest.mark.parametrize(
    ("note", "rule"),
    [
        ({"note_id": "hush"}, "note_id must be a UUID"),
        ({"note_id": f"{{{SAME_ID}}}"}, "note_id must be a UUID"),
        ({"content": ""}, "content is too short"),
        ({"content": "hush" * 40_000}, "content is too long"),
        ({"content": "hush\0"}, "content must not contain U+0000"),
    ],
    ids=lambda value: json.dumps(value)[:40] if isinstance(value, dict) else "",
)
def test_a_note_that_the_server_refuses_is_reported_by_line_before_anything_is_written(
    muniment, dev, fresh, note, rule
):
    copy = fresh()
    before = exported(muniment, copy)
    good = {"kind": "note", "level": "public", "tier": "memory", "note_id": str(uuid.uuid4()), "content": "x"}
    memory = {"kind": "memory", "level": "public", "key": "a", "content": "x"}
    bad = good | {"note_id": SAME_ID} | note
    header = {"format": "muniment", "version": 1}
    (dev.folder / "note.jsonl").write_text("\n".join(map(json.dumps, (header, memory, good, bad))))
    for options in ((), ("--dry-run",)):
        refused = muniment("import", copy, "note.jsonl", "--edited", *options)

        assert (refused.returncode, refused.stdout) == (1, "")
        assert f"line 4: {rule}" in refused.stderr
        assert "nothing was imported" in refused.stderr
        assert "hush" not in refused.stderr
    assert exported(muniment, copy) == before


def test_more_notes_than_a_call_holds_are_checked_as_they_are_written(muniment, dev, fresh, host):
    """The server checks a call, so the sum of several only when the last is made. What fits is there then."""
    notes = [
        {"kind": "note", "level": "public", "tier": "memory", "note_id": str(uuid.uuid4()), "content": "x" * 20}
        for _ in range(150)
    ]
    notes = [note | {"content": f"{number:020}"} for number, note in enumerate(notes)]
    header = {"format": "muniment", "version": 1}
    (dev.folder / "sum.jsonl").write_text("\n".join(map(json.dumps, (header, *notes))))
    copy = fresh(memory_char_limit=3000)
    refused = muniment("import", copy, "sum.jsonl", "--edited")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "the rest was not imported" in refused.stderr
    advice = refused.stderr.rpartition("muniment ")[2].split()
    assert muniment(*advice).returncode == 0
    done = counts(muniment("import", copy, "sum.jsonl", "--edited", "--json"))["PUBLIC", "note"]
    assert sum(done.values()) == 150
    with host.open_session(copy, PUBLIC) as session:
        assert [note.content for note in session.list_notes()] == [note["content"] for note in notes]


def test_a_budget_that_is_too_small_is_reported_before_anything_is_written(muniment, full, fresh):
    copy = fresh(memory_char_limit=30)
    before = exported(muniment, copy)
    muniment("export", full, "-o", "large.jsonl")
    refused = muniment("import", copy, "large.jsonl", "--edited")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "nothing was imported" in refused.stderr
    assert exported(muniment, copy) == before

    advice = refused.stderr.rpartition("muniment ")[2].split()
    assert advice[:3] == ["agent", "update", copy]
    assert muniment(*advice).returncode == 0
    done = muniment("import", copy, "large.jsonl", "--edited")
    assert done.returncode == 0, done.stderr
    assert exported(muniment, copy) == exported(muniment, full)


def test_the_advised_limit_is_the_smallest_that_is_sufficient(muniment, full, fresh):
    muniment("export", full, "-o", "least.jsonl")
    refused = muniment("import", fresh(memory_char_limit=0), "least.jsonl", "--edited")
    least = int(refused.stderr.split()[-1])
    assert muniment("import", fresh(memory_char_limit=least - 1), "least.jsonl", "--edited").returncode == 1
    assert muniment("import", fresh(memory_char_limit=least), "least.jsonl", "--edited").returncode == 0


def test_a_tier_that_is_switched_off_is_reported_before_anything_is_written(muniment, full, fresh):
    copy = fresh(user_profile_enabled=False)
    before = exported(muniment, copy)
    muniment("export", full, "-o", "off.jsonl")
    refused = muniment("import", copy, "off.jsonl", "--edited")
    assert f"muniment agent update {copy} --profile" in refused.stderr
    assert exported(muniment, copy) == before


def test_a_note_does_not_change_its_tier(muniment, at, agent, dev):
    at(PUBLIC).add_note("hush")
    muniment("export", agent, "-o", "tier.jsonl")
    file = dev.folder / "tier.jsonl"
    file.write_text(file.read_text().replace('"tier": "memory"', '"tier": "user"'))
    refused = muniment("import", agent, "tier.jsonl", "--edited")
    assert refused.returncode == 1
    assert "line 2: the agent has a note with that id in the other tier" in refused.stderr


def test_an_import_that_breaks_off_says_how_far_it_came(muniment, at, agent, host, fresh):
    at(PUBLIC).save_memory("a", "x")
    at(PUBLIC).import_passages(NewPassage(str(number)) for number in range(3))
    *_, last = reversed(list(at(PUBLIC).list_passages()))
    muniment("export", agent, "-o", "broken.jsonl")
    copy = fresh()
    with host.open_session(copy, PUBLIC) as session:
        session.store_passage("hush", passage_id=last.passage_id)
    foreseen = muniment("import", copy, "broken.jsonl", "--edited", "--dry-run")
    assert "line 8: the agent has a passage with that id and another text" in foreseen.stderr
    broken = muniment("import", copy, "broken.jsonl", "--edited")

    assert (broken.returncode, broken.stdout) == (1, "")
    assert "Not finished. Written so far: 1 memory" in broken.stderr
    assert "find it: --dry-run" in broken.stderr
    assert "hush" not in broken.stderr


def test_what_has_expired_is_left_out(muniment, dev, fresh):
    expired = {"kind": "memory", "level": "public", "key": "k", "content": "x", "expire_time": "2020-01-01T00:00:00Z"}
    (dev.folder / "old.jsonl").write_text('{"format": "muniment", "version": 1}\n' + json.dumps(expired))
    done = muniment("import", fresh(), "old.jsonl", "--edited")
    assert (done.returncode, done.stdout) == (0, "")
    assert "omitted items that have expired: 1" in done.stderr


def test_that_there_is_nothing_to_import_is_said(muniment, fresh, tmp_path):
    (tmp_path / "vault").mkdir()
    (tmp_path / "mem0.json").write_text('{"results": []}')
    for name in ("vault", "mem0.json"):
        done = muniment("import", fresh(), str(tmp_path / name), "--level", "public")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "There is nothing to import.\n")


def test_a_missing_agent_or_file_is_reported(muniment, agent):
    assert "muniment agent create" in muniment("export", "no-such-agent", "-o", "x.jsonl").stderr
    missing = muniment("import", agent, "no-such-file")
    assert (missing.returncode, "no-such-file" in missing.stderr) == (1, True)


# The file.


def test_the_file_is_for_its_owner_and_is_not_overwritten(muniment, agent, dev):
    file = dev.folder / "mine.jsonl"
    first = muniment("export", agent, "-o", "mine.jsonl")
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "PUBLIC: 3 blocks\n")
    assert file.stat().st_mode & 0o777 == 0o600

    file.write_text("something else")
    file.chmod(0o644)
    refused = muniment("export", agent, "-o", "mine.jsonl")
    assert (refused.returncode, "--force" in refused.stderr) == (1, True)
    assert file.read_text() == "something else"
    assert muniment("export", agent, "-o", "mine.jsonl", "--force").returncode == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in dev.folder.iterdir() if "mine" in path.name] == ["mine.jsonl"]


def test_a_device_is_never_replaced(muniment, agent):
    refused = muniment("export", agent, "-o", "/dev/null", "--force")
    assert (refused.returncode, "is not a regular file" in refused.stderr) == (1, True)


def test_an_export_goes_through_a_pipe(muniment, full, fresh):
    copy = fresh()
    done = muniment("export", full)
    assert muniment("import", copy, "-", given=done.stdout).returncode == 0
    assert exported(muniment, copy) == exported(muniment, full)


def test_a_terminal_gets_a_bar_and_no_steering(muniment, full, fresh, dev):
    status, shown = on_a_terminal(dev.folder, "export", full)
    assert (status, "-o FILE" in shown) == (2, True)
    status, shown = on_a_terminal(dev.folder, "export", full, "-o", "-")
    assert status == 0
    assert "Reading" in shown
    assert "\\u202e" in shown
    assert "\u202e" not in shown

    status, shown = on_a_terminal(dev.folder, "export", full, "-o", "bar.jsonl")
    assert (status, "RESTRICTED: " in shown) == (0, True)
    status, shown = on_a_terminal(dev.folder, "import", fresh(), "bar.jsonl")
    assert (status, "Writing" in shown, "unchanged" in shown) == (0, True, True)
    assert "Reading" not in muniment("export", full).stderr


# Importers, from the file to the agent.


def test_what_others_keep_is_imported_at_the_level_that_is_stated(muniment, dev, agent, at):
    graph = '{"type": "entity", "name": "Ada", "entityType": "person", "observations": ["likes tea"]}\n'
    letta = {"core_memory": [{"label": "persona/tone", "value": "warm"}], "passages": [{"id": "p", "text": "once"}]}
    (dev.folder / "graph.jsonl").write_text(graph)
    (dev.folder / "agent.af").write_text(json.dumps(letta))
    for file in ("graph.jsonl", "agent.af"):
        assert "give --level" in muniment("import", agent, file).stderr
        done = muniment("import", agent, file, "--level", "confidential")
        assert done.returncode == 0, done.stderr
        again = counts(muniment("import", agent, file, "--level", "confidential", "--json"))
        assert all(set(each) == {"unchanged"} for each in again.values())

    assert list(at(INTERNAL).list_memories()) == []
    assert at(CONFIDENTIAL).get_memory("Ada").content == "likes tea"
    assert at(CONFIDENTIAL).get_block("persona.tone").content == "warm"
    assert [passage.content for passage in at(CONFIDENTIAL).list_passages()] == ["once"]


@pytest.fixture
def both(host, agent, at):
    """An agent with what a trusted session wrote at INTERNAL, and what an untrusted one did. And the former session."""
    with host.open_session(agent, INTERNAL, integrity=client.Integrity.TRUSTED) as planner:
        planner.save_memory("plan", "ship")
        planner.add_note("checks twice")
        planner.update_block("personality", "calm")
        planner.store_passage("decided")
        at(INTERNAL).save_memory("mail", "buy now")
        at(INTERNAL).save_memory("plan", "spoiled")
        yield agent


def trusted_keys(host, agent):
    with host.open_session(agent, INTERNAL, integrity=client.Integrity.TRUSTED) as planner:
        return {memory.key: memory.content for memory in planner.list_memories()}


def test_what_trusted_sessions_wrote_is_in_a_file_of_its_own(muniment, both):
    untrusted = [json.loads(item) for item in exported(muniment, both)]
    header, *trusted = map(json.loads, muniment("export", both, "--integrity", "trusted").stdout.splitlines())

    assert [item["content"] for item in untrusted if item.get("content")] == ["buy now", "spoiled"]
    assert header["integrity"] == "trusted"
    assert [item["content"] for item in trusted] == ["ship", "checks twice", "calm", "decided"]


def test_a_note_that_is_trusted_already_is_imported_beside_it(muniment, both, tmp_path):
    """Otherwise, it would go with the trusted note."""
    file = tmp_path / "trusted.jsonl"
    muniment("export", both, "--integrity", "trusted", "-o", str(file))

    outcomes = counts(muniment("import", both, str(file), "--json"))

    assert outcomes["INTERNAL", "note"] == {"added": 1}
    assert "checks twice" in [json.loads(item).get("content") for item in exported(muniment, both)]


def test_an_import_is_trusted_if_the_host_says_it(muniment, both, fresh, host, tmp_path):
    file = tmp_path / "trusted.jsonl"
    muniment("export", both, "--integrity", "trusted", "-o", str(file))
    plain, vouched = fresh(), fresh()

    assert muniment("import", plain, str(file)).returncode == 0
    assert muniment("import", vouched, str(file), "--integrity", "trusted").returncode == 0
    again = counts(muniment("import", vouched, str(file), "--integrity", "trusted", "--json"))
    assert {name for each in again.values() for name in each} == {"unchanged"}

    assert trusted_keys(host, plain) == {}
    assert trusted_keys(host, vouched) == {"plan": "ship"}


def test_what_untrusted_sessions_wrote_does_not_become_trusted_by_way_of_a_file(muniment, both, fresh, host, tmp_path):
    file = tmp_path / "untrusted.jsonl"
    muniment("export", both, "-o", str(file))
    other = fresh()

    refused = muniment("import", other, str(file), "--integrity", "trusted")

    assert refused.returncode == 1
    assert "untrusted sessions wrote what is in the file" in refused.stderr
    assert trusted_keys(host, other) == {}
    assert muniment("import", other, str(file), "--integrity", "trusted", "--edited").returncode == 0
    assert trusted_keys(host, other) == {"mail": "buy now", "plan": "spoiled"}
