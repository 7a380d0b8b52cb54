"""A word that is nowhere else, in every call that takes one: to be looked for in logs."""

from __future__ import annotations

import uuid

from tests.rpcs import RPCS, World, observe
from tests.support.answers import CONFIDENTIAL, LEVELS, PUBLIC, RESTRICTED, in_future
from tests.support.methods import FOR_HOSTS, FOR_SESSIONS, takes_etag
from tests.support.services import failure_of

MEMORY, USER = 1, 2
TABLE = "muniment_confidential.item"
DAMAGES = {
    "ADD CONSTRAINT forced CHECK (content = '') NOT VALID": "DROP CONSTRAINT forced",
    "ADD CONSTRAINT forced EXCLUDE (content WITH =) WHERE (delete_time IS NULL)": "DROP CONSTRAINT forced",
    "ADD CONSTRAINT forced CHECK (content::integer > 0) NOT VALID": "DROP CONSTRAINT forced",
    "RENAME COLUMN tags TO labels": "RENAME COLUMN labels TO tags",
}
"""What makes a write fail with a message that quotes what was sent, and what repairs it."""


def new_canary():
    """A word that is nowhere else, and short enough to be whole in the preview of a note."""
    return f"CANARY-{uuid.uuid4().hex[:20]}"


def postgres_log(postgres):
    """All that *postgres* has logged."""
    return (postgres._directory / "postgres.log").read_text("utf-8", errors="replace")


def use_everything(service, canary):
    """Every call with the canary wherever text goes in, those that succeed and those that fail."""
    host = service.host()
    use_rows(service, host, canary)
    for level in LEVELS:
        session = service.session(level)
        etag = session.save_memory(key=canary, content=canary, tags=[canary], expire_time=in_future(days=1)).memory.etag
        session.save_memory(key=canary, content=canary + "2", tags=[canary])
        failure_of(session.save_memory, key=canary, content=canary, etag=etag)
        failure_of(session.save_memory, key=canary + "\n", content=canary + "\0", tags=[canary * 9], etag=canary)
        failure_of(session.save_memory, key=canary, content=canary, expire_time={"seconds": 1})
        session.get_memory(key=canary)
        failure_of(session.get_memory, key=canary + "never")
        session.list_memories(tag=canary)
        failure_of(session.list_memories, tag=canary, page_token=canary)
        session.search_memories(query=canary, tags=[canary])
        session.search_memories(query=f"'{canary}' & ! : * \\")
        failure_of(session.delete_memory, key=canary, etag=etag)
        session.delete_memory(key=canary)
        failure_of(session.delete_memory, key=canary)
        use_many(session, canary)
        failure_of(lambda session=session: session.send("GetMemory", b"\x0a\xff" + canary.encode()))
        failure_of(session.create_agent, agent_id=canary)
        use_notes(session, canary)
        use_blocks(session, canary)
        use_passages(session, canary)
        session.render_prompt()
        failure_of(session.render_prompt, sections=[0], if_none_match=canary)
        failure_of(session.render_prompt, if_none_match=canary * 9)
    failure_of(host.save_memory, key=canary, content=canary)
    failure_of(host.get_agent, agent_id=canary + " ")
    failure_of(host.get_session, session_id=canary)
    use_hosts_calls(service, host, canary)
    use_sharing(service, host, canary)


def use_rows(service, host, canary):
    """Every row of tests/rpcs.py, at each level: as it is, a second time, and with texts that are refused."""
    World(canary).fill_agents(host)
    sessions = {level: service.session(level, agent_id=canary) for level in LEVELS}
    for level, session in sessions.items():
        world = World(canary, session.session_id, level)
        world.fill(session, canary)
        for rpc in [rpc for rpc in RPCS if rpc not in FOR_HOSTS and rpc != "CloseSession"]:
            use_row(session, rpc, RPCS[rpc].request(world), canary)
    for rpc in [rpc for rpc in RPCS if rpc not in FOR_SESSIONS]:
        use_row(host, rpc, RPCS[rpc].request(World(canary, sessions[PUBLIC].session_id)), canary)


def use_row(caller, rpc, fields, canary):
    """One call, and others like it."""
    observe(caller, rpc, fields)
    observe(caller, rpc, fields)
    for end in ("\0", "\n", "x" * 9_000):
        observe(caller, rpc, longer(fields, end))
    if takes_etag(rpc):
        observe(caller, rpc, fields | {"etag": canary})


def longer(value, end):
    """The same with *end* after each text."""
    if isinstance(value, dict):
        return {name: longer(each, end) for name, each in value.items()}
    if isinstance(value, list):
        return [longer(each, end) for each in value]
    return value + end if isinstance(value, str) else value


