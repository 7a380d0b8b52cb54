"""Releases of one memory, the plan of alice, as tests ask for them and approve them."""

from __future__ import annotations

import hashlib
from typing import Any

from muniment_server.domain.classification import Label

MEMORY, NOTE, BLOCK, PASSAGE = 1, 2, 3, 4
OPEN, RELEASED, REJECTED, EXPIRED = 1, 2, 3, 4
UNTRUSTED, TRUSTED = Label.PUBLIC, Label.PUBLIC_TRUSTED
TEXT = "Friday, not Monday"
DENIED, FAILED = "PERMISSION_DENIED", "FAILED_PRECONDITION"
NOT_FOUND = "NOT_FOUND RELEASE_NOT_FOUND"


def digest(content: str) -> str:
    """The hash by which releases name a text."""
    return hashlib.sha256(content.encode()).hexdigest()


def fields(source: Label = UNTRUSTED, target: Label = TRUSTED, content: str = TEXT, **given: Any) -> dict[str, Any]:
    """The fields of a request: to release the plan."""
    named = {} if "item_id" in given else {"name": "plan"}
    return {
        "agent_id": "alice",
        "kind": MEMORY,
        "content_sha256": digest(content),
        "source_classification": source.level,
        "source_integrity": source.integrity,
        "classification": target.level,
        "integrity": target.integrity,
        **named,
        **given,
    }


def requested(host: Any, source: Label = UNTRUSTED, target: Label = TRUSTED, **given: Any) -> Any:
    """A release that *host* asks for."""
    return host.request_release(**fields(source, target, **given)).release


def approval(release: Any) -> dict[str, str]:
    """The fields of its approval."""
    return {"release_id": release.release_id, "content_sha256": release.content_sha256}


def approved(host: Any, release: Any) -> Any:
    """The release, after *host* has approved it."""
    return host.approve_release(**approval(release)).release


def state_of(host: Any, release: Any) -> int:
    """Its state, as *host* sees it now."""
    return int(host.get_release(release_id=release.release_id).release.state)


def released(asks: Any, approves: Any, *labels: Label, **given: Any) -> Any:
    """A release that one host asks for and another approves."""
    return approved(approves, requested(asks, *labels, **given))


def events(host: Any, method: str) -> list[Any]:
    """The audit events of one method, oldest first."""
    found = host.list_audit_events(agent_id="alice").audit_events
    return [event for event in reversed(found) if event.method == method]
