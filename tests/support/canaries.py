"""A word that is nowhere else, in every call that takes one: to be looked for in logs."""

from __future__ import annotations

import uuid

from muniment_server.domain.ids import ItemId
from muniment_server.domain.items import Version
from muniment_server.items import paging
from tests.rpcs import RPCS, filled, observe
from tests.support.answers import CONFIDENTIAL, LEVELS
from tests.support.methods import FOR_HOSTS, FOR_SESSIONS, request_of
from tests.support.services import failure_of

TABLE = "muniment_confidential.item"
BROKEN = "delete_time IS NULL AND content LIKE '%broken'"
DAMAGES = {
    "ADD CONSTRAINT forced CHECK (content = '') NOT VALID": "DROP CONSTRAINT forced",
    f"ADD CONSTRAINT forced EXCLUDE (content WITH =) WHERE ({BROKEN})": "DROP CONSTRAINT forced",
    "ADD CONSTRAINT forced CHECK (content::integer > 0) NOT VALID": "DROP CONSTRAINT forced",
    "RENAME COLUMN tags TO labels": "RENAME COLUMN labels TO tags",
}
"""What makes a write fail with a message that quotes what was sent, and what repairs it."""


TOKENS = {"etag", "page_token", "if_none_match"}
"""Fields of a form of their own, which are refused with any other text."""
STALE = paging.etag(Version(ItemId(uuid.UUID(int=1)), 1))
OTHERS = {
    "SaveMemory": lambda w: ({"key": w.word, "content": w.text, "etag": STALE},),
    "SearchMemories": lambda w: ({"query": f"'{w.word}' & ! : * \\\\"},),
    "AddNote": lambda w: (
        {"content": w.word, "tier": 2},
        {"content": w.word * 100},  # over the budget, which quotes notes
        {"content": w.word * 100, "tier": 2},
    ),
    "UpdateNote": lambda w: (
        {"content": w.text, "note_id": w.note, "etag": STALE},
        {"content": w.text, "note_id": w.note, "tier": 2},
    ),
    "EditNotes": lambda w: (
        {"edits": [{"add": {"content": w.text}}, {"delete": {"note_id": w.new}}], "validate_only": True},
        {"edits": [{"add": {"content": w.text * 100}}]},
        {"edits": [{"update": {"note_id": w.word, "content": w.text}}]},
    ),
    "EditBlock": lambda w: (
        {"label": w.word, "insert": {"line": 1, "content": f"{w.word} line"}},
        {"label": w.word, "replace": {"old": f"{w.word} line", "new": w.word}},
        {"label": w.word, "replace": {"old": w.word, "new": w.word}},
        {"label": w.word, "replace": {"old": f"{w.word} never", "new": w.word}},
        {"label": w.word, "insert": {"line": 99, "content": w.word}},
        {"label": w.word, "append": {"content": w.word + "x" * 65_490}},
        {"label": f"{w.word}-never", "append": {"content": w.word}},
    ),
    "UpdateBlock": lambda w: ({"label": w.word, "content": w.word, "etag": STALE},),
    "DeleteBlock": lambda w: ({"label": w.word, "etag": STALE}, {"label": f"{w.word}-never"}),
    "StorePassage": lambda w: ({"content": f"{w.word} other", "passage_id": w.passage},),
    "GetPassage": lambda w: ({"passage_id": w.new},),
}
"""Other requests than those of tests/rpcs.py, for what they are refused with."""


def new_canary():
    """A word that is nowhere else, and short enough to be whole in the preview of a note."""
    return f"CANARY-{uuid.uuid4().hex[:20]}"


def postgres_log(postgres):
    """All that *postgres* has logged."""
    return (postgres._directory / "postgres.log").read_text("utf-8", errors="replace")


def use_everything(service, canary):
    """Every row of tests/rpcs.py, at each level, with the canary wherever text goes in: it succeeds, and is refused."""
    host = service.host()
    sessions = [filled(host, level, word=f"{canary}-{level.name}", content=canary) for level in LEVELS]
    for session, world in sessions:
        for rpc, fields in OTHERS.items():
            for each in fields(world):
                observe(session, rpc, each)
        for rpc in [rpc for rpc in RPCS if rpc not in FOR_HOSTS and rpc != "CloseSession"]:
            use_row(session, rpc, world)
            observe(host, rpc, RPCS[rpc].request(world))
        failure_of(lambda session=session: session.send("GetMemory", b"\x0a\xff" + canary.encode()))
    for session, world in sessions:
        for rpc in [rpc for rpc in RPCS if rpc not in FOR_SESSIONS]:
            observe(session, rpc, RPCS[rpc].request(world))
            use_row(host, rpc, world)


def use_row(caller, rpc, world):
    """One call twice, and others like it that are refused."""
    row = RPCS[rpc]
    fields = row.request(world)
    observe(caller, rpc, fields)
    observe(caller, rpc, fields)
    for end in ("\0", "\n", "x" * 9_000):
        observe(caller, rpc, longer(fields, end))
    for refused in row.refused(world):
        observe(caller, rpc, refused)
    for name in TOKENS.intersection(request_of(rpc).fields_by_name):
        observe(caller, rpc, fields | {name: world.word})


def longer(value, end):
    """The same with *end* after each text."""
    if isinstance(value, dict):
        return {name: longer(each, end) for name, each in value.items()}
    if isinstance(value, list):
        return [longer(each, end) for each in value]
    return value + end if isinstance(value, str) else value


def break_everything(service, canary):
    """Faults of many kinds, each in the middle of a write of each kind."""
    session = service.session(CONFIDENTIAL)
    text = f"{canary} broken"
    session.save_memory(key=canary, content=text)
    writes = [
        lambda: session.save_memory(key=canary + "3", content=text),
        lambda: session.save_memories(memories=[{"key": canary + number, "content": text} for number in "45"]),
        lambda: session.add_note(content=text),
        lambda: session.edit_notes(edits=[{"add": {"content": text}}]),
        lambda: session.update_block(label=canary + "3", content=text),
        lambda: session.store_passage(content=text, tags=[canary], thread=canary, author=canary),
        lambda: session.import_passages({"content": text, "tags": [canary], "thread": canary, "author": canary}),
    ]
    for damage, repair in DAMAGES.items():
        with service.database.as_owner() as owner:
            owner.execute(f"ALTER TABLE {TABLE} {damage}".encode())
            assert [failure_of(write).code.name for write in writes] == ["INTERNAL"] * len(writes), damage
            owner.execute(f"ALTER TABLE {TABLE} {repair}".encode())
