"""One message of each kind, as a server may answer it."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from muniment.v1 import (
    agent_pb2,
    audit_pb2,
    block_pb2,
    classification_pb2,
    memory_pb2,
    note_pb2,
    passage_pb2,
    release_pb2,
    session_pb2,
    version_pb2,
)

NOON = Timestamp(seconds=1_760_000_000)
NOTE_ID = "5d0c4a0e-4f52-4d7b-9a53-6c2f6f6f2d10"
PASSAGE_ID = "c7a1b1de-0f3c-4f0a-8f0e-2f1f0a7c9e55"
SESSION_ID = "9b2d0a52-52ac-4cf4-a3e0-0f9a0f0a5f11"
HOST_KEY = "mun_h_1_a-host-key"
TOKEN = "mun_s_1_a-session-token"

AGENT = agent_pb2.Agent(
    agent_id="ada",
    display_name="Ada",
    language="en",
    memory_settings=agent_pb2.MemorySettings(memory_enabled=True, memory_char_limit=0),
    create_time=NOON,
    update_time=NOON,
)
SESSION = session_pb2.Session(
    session_id=SESSION_ID,
    agent_id="ada",
    conversation_id="talk",
    taint=classification_pb2.CLASSIFICATION_INTERNAL,
    create_time=NOON,
    expire_time=NOON,
)
MEMORY = memory_pb2.Memory(
    key="tea",
    content="Assam, no sugar",
    tags=["taste"],
    classification=classification_pb2.CLASSIFICATION_PUBLIC,
    etag="item-1",
    create_time=NOON,
    update_time=NOON,
)
NOTE = note_pb2.Note(
    note_id=NOTE_ID,
    tier=note_pb2.TIER_MEMORY,
    content="Ada travels by night train only",
    classification=classification_pb2.CLASSIFICATION_PUBLIC,
    etag="item-1",
    create_time=NOON,
    update_time=NOON,
)
USAGE = note_pb2.Usage(tier=note_pb2.TIER_MEMORY, used_chars=31, limit_chars=2200, percent=1)
BLOCK = block_pb2.Block(
    owner_agent_id="ada",
    label="personality",
    content="Dry humor, no jargon.",
    classification=classification_pb2.CLASSIFICATION_PUBLIC,
    etag="item-1",
    create_time=NOON,
    update_time=NOON,
)
VERSION = version_pb2.ItemVersion(
    content="Assam, no sugar",
    tags=["taste"],
    classification=classification_pb2.CLASSIFICATION_PUBLIC,
    etag="item-1",
    update_time=NOON,
)
PASSAGE = passage_pb2.Passage(
    passage_id=PASSAGE_ID,
    content="Booked the sleeper to Vienna.",
    tags=["travel"],
    thread="trip",
    author="Ada",
    event_time=NOON,
    classification=classification_pb2.CLASSIFICATION_PUBLIC,
    create_time=NOON,
)
RULER = "═" * 48
PROMPT = f"""\
### personality
Dry humor, no jargon.
Never before nine.

{RULER}
MEMORY (agent notes) [1% — 31/2,200 chars]
{RULER}
Ada travels by night train only"""
AUDIT_EVENT = audit_pb2.AuditEvent(
    event_id="e1",
    time=NOON,
    classification=classification_pb2.CLASSIFICATION_PUBLIC,
    agent_id="ada",
    method="SaveMemory",
    outcome="OK",
    kind=audit_pb2.ITEM_KIND_MEMORY,
    item_id="i1",
    revision=1,
)
RELEASE_ID = "0192e4a0-7b1c-7def-8abc-0123456789ae"
RELEASE = release_pb2.Release(
    release_id=RELEASE_ID,
    agent_id="ada",
    kind=audit_pb2.ITEM_KIND_MEMORY,
    item_id=NOTE_ID,
    revision=1,
    content_sha256="ab" * 32,
    source_classification=classification_pb2.CLASSIFICATION_PUBLIC,
    classification=classification_pb2.CLASSIFICATION_PUBLIC,
    integrity=classification_pb2.INTEGRITY_TRUSTED,
    state=release_pb2.RELEASE_STATE_OPEN,
    reason="seen by Ada",
    requester_host_key_id=NOTE_ID,
    approver_host_key_ids=[SESSION_ID],
    required_approvals=2,
    create_time=NOON,
    expire_time=NOON,
)
