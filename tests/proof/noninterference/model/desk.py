"""The release desk, as it must be: who may ask, who must approve, and what is written then."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from google.protobuf.message import Message

from muniment.v1 import release_pb2
from muniment.v1 import release_service_pb2 as pb
from tests.proof.noninterference.model.ground import Ground, Learned
from tests.proof.noninterference.rules import key_of, label_of
from tests.proof.noninterference.values import (
    LATER,
    Agent,
    ByName,
    Refused,
    Version,
    agree,
    flows,
    integrity_of,
    label_from,
    level_of,
    page_size,
    random_id,
    stamp,
)

APPROVALS = 2
"""How many keys beside the requester's must approve a release."""
MEMORY, BLOCK = 1, 3
"""The kinds that programs release."""
_OPEN, _RELEASED, _REJECTED, _EXPIRED = 1, 2, 3, 4
_WEEK = timedelta(days=7)


@dataclass
class Release:
    """The release of one revision."""

    asked: str
    """The operation that asked for it."""
    tenant: str
    agent: Agent
    kind: int
    name: str
    item: Version
    revision: int
    content: str
    source: int
    target: int
    reason: str
    requester: str
    """The key that asked for it; so with approvers."""
    created: datetime
    expires: datetime
    state: int = _OPEN
    approvers: dict[str, datetime] = field(default_factory=dict)
    """When each key approved it."""
    refusal: str = ""
    written: Version | None = None
    written_revision: int = 0