def use_many(session, canary):
    """Many at once."""
    one = {"key": canary, "content": canary, "tags": [canary]}
    session.save_memories(memories=[one, {**one, "key": canary + "2"}])
    failure_of(session.save_memories, memories=[one, one])
    failure_of(session.save_memories, memories=[{**one, "expire_time": {"seconds": 1}}])
    failure_of(session.save_memories, memories=[{"key": canary + " ", "content": canary + "\0", "etag": canary}])
    session.list_memories(key_prefix=canary[:-1])
    failure_of(session.list_memories, key_prefix=canary + "\n")
    session.search_memories(query=canary, key_prefix=canary)
    session.delete_memories(tag=canary)
    failure_of(session.delete_memories, tag=canary * 9)
    for _ in range(2):
        session.store_passage(content=canary, tags=[canary], thread=canary)
        session.delete_passages(tag=canary)
        session.delete_passages(thread=canary)
    failure_of(session.delete_passages, tag=canary, thread=canary)
    failure_of(session.delete_passages, thread=canary + " ")


def use_notes(session, canary):
    """Both tiers; refusals of every kind, the budget's among them, which quotes notes."""
    for tier in (MEMORY, USER):
        note = session.add_note(content=f"{canary} {tier} note", tier=tier).note
        named = {"note_id": note.note_id, "tier": tier}
        failure_of(session.add_note, content=canary, **named)
        failure_of(session.add_note, content=canary * 100, tier=tier)
        failure_of(session.add_note, content=canary + "\0", note_id=canary)
        session.update_note(content=f"{canary} {tier} newer", **named)
        failure_of(session.update_note, content=canary, etag=note.etag, **named)
        failure_of(session.update_note, content=canary, note_id=note.note_id, tier=USER + MEMORY - tier)
        edits = [{"add": {"content": f"{canary} {tier} edit"}}, {"delete": {"note_id": note.note_id}}]
        session.edit_notes(edits=edits, tier=tier, validate_only=True)
        failure_of(session.edit_notes, edits=[*edits, {"add": {"content": canary * 100}}], tier=tier)
        failure_of(session.edit_notes, edits=[{"update": {"note_id": canary, "content": canary}}], tier=tier)
        session.edit_notes(edits=edits, tier=tier)
        session.list_notes(tier=tier)
        failure_of(session.list_notes, tier=tier, page_token=canary)
        session.search_notes(query=canary, tier=tier)
        failure_of(session.delete_note, **named)
        failure_of(session.delete_note, note_id=canary, etag=canary)
        session.delete_note(note_id=session.add_note(content=canary, tier=tier).note.note_id, tier=tier)


def use_blocks(session, canary):
    """Own blocks."""
    etag = session.update_block(label=canary, content=f"{canary} block").block.etag
    session.edit_block(label=canary, append={"content": canary})
    session.edit_block(label=canary, insert={"line": 1, "content": f"{canary} line"})
    session.edit_block(label=canary, replace={"old": f"{canary} line", "new": f"{canary} new line"})
    failure_of(session.edit_block, label=canary, replace={"old": canary, "new": canary})
    failure_of(session.edit_block, label=canary, replace={"old": canary + "never", "new": canary})
    failure_of(session.edit_block, label=canary, insert={"line": 99, "content": canary})
    failure_of(session.edit_block, label=canary, append={"content": canary + "x" * 65_490})
    failure_of(session.edit_block, label=canary, append={"content": canary + "\0"})
    failure_of(session.edit_block, label=canary + "-never", append={"content": canary})
    failure_of(session.update_block, label=canary, content=canary, etag=etag)
    failure_of(session.update_block, label=canary + " ", content=canary)
    session.get_block(label=canary)
    failure_of(session.get_block, label=canary, owner_agent_id="nobody")
    session.list_blocks()
    failure_of(session.list_blocks, page_token=canary)
    failure_of(session.delete_block, label=canary, etag=etag)
    failure_of(session.delete_block, label=canary + "-never")
    session.update_block(label=canary + "-gone", content=f"{canary} gone")
    session.delete_block(label=canary + "-gone")


