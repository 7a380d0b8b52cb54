"""Audit events in the contract."""

from __future__ import annotations

from uuid import UUID

from muniment.v1 import audit_pb2
from muniment_server.audit_log.repository import AuditEvent, Checkpoint
from muniment_server.domain.classification import Integrity, Label
from muniment_server.items.wire import integrity_to_proto, label_to_proto, level_to_proto, time_to_proto


def event_to_proto(event: AuditEvent) -> audit_pb2.AuditEvent:
    """An audit event. Fields that do not apply stay empty."""
    return audit_pb2.AuditEvent(
        event_id=str(event.event_id),
        time=time_to_proto(event.time),
        classification=level_to_proto(event.classification),
        integrity=integrity_to_proto(Integrity(event.trusted)),
        agent_id=event.agent_id or "",
        session_id=_text(event.session_id),
        host_key_id=_text(event.host_key_id),
        method=event.method,
        outcome=event.outcome,
        kind=audit_pb2.ItemKind.ValueType(event.kind or 0),
        item_id=_text(event.item_id),
        revision=event.revision or 0,
        result_count=event.result_count or 0,
        reason=event.reason or "",
    )


def checkpoint_to_proto(label: Label, checkpoint: Checkpoint | None) -> audit_pb2.AuditCheckpoint:
    """A checkpoint. All fields but the label are empty if nothing was sealed."""
    if checkpoint is None:
        return audit_pb2.AuditCheckpoint(**label_to_proto(label))
    return audit_pb2.AuditCheckpoint(
        **label_to_proto(label),
        seal_number=checkpoint.number,
        event_count=checkpoint.event_count,
        head_hash=checkpoint.hash.hex(),
        time=time_to_proto(checkpoint.time),
    )


def _text(value: UUID | None) -> str:
    return str(value) if value is not None else ""


def position_of(event: AuditEvent) -> tuple[str, str]:
    """What a page token names: the event after which the list continues."""
    return event.time.isoformat(), str(event.event_id)