class Desk(Ground):
    """ReleaseService."""

    def __init__(self, learned: Learned) -> None:
        super().__init__(learned)
        self.desk_keys: dict[str, str] = {}
        """The ids of the keys that have both rights, by key."""
        self.releases: dict[str, Release] = {}
        self._asked: Release | None = None
        self._item_ids: dict[str, str] = {}

    def may_write(self, token: str, release_id: str, content_sha256: str) -> Release | None:
        """The release, if an approval by this key now writes it."""
        release = self.releases.get(release_id)
        if release is None or not self._exists(release) or self._why_not(token, release, content_sha256):
            return None
        if self._state(release) != _OPEN or len({*release.approvers, token}) < APPROVALS:
            return None
        return release if self._source(release) is release.item else None

    def _RequestRelease(self, tenant: str, ceiling: int, request: pb.RequestReleaseRequest) -> Message:
        source = label_from(request.source_classification, request.source_integrity)
        target = label_from(request.classification, request.integrity)
        ttl = request.ttl.ToTimedelta() if request.HasField("ttl") else _WEEK
        if bool(request.name) == bool(request.item_id) or flows(source, target) or ttl < timedelta(seconds=1):
            raise Refused("FIELD_INVALID")
        name = {BLOCK: label_of}.get(request.kind, key_of)(request.name)
        if max(level_of(source), level_of(target)) > ceiling:
            raise Refused("CEILING_EXCEEDED")
        if self._token not in self.desk_keys:
            raise Refused("RELEASE_RIGHT_MISSING")
        [agent] = self._reached(tenant, ceiling, request.agent_id)
        if level_of(source) > agent.shown.ceiling:
            raise Refused("AGENT_CEILING_EXCEEDED")
        item = self.seen(_items(agent, request.kind), name, source).get(source)
        if level_of(target) > agent.shown.ceiling:
            raise Refused("AGENT_CEILING_EXCEEDED")
        if item is None or _hash_of(item) != request.content_sha256 or request.revision not in {0, item.revision}:
            raise Refused("RELEASE_SOURCE_CHANGED")
        times = (self.now, self.now + ttl)
        self._asked = Release(
            self._operation, tenant, agent, request.kind, name, item, item.revision, item.content, source, target,
            request.reason, self._token, *times,
        )  # fmt: skip
        return pb.RequestReleaseResponse(release=self._shown(LATER, self._asked))

    def _ApproveRelease(self, tenant: str, ceiling: int, request: pb.ApproveReleaseRequest) -> Message:
        release = self._release(tenant, ceiling, request.release_id)
        if reason := self._why_not(self._token, release, request.content_sha256):
            raise Refused(reason)
        has_approved = self._token in release.approvers
        if self._state(release) != _OPEN and not (release.state == _RELEASED and has_approved):
            raise Refused("RELEASE_EXPIRED" if self._state(release) == _EXPIRED else "RELEASE_NOT_OPEN")
        if release.state == _OPEN:
            if not has_approved:
                release.approvers[self._token] = self.now
            if len(release.approvers) >= APPROVALS:
                self._write_release(release)
        return pb.ApproveReleaseResponse(release=self._shown(request.release_id, release))

    def _write_release(self, release: Release) -> None:
        item = self._source(release)
        if item is None:
            release.refusal = "RELEASE_SOURCE_CHANGED"
            raise Refused(release.refusal)
        items = _items(release.agent, release.kind)
        seen = self.seen(items, release.name, release.target)
        if release.target in seen:
            self._overwrite(seen[release.target], item.content, item.tags, item.expires)
        else:
            new = self._new(item.content, tags=list(item.tags), expires=item.expires)
            items.setdefault(release.name, {})[release.target] = new
            if release.kind == BLOCK and seen:
                new.created = seen[max(seen)].created
        release.state, release.refusal = _RELEASED, ""
        release.written = items[release.name][release.target]
        release.written_revision = release.written.revision

    def _RejectRelease(self, tenant: str, ceiling: int, request: pb.RejectReleaseRequest) -> Message:
        release = self._release(tenant, ceiling, request.release_id)
        if self._token not in self.desk_keys:
            raise Refused("RELEASE_RIGHT_MISSING")
        if self._state(release) != _OPEN:
            raise Refused("RELEASE_EXPIRED" if self._state(release) == _EXPIRED else "RELEASE_NOT_OPEN")
        release.state, release.refusal = _REJECTED, ""
        return pb.RejectReleaseResponse(release=self._shown(request.release_id, release))

    def _GetRelease(self, tenant: str, ceiling: int, request: pb.GetReleaseRequest) -> Message:
        release = self._release(tenant, ceiling, request.release_id)
        answer = pb.GetReleaseResponse(release=self._shown(request.release_id, release))
        item = self._source(release) if self._state(release) == _OPEN else None
        if item is None or (self._token != release.requester and self._token not in self.desk_keys):
            return answer
        answer.text.CopyFrom(_text(release.name, item))
        seen = self.seen(_items(release.agent, release.kind), release.name, release.target)
        if seen:
            label = max(seen)
            answer.replaced.text.CopyFrom(_text(release.name, seen[label]))
            answer.replaced.classification = level_of(label)
            answer.replaced.integrity = integrity_of(label)
        return answer

    def _ListReleases(self, tenant: str, ceiling: int, request: pb.ListReleasesRequest) -> Message:
        filters = (request.agent_id, request.include_closed)
        last = self._last("ListReleases", request.page_token, filters, 0)
        wanted = sorted(
            (
                (release.created, release_id)
                for release_id, release in self.releases.items()
                if self._exists(release) and release.tenant == tenant and release.agent.shown.ceiling <= ceiling
                if request.agent_id in ("", release.agent.shown.agent_id)
                if request.include_closed or self._state(release) == _OPEN
                if last is None or (release.created, release_id) < last
            ),
            reverse=True,
        )
        page = wanted[: page_size(request.page_size)]
        more = self._more(page != wanted, filters, 0, page and page[-1])
        shown = [self._shown(release_id, self.releases[release_id]) for _, release_id in page]
        return pb.ListReleasesResponse(releases=shown, next_page_token=more)

    def _release(self, tenant: str, ceiling: int, release_id: str) -> Release:
        release = self.releases.get(release_id)
        if release is None or release.tenant != tenant or not self._exists(release):
            raise Refused("RELEASE_NOT_FOUND")
        if release.agent.shown.ceiling > ceiling:
            raise Refused("RELEASE_NOT_FOUND")
        return release

    def _exists(self, release: Release) -> bool:
        return self.agents.get((release.tenant, release.agent.shown.agent_id)) is release.agent

    def _why_not(self, token: str, release: Release, content_sha256: str) -> str:
        """Why the key may not approve it, whatever its state is."""
        if token == release.requester:
            return "RELEASE_OWN_REQUEST"
        if token not in self.desk_keys:
            return "RELEASE_RIGHT_MISSING"
        return "" if content_sha256 == _sha256(release.content) else "RELEASE_HASH_MISMATCH"

    def _state(self, release: Release) -> int:
        return _EXPIRED if release.state == _OPEN and release.expires <= self.now else release.state

    def _source(self, release: Release) -> Version | None:
        """The item, if it is still what was to be released."""
        for versions in _items(release.agent, release.kind).values():
            if versions.get(release.source) is release.item and self._lives(release.item):
                return release.item if release.item.revision == release.revision else None
        return None

    def _shown(self, release_id: str, release: Release) -> release_pb2.Release:
        approvals = sorted((when, self.desk_keys[key]) for key, when in release.approvers.items())
        return release_pb2.Release(
            release_id=release_id,
            agent_id=release.agent.shown.agent_id,
            kind=release.kind,  # type: ignore[arg-type]  # a number of the enum
            item_id=LATER + release.item.symbol,
            revision=release.revision,
            content_sha256=_sha256(release.content),
            source_classification=level_of(release.source),
            source_integrity=integrity_of(release.source),
            classification=level_of(release.target),
            integrity=integrity_of(release.target),
            state=self._state(release),  # type: ignore[arg-type]  # a number of the enum
            reason=release.reason,
            requester_host_key_id=self.desk_keys[release.requester],
            approver_host_key_ids=[key_id for _, key_id in approvals],
            required_approvals=APPROVALS,
            create_time=stamp(release.created),
            expire_time=stamp(release.expires),
            refusal=release.refusal,
            released_item_id=LATER + release.written.symbol if release.written else "",
            released_revision=release.written_revision,
        )

    def _fill_release(self, rpc: str, known: release_pb2.Release, actual: release_pb2.Release) -> None:
        """Copy the ids that the server has made up, if they agree with earlier answers: an item has one."""
        known.release_id = random_id(known.release_id, actual.release_id)
        for name in ("item_id", "released_item_id"):
            if symbol := getattr(known, name):
                made = random_id(symbol, getattr(actual, name))
                agree(rpc, self._item_ids.setdefault(symbol, made) == made, "the item is another one")
                setattr(known, name, made)

    def _adopt_release(self, release_id: str) -> None:
        assert self._asked is not None
        self.releases[release_id] = self._asked


def _items(agent: Agent, kind: int) -> ByName:
    return {MEMORY: agent.memories, BLOCK: agent.blocks}.get(kind, {})


def _text(name: str, item: Version) -> release_pb2.ReleasedText:
    expires = stamp(item.expires) if item.expires else None
    return release_pb2.ReleasedText(name=name, content=item.content, tags=item.tags, expire_time=expires)


def _sha256(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def _hash_of(item: Version) -> str:
    return _sha256(item.content)


def hashes(release: Any) -> str:
    """What an approval of the release names."""
    return _sha256(release.content)