def use_passages(session, canary):
    """Passages, one by one and as streams."""
    about = {"tags": [canary], "thread": canary, "author": canary}
    passage = session.store_passage(content=f"{canary} passage", **about).passage
    failure_of(session.store_passage, content=canary, passage_id=passage.passage_id, **about)
    failure_of(session.store_passage, content=canary + "\0", **about)
    failure_of(session.store_passage, content=canary, tags=[canary * 9], thread=canary + " ", author=canary + "\n")
    failure_of(session.store_passage, content=canary, passage_id=canary, expire_time={"seconds": 1})
    session.import_passages({"content": f"{canary} first", **about}, {"content": f"{canary} second", **about})
    failure_of(lambda: session.import_passages({"content": f"{canary} third"}, {"content": canary + "\0"}))
    failure_of(lambda: session.import_passages({"content": canary, "passage_id": passage.passage_id}))
    session.get_passage(passage_id=passage.passage_id)
    failure_of(session.get_passage, passage_id=canary)
    session.list_passages(tags=[canary], thread=canary)
    failure_of(session.list_passages, tags=[canary], thread=canary, page_token=canary)
    session.search_passages(query=canary, tags=[canary], thread=canary)
    failure_of(session.search_passages, query=canary, thread=canary + " ")
    session.delete_passage(passage_id=passage.passage_id)
    failure_of(session.delete_passage, passage_id=passage.passage_id)


def use_hosts_calls(service, host, canary):
    """Agents and sessions, with the canary where people write."""
    first = [{"label": canary, "content": f"{canary} first"}]
    host.create_agent(agent_id="carol", display_name=canary, initial_blocks=first)
    failure_of(host.create_agent, agent_id="carol", display_name=canary, initial_blocks=first)
    failure_of(host.create_agent, agent_id="dave", initial_blocks=[{"label": canary + " ", "content": canary}])
    host.update_agent(agent_id="carol", display_name=canary + "2")
    host.get_agent(agent_id="carol")
    host.list_agents()
    failure_of(host.list_agents, page_token=canary)
    session = service.session(PUBLIC, agent_id="carol")
    session.get_session()
    host.list_sessions(agent_id="carol")
    host.raise_taint(session_id=session.session_id, taint=RESTRICTED, reason=canary)
    new = host.reset_session(session_id=session.session_id, reason=canary).session
    host.close_session(session_id=new.session_id)
    host.list_audit_events()
    failure_of(host.list_audit_events, page_token=canary)
    host.get_audit_checkpoint(classification=PUBLIC)
    host.erase_items(agent_id="carol", kind=1, name=canary)
    host.erase_items(agent_id="carol", kind=1, tag=canary)
    failure_of(host.erase_items, agent_id="carol", kind=2, name=canary)
    session = service.session(PUBLIC, agent_id="carol")
    session.save_memory(key=canary, content=canary, tags=[canary])
    session.delete_memory(key=canary)
    deleted = {"agent_id": "carol", "kind": 1, "name": canary, "classification": PUBLIC}
    host.undelete_item(**deleted)
    failure_of(host.undelete_item, **deleted)
    failure_of(host.undelete_item, **deleted | {"kind": 2})
    host.delete_agent(agent_id="carol")


def use_sharing(service, host, canary):
    """Declarations and links."""
    shared = {"owner_agent_id": service.agent(), "label": canary}
    link = shared | {"agent_id": service.agent("bob")}
    failure_of(host.create_shared_block, content=canary, **shared)  # it has a PUBLIC version already
    failure_of(host.attach_block, **link)
    host.create_shared_block(**shared)
    host.attach_block(**link)
    service.session(PUBLIC, agent_id="bob").render_prompt()
    host.list_block_consumers(**shared)
    failure_of(host.list_block_consumers, page_token=canary, **shared)
    host.detach_block(**link)
    failure_of(host.detach_block, **link)
    failure_of(host.create_shared_block, owner_agent_id="alice", label=canary + " ", content=canary)
    host.delete_shared_block(**shared)
    failure_of(host.delete_shared_block, **shared)


def break_everything(service, canary):
    """Faults of many kinds, each in the middle of a write of each kind."""
    session = service.session(CONFIDENTIAL)
    session.save_memory(key=canary, content=canary)
    writes = [
        lambda: session.save_memory(key=canary + "3", content=canary),
        lambda: session.save_memories(memories=[{"key": canary + number, "content": canary} for number in "45"]),
        lambda: session.add_note(content=canary),
        lambda: session.edit_notes(edits=[{"add": {"content": canary}}]),
        lambda: session.update_block(label=canary + "3", content=canary),
        lambda: session.store_passage(content=canary, tags=[canary], thread=canary, author=canary),
        lambda: session.import_passages({"content": canary, "tags": [canary], "thread": canary, "author": canary}),
    ]
    for damage, repair in DAMAGES.items():
        with service.database.as_owner() as owner:
            owner.execute(f"ALTER TABLE {TABLE} {damage}".encode())
            assert [failure_of(write).code.name for write in writes] == ["INTERNAL"] * len(writes), damage
            owner.execute(f"ALTER TABLE {TABLE} {repair}".encode())
