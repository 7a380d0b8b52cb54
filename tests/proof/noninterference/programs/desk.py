"""What hosts do at the release desk: they ask for a release, and then approve it, look at it or reject it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from tests.proof.noninterference.model import Model
from tests.proof.noninterference.model.desk import BLOCK, MEMORY, Release, hashes
from tests.proof.noninterference.programs.alphabets import CANARY, KEYS, LABELS, TAGS, WORDS
from tests.proof.noninterference.values import LABELS as ALL_LABELS
from tests.proof.noninterference.values import flows, integrity_of, level_of

Step = tuple[str, str, dict[str, Any]]
"""The token of a caller, what it asks and how."""
_AGENTS = ("alice", "alice", "bob")
_MOST_STEPS = 7
_DO = {
    "approve": 60,
    "get": 8,
    "list": 8,
    "change the source": 10,
    "write at the target": 6,
    "wrong hash": 5,
    "no right": 5,
    "reject": 4,
}


def about_releases(
    rng: random.Random, model: Model, keys: Sequence[str], other: str, tenant: str, observer: int
) -> Iterator[Step]:
    """The steps of one release, most of which goes from above the observer to what it sees. *other* has no rights."""
    agent_id, kind = rng.choice(_AGENTS), rng.choice((MEMORY, MEMORY, BLOCK))
    source, target = _way(rng, observer)
    name, content = rng.choice(KEYS if kind == MEMORY else LABELS), f"{' '.join(rng.choices(WORDS, k=2))} {CANARY}"
    token = _session_of(rng, model, tenant, agent_id, source)
    if not token:
        return
    yield _write(rng, token, kind, name, content)
    asks, *approve = rng.sample(keys, len(keys))
    wanted: dict[str, Any] = {
        "agent_id": agent_id, "kind": kind, "name": name, "reason": "checked",
        "content_sha256": _hash(model, tenant, agent_id, kind, name, source),
        "source_classification": level_of(source), "source_integrity": integrity_of(source),
        "classification": level_of(target), "integrity": integrity_of(target),
    }  # fmt: skip
    if rng.random() < 0.1:
        wanted["ttl"] = {"seconds": 8}
    if rng.random() < 0.1:
        yield other, "RequestRelease", wanted
    known = set(model.releases)
    yield asks, "RequestRelease", wanted
    for release_id in set(model.releases) - known:
        yield from _decide(rng, model, model.releases[release_id], release_id, (asks, approve, other))
    if reader := _session_of(rng, model, tenant, agent_id, target):
        yield reader, *_READS[kind][0](name)
        yield reader, *rng.choice(_READS[kind])(name)


def _decide(
    rng: random.Random, model: Model, release: Release, release_id: str, keys: tuple[str, list[str], str]
) -> Iterator[Step]:
    asks, approve, other = keys
    named = {"release_id": release_id}
    approval = {**named, "content_sha256": hashes(release)}
    for number in range(_MOST_STEPS):
        match rng.choices(*zip(*_DO.items(), strict=True))[0]:
            case "approve":
                yield (
                    rng.choice((approve[number % len(approve)], rng.choice([asks, *approve]))),
                    "ApproveRelease",
                    approval,
                )
            case "get":
                yield rng.choice((asks, other)), "GetRelease", named
            case "list":
                page = {"page_size": rng.choice((0, 1)), "include_closed": rng.random() < 0.5}
                yield rng.choice((asks, other)), "ListReleases", page
            case "change the source":
                agent_id = release.agent.shown.agent_id
                if token := _session_of(rng, model, release.tenant, agent_id, release.source):
                    yield _write(rng, token, release.kind, release.name, f"{rng.choice(WORDS)} {CANARY}")
            case "write at the target":
                agent_id = release.agent.shown.agent_id
                if token := _session_of(rng, model, release.tenant, agent_id, release.target):
                    yield _write(rng, token, release.kind, release.name, rng.choice(WORDS))
            case "wrong hash":
                yield approve[0], "ApproveRelease", {**named, "content_sha256": "0" * 64}
            case "no right":
                rpc, fields = rng.choice((("ApproveRelease", approval), ("RejectRelease", named)))
                yield other, rpc, fields
            case "reject":
                yield asks, "RejectRelease", named


_READS = {
    MEMORY: (
        lambda name: ("GetMemory", {"key": name}),
        lambda name: ("ListVersions", {"kind": MEMORY, "name": name, "with_revisions": True}),
        lambda _: ("SearchMemories", {"query": WORDS[0]}),
    ),
    BLOCK: (
        lambda name: ("GetBlock", {"label": name}),
        lambda _: ("RenderPrompt", {}),
        lambda _: ("ListBlocks", {}),
    ),
}


def _way(rng: random.Random, observer: int) -> tuple[int, int]:
    """A source and a target to which it does not flow. Mostly, the observer sees the target only."""
    ways = [(source, target) for source in ALL_LABELS for target in ALL_LABELS if not flows(source, target)]
    across = [way for way in ways if flows(way[1], observer) and not flows(way[0], observer)]
    return rng.choice(across if across and rng.random() < 0.7 else ways)


def _session_of(rng: random.Random, model: Model, tenant: str, agent_id: str, label: int) -> str:
    """The token of a session of the agent with the label, or nothing."""
    tokens = sorted(
        token
        for token in model.tokens
        if model.level(token) == label and (session := model.session(token)) is not None and not session.read_only
        if (session.tenant, session.agent.shown.agent_id) == (tenant, agent_id)
    )
    return rng.choice(tokens or [""])


def _write(rng: random.Random, token: str, kind: int, name: str, content: str) -> Step:
    if kind == MEMORY:
        return token, "SaveMemory", {"key": name, "content": content, "tags": rng.sample(TAGS, rng.choice((0, 1)))}
    return token, "UpdateBlock", {"label": name, "content": content}


def _hash(model: Model, tenant: str, agent_id: str, kind: int, name: str, source: int) -> str:
    """That of what was just written."""
    agent = model.agents[tenant, agent_id]
    items = agent.memories if kind == MEMORY else agent.blocks
    return hashes(items[name][source]) if source in items.get(name, {}) else "0" * 64
