"""Releases in the contract."""

from __future__ import annotations

from uuid import UUID

from muniment.v1 import audit_pb2, note_pb2, release_pb2
from muniment.v1 import release_service_pb2 as pb
from muniment_server.domain import text
from muniment_server.domain.classification import Classification, Integrity, Label
from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.domain.ids import ItemId
from muniment_server.domain.items import Item, ItemKind
from muniment_server.domain.releases import DEFAULT_TTL, Release
from muniment_server.items.wire import (
    duration_from_proto,
    integrity_to_proto,
    label_to_proto,
    level_to_proto,
    name_from_proto,
    time_to_proto,
)
from muniment_server.releases.desk import Wanted


def wanted_from_proto(request: pb.RequestReleaseRequest) -> Wanted:
    """What to release. Raises InvalidArgument unless it is exactly one of a name and an item."""
    if bool(request.name) == bool(request.item_id):
        raise InvalidArgument(FieldViolation("name", "set exactly one of name and item_id"))
    kind = ItemKind(request.kind)
    source, target = (
        Label.of(Classification(level), Integrity(integrity))
        for level, integrity in (
            (request.source_classification, request.source_integrity),
            (request.classification, request.integrity),
        )
    )
    return Wanted(
        agent_id=request.agent_id,
        kind=kind,
        name=name_from_proto(request.name, kind) if request.name else None,
        item_id=ItemId(UUID(request.item_id)) if request.item_id else None,
        revision=request.revision,
        content_hash=bytes.fromhex(request.content_sha256),
        source=source,
        target=target,
        reason=text.plain(request.reason, field="reason"),
        ttl=duration_from_proto(request.ttl, field="ttl") if request.HasField("ttl") else DEFAULT_TTL,
    )


def release_to_proto(release: Release) -> release_pb2.Release:
    """A release."""
    return release_pb2.Release(
        release_id=str(release.release_id),
        agent_id=release.agent_id,
        kind=audit_pb2.ItemKind.ValueType(release.kind),
        item_id=str(release.item_id),
        revision=release.revision,
        content_sha256=release.content_hash.hex(),
        source_classification=level_to_proto(release.source.level),
        source_integrity=integrity_to_proto(release.source.integrity),
        **label_to_proto(release.target),
        state=release_pb2.ReleaseState.ValueType(release.state),
        reason=release.reason,
        requester_host_key_id=str(release.requester),
        approver_host_key_ids=map(str, release.approvers),
        required_approvals=release.required,
        create_time=time_to_proto(release.create_time),
        expire_time=time_to_proto(release.expire_time),
        refusal=release.refusal,
        released_item_id=str(release.new_item_id or ""),
        released_revision=release.new_revision or 0,
    )


def text_to_proto(kind: ItemKind, item: Item) -> release_pb2.ReleasedText:
    """The text of *item*, and all that is stored with it."""
    return release_pb2.ReleasedText(
        name=item.name,
        content=item.content,
        tags=item.tags,
        thread=item.thread or "",
        author=item.author or "",
        tier=note_pb2.Tier.ValueType(item.tier) if kind is ItemKind.NOTE else note_pb2.TIER_UNSPECIFIED,
        event_time=time_to_proto(item.event_time),
        expire_time=time_to_proto(item.expire_time),
    )


def replaced_to_proto(kind: ItemKind, item: Item) -> release_pb2.ReplacedItem:
    """The item that a release would replace."""
    return release_pb2.ReplacedItem(text=text_to_proto(kind, item), **label_to_proto(item.label))
