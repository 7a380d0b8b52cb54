"""ReleaseService."""

from __future__ import annotations

import hashlib
from typing import Any

from tests.proof.golden.contract import LEVELS, PUBLIC, RESTRICTED
from tests.proof.golden.stage import Actor, Stage


def releases(stage: Stage) -> None:
    for ceiling in LEVELS:
        _at_a_ceiling(stage, ceiling)
    _kinds(stage)
    _refused(stage)
    _late(stage)


def _at_a_ceiling(stage: Stage, ceiling: int) -> None:
    stage.say(f"Hosts up to {LEVELS[ceiling]}")
    name = f"of-{LEVELS[ceiling].lower()}"
    asks, approves = (stage.host(ceiling, name=each) for each in ("asks", "approves"))
    asks.create_agent(agent_id=name)
    session = stage.open(ceiling, name, host=asks)
    trusted = stage.open(ceiling, name, host=asks, integrity=1)
    asked: Any = None
    for content in ("first", "second"):
        session.save_memory(key="plan", content=content, tags=["trip"])
        asked = asks.request_release(**_fields(name, ceiling, content)).release
        asks.get_release(release_id=asked.release_id)
        asks.approve_release(release_id=asked.release_id, content_sha256=asked.content_sha256)
        approves.approve_release(release_id=asked.release_id, content_sha256="ab" * 32)
        stage.host(ceiling).approve_release(release_id=asked.release_id, content_sha256=asked.content_sha256)
        approves.approve_release(release_id=asked.release_id, content_sha256=asked.content_sha256)
        approves.approve_release(release_id=asked.release_id, content_sha256=asked.content_sha256)
        trusted.get_memory(key="plan")
    approves.get_release(release_id=asked.release_id)
    approves.reject_release(release_id=asked.release_id)
    again = asks.request_release(**_fields(name, ceiling, "second")).release
    approves.reject_release(release_id=again.release_id, reason="not now")
    approves.approve_release(release_id=again.release_id, content_sha256=again.content_sha256)
    changed = asks.request_release(**_fields(name, ceiling, "second")).release
    session.save_memory(key="plan", content="third")
    approves.approve_release(release_id=changed.release_id, content_sha256=changed.content_sha256)
    approves.get_release(release_id=changed.release_id)
    approves.list_releases(agent_id=name)
    approves.pages("ListReleases", agent_id=name, include_closed=True, page_size=2)
    approves.list_audit_events(agent_id=name)
    _as_others_see_it(stage, ceiling, session, changed)


def _as_others_see_it(stage: Stage, ceiling: int, session: Actor, release: Any) -> None:
    """Without a right, below the ceiling, and as a session."""
    fields = _fields(release.agent_id, ceiling, "third")
    stage.host(ceiling).request_release(**fields)
    stage.host(tenant="globex").list_releases()
    for host in (stage.host(tenant="globex"), stage.host(max(ceiling - 1, PUBLIC))):
        host.get_release(release_id=release.release_id)
        host.reject_release(release_id=release.release_id)
    stage.host(ceiling).list_releases(page_token="no token")
    for rpc in ("RequestRelease", "ApproveRelease", "RejectRelease", "GetRelease", "ListReleases"):
        session.call(rpc)


def _kinds(stage: Stage) -> None:
    stage.say("A note, a block and a passage, to a lower level")
    asks, approves = (stage.host(name=each) for each in ("asks", "approves"))
    asks.create_agent(agent_id="alice")
    sessions = stage.levels("alice", host=asks)
    high = sessions[RESTRICTED]
    note_id = high.add_note(content="likes trains").note.note_id
    high.update_block(label="persona", content="brief")
    passage_id = high.store_passage(content="booked", thread="trip", author="Ann").passage.passage_id
    for kind, name, content in ((2, note_id, "likes trains"), (3, "persona", "brief"), (4, passage_id, "booked")):
        fields = {**_fields("alice", RESTRICTED, content), "kind": kind, "name": name, "classification": PUBLIC}
        asked = asks.request_release(**{**fields, "integrity": 0}).release
        approves.approve_release(release_id=asked.release_id, content_sha256=asked.content_sha256)
    sessions[PUBLIC].list_notes()
    sessions[PUBLIC].get_block(label="persona")
    sessions[PUBLIC].get_passage(passage_id=passage_id)


def _refused(stage: Stage) -> None:
    stage.say("What breaks rules")
    host = stage.host(name="asks")
    fields = _fields("alice", RESTRICTED, "brief")
    host.request_release(**{**fields, "name": ""})
    host.request_release(**{**fields, "integrity": 0})
    host.request_release(**{**fields, "agent_id": "never"})
    host.request_release(**{**fields, "content_sha256": "AB", "kind": 9, "ttl": {"seconds": 0}})
    host.request_release()
    host.approve_release(release_id="not-one")
    host.reject_release(reason="x" * 201)
    host.get_release()
    host.list_releases(page_token="no token")


def _late(stage: Stage) -> None:
    stage.say("After its time")
    asks, approves = (stage.host(name=each) for each in ("asks", "approves"))
    fields = {**_fields("alice", RESTRICTED, "brief"), "kind": 3, "name": "persona"}
    asked = asks.request_release(**fields).release
    stage.wait(days=8)
    approves.approve_release(release_id=asked.release_id, content_sha256=asked.content_sha256)
    approves.reject_release(release_id=asked.release_id)
    approves.get_release(release_id=asked.release_id)


def _fields(agent_id: str, level: int, content: str) -> dict[str, Any]:
    """The endorsement of the plan."""
    return {
        "agent_id": agent_id,
        "kind": 1,
        "name": "plan",
        "content_sha256": hashlib.sha256(content.encode()).hexdigest(),
        "source_classification": level,
        "classification": level,
        "integrity": 1,
        "reason": "it is known",
    }
