"""What hosts do."""

from __future__ import annotations

import random
from typing import Any, Protocol

from tests.proof.noninterference import values
from tests.proof.noninterference.model import Model
from tests.proof.noninterference.model.notes import usage_of
from tests.proof.noninterference.programs.alphabets import (
    AGENTS,
    CANARY,
    CONVERSATIONS,
    IDS,
    KEYS,
    LABELS,
    LEVELS,
    TAGS,
)

_DO = {
    "OpenSession": 30,
    "RaiseTaint": 26,
    "RenewSession": 8,
    "ResetSession": 7,
    "CloseSession": 6,
    "GetSession": 6,
    "ListSessions": 10,
    "ListAuditEvents": 14,
    "GetAgent": 3,
    "ListAgents": 5,
    "UpdateAgent": 26,
    "CreateAgent": 5,
    "DeleteAgent": 1,
    "CreateSharedBlock": 12,
    "DeleteSharedBlock": 4,
    "AttachBlock": 16,
    "DetachBlock": 6,
    "ListBlockConsumers": 10,
}


MORE = {
    "": {"EraseItems": 8, "UndeleteItem": 24},
    "erasing": {"EraseItems": 120},
    "undeleting": {"UndeleteItem": 400},
    "hosts": {
        "OpenSession": 90,
        "RaiseTaint": 60,
        "RenewSession": 30,
        "ResetSession": 25,
        "CloseSession": 20,
        "GetSession": 20,
        "GetAgent": 20,
        "ListSessions": 20,
        "ListAgents": 20,
    },
    "blocks": {"CreateSharedBlock": 60, "AttachBlock": 80, "DetachBlock": 30, "ListBlockConsumers": 50},
}
"""What is done more often in programs about one thing."""


class Keys(Protocol):
    """The host keys, and the sessions they act on."""

    def host(self, tenant: str = "") -> str:
        """The token of a host, of *tenant* if one is named."""

    def host_of(self, session_id: str) -> str:
        """A host that knows the session; now and then one that must not."""

    def reading_session(self) -> tuple[str, str]:
        """The token and the id of a session that has read a page, if there is one."""

    def some_session(self) -> tuple[str, str]:
        """The token and the id of some session."""


def about_hosts(rng: random.Random, model: Model, keys: Keys, about: str) -> tuple[str, str, dict[str, Any]]:
    """The token of a host, what it asks and how."""
    host = keys.host()
    reaches_all = model.hosts[host][1] == max(LEVELS)
    agent: dict[str, Any] = {"agent_id": rng.choices(AGENTS, (6, 3, 1, 1) if reaches_all else (5, 1, 5, 1))[0]}
    session: dict[str, Any] = {"session_id": keys.some_session()[1]}
    page: dict[str, Any] = {"page_size": rng.choice((0, 1, 2, 5))}
    rpc = rng.choices(*zip(*{**_DO, **MORE.get(about, {})}.items(), strict=True))[0]
    fields: dict[str, Any]
    match rpc:
        case "OpenSession":
            conversation = rng.choice(("", *CONVERSATIONS))
            ttl = CONVERSATIONS.get(conversation)
            fields = {
                **agent,
                "taint": rng.choice((0, *LEVELS)),
                "integrity": rng.choice((0, 0, 1)),
                "conversation_id": conversation,
                **({"ttl": ttl} if ttl else {}),
            }
            fields["read_only"] = not conversation and not fields["taint"]
        case "RaiseTaint":
            if rng.random() < 0.6:
                session = {"session_id": keys.reading_session()[1]}
            host = keys.host_of(session["session_id"])
            fields = {**session, "taint": rng.choices(LEVELS, (1, 4, 3, 2))[0], "reason": "read a file"}
            fields["integrity"] = rng.choice((0, 1, 1))
        case "ResetSession":
            host, fields = keys.host_of(session["session_id"]), {**session, "integrity": rng.choice((0, 1))}
        case "RenewSession":
            host, fields = keys.host_of(session["session_id"]), session
            fields |= rng.choice(({}, {"ttl": {"seconds": 1}}, {"ttl": {"seconds": 3600}}))
        case "GetSession" | "CloseSession":
            host, fields = keys.host_of(session["session_id"]), session
        case "ListSessions":
            fields = {**agent, **page, "include_closed": rng.random() < 0.5}
        case "ListAgents":
            fields = page
        case "CreateAgent":
            fields = {**agent, **_first(rng)}
            fields |= {name: rng.choice(LEVELS) for name in ("ceiling", "known_from") if rng.random() < 0.4}
        case "UpdateAgent":
            fields = {**agent, **_change(rng, model, *model.hosts[host], agent["agent_id"])}
        case "ListAuditEvents":
            fields = {**page, **rng.choice(({}, agent, session))}
        case "EraseItems":
            fields = {**agent, **_target(rng)}
        case "UndeleteItem":
            fields = {**agent, **_deleted(rng, model, *model.hosts[host], agent["agent_id"])}
        case "CreateSharedBlock" | "DeleteSharedBlock" | "AttachBlock" | "DetachBlock" | "ListBlockConsumers":
            fields = _sharing(rng, rpc)
        case _:
            fields = agent
    return host, rpc, fields


def _first(rng: random.Random) -> dict[str, Any]:
    """What an agent starts with."""
    if rng.random() < 0.4:
        return {}
    labels = rng.sample(LABELS, rng.choice((1, 2)))
    return {
        "initial_blocks": [{"label": label, "content": rng.choice(("", CANARY))} for label in labels],
        "memory_settings": {"memory_char_limit": rng.choice((0, 60))},
    }


def _change(rng: random.Random, model: Model, tenant: str, _: int, agent_id: str) -> dict[str, Any]:
    """Mostly the budgets: small ones, and such as just hold, or just do not, what some level sees."""
    if rng.random() < 0.05:
        return {"known_from": rng.choice(LEVELS)}
    if rng.random() < 0.15:
        return {rng.choice(("display_name", "language")): rng.choice(("en", "de"))}
    tier = rng.choice((1, 2))
    enabled, limit = (("memory_enabled", "memory_char_limit"), ("user_profile_enabled", "user_char_limit"))[tier - 1]
    if rng.random() < 0.4:
        return {"memory_settings": {enabled: rng.random() < 0.4}}
    chars = rng.choice((0, 30, 100, 200, 2200))
    agent = model.agents.get((tenant, agent_id))
    if agent and rng.random() < 0.5:
        used = usage_of(agent, tier, model.notes_of(agent.notes, rng.choice(values.LABELS), tier)).used_chars
        chars = max(0, used + rng.choice((-1, 0, 1, 20)))
    return {"memory_settings": {limit: chars, **({enabled: True} if rng.random() < 0.5 else {})}}


def _target(rng: random.Random) -> dict[str, Any]:
    """What to erase: a name or a tag; seldom both, or a name that cannot be."""
    memory, block, passage = 1, 3, 4
    return rng.choices(
        (
            {"kind": memory, "name": rng.choice(KEYS)},
            {"kind": memory, "tag": rng.choice(TAGS)},
            {"kind": block, "name": rng.choice(LABELS)},
            {"kind": passage, "tag": f" {rng.choice(TAGS)}"},
            {"kind": memory, "name": rng.choice((" plan", "")), "tag": rng.choice(("", "work"))},
        ),
        (6, 8, 3, 3, 1),
    )[0]


def _deleted(rng: random.Random, model: Model, tenant: str, _: int, agent_id: str) -> dict[str, Any]:
    """Mostly what was deleted, with its label or another one; otherwise any name."""
    memory, block, passage = 1, 3, 4
    agent = model.agents.get((tenant, agent_id))
    gone = [(kind, *at) for kind, some in agent.deleted.items() for at, items in some.items() if items] if agent else []
    if gone and rng.random() < 0.8:
        kind, name, label = rng.choice(gone)
    else:
        kind, name = rng.choice(((memory, rng.choice(KEYS)), (block, rng.choice(LABELS)), (passage, rng.choice(IDS))))
        label = rng.choice(values.LABELS)
    if rng.random() < 0.3:
        label = rng.choice((0, *values.LABELS))
    return {
        "kind": kind,
        "name": name,
        "classification": values.level_of(label),
        "integrity": values.integrity_of(label),
    }


def _sharing(rng: random.Random, rpc: str) -> dict[str, Any]:
    owner, other = rng.choices(AGENTS, (6, 4, 2, 1)), rng.choices(AGENTS, (5, 5, 2, 1))
    fields: dict[str, Any] = {"owner_agent_id": owner[0], "label": rng.choice(LABELS)}
    if rpc == "CreateSharedBlock" and rng.random() < 0.4:
        fields["content"] = f"shared {CANARY}"
    if rpc in {"AttachBlock", "DetachBlock"}:
        fields["agent_id"] = other[0]
    if rpc == "ListBlockConsumers":
        fields["page_size"] = rng.choice((0, 1, 1))
    return fields
