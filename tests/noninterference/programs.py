"""Programs: what callers do, drawn from small alphabets, so that they meet in the same keys.

A program is written while it runs: it sends back etags, page tokens and session ids that it was given,
its own and others', fresh and stale. The same seed and the same answers give the same program.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from google.protobuf.message_factory import GetMessageClass

from tests.noninterference.model import Model
from tests.noninterference.values import FOR_SESSIONS, METHODS
from tests.noninterference.worlds import BEGINNING, PATHS

KEYS = ("plan", "Plan", "budget", "caf\u00e9", "running list")
SPELLINGS = {"caf\u00e9": "cafe\u0301"}
TAGS = ("work", "Work", "home", "r\u00e9sum\u00e9")
WORDS = ("meeting", "meetings", "budget", "budgets", "running", "runs")
LEVELS = (1, 2, 3, 4)
AGENTS = ("alice", "bob", "carol")
CONVERSATIONS = {"c-1": None, "c-2": timedelta(hours=6), "c-3": timedelta(minutes=20)}
"""Conversations and the ttl of their sessions: one each, because a reset hands it on."""
CANARY = "qcanary"
"""In every content. Nothing but an answer may show it."""

_UNKNOWN_FIELDS = (
    b"\xb8\x3e\x04",  # field 999, a number
    b"\xc2\x3e\x0aRESTRICTED",  # field 1000, a text
)
_SMUGGLED = (("x-taint", "1"), ("x-taint", "4"), ("muniment-classification", "PUBLIC"), ("x-agent-id", "bob"))


@dataclass(frozen=True)
class Operation:
    """One call of one caller."""

    name: str
    time: datetime
    token: str
    rpc: str
    request: bytes
    metadata: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> str:
        """On the wire."""
        return PATHS.get(self.rpc, f"/muniment.v1.MemoryService/{self.rpc}")

    def parsed(self) -> Any:
        """The request, if it is one."""
        return GetMessageClass(METHODS[self.rpc].input_type).FromString(self.request)

    def __str__(self) -> str:
        shown = str(self.parsed()).replace("\n", " ") if self.rpc in METHODS and self.name[-1] != "!" else ""
        return f"{self.name} {self.token[:14]} {self.rpc} {shown}"


@dataclass
class Seen:
    """What was seen in one world, to be sent again."""

    etags: dict[str, list[str]] = field(default_factory=dict)
    pages: list[Operation] = field(default_factory=list)
    """Requests for a page that comes next."""
    sessions: list[tuple[str, str]] = field(default_factory=list)
    """Token and session id."""

    def learn(self, operation: Operation, answer: Any) -> None:
        """Remember what *answer* gives to send again."""
        memory = getattr(answer, "memory", None)
        for one in (memory, *getattr(answer, "memories", ())):
            if one is not None and one.etag:
                self.etags.setdefault(one.key, []).append(one.etag)
        if getattr(answer, "next_page_token", ""):
            request = operation.parsed()
            request.page_token = answer.next_page_token
            self.pages.append(replace(operation, request=request.SerializeToString()))
        if getattr(answer, "token", ""):
            self.sessions.append((answer.token, answer.session.session_id))


class Writer:
    """Writes a program, one operation after the other."""

    def __init__(self, seed: str, hosts: dict[tuple[str, int], str], model: Model, seen: Seen) -> None:
        self.rng = random.Random(seed)
        self._seed = seed
        self._hosts = hosts
        self._tenants = sorted({tenant for tenant, _ in hosts})
        self._top = max(ceiling for _, ceiling in hosts)
        self._model = model
        self._seen = seen
        self._number = 0
        self._time = BEGINNING

    def beginning(self, time: datetime) -> list[Any]:
        """What every program does first: agents, and sessions at every level."""
        self._time = time
        first, second = self._tenants
        host = self._hosts
        made: list[Any] = []
        for tenant, agent in ((first, "alice"), (first, "bob"), (second, "alice")):
            made.append((host[tenant, 4], "CreateAgent", {"agent_id": agent}))
        for tenant, agent in ((first, "alice"), (first, "alice"), (first, "bob"), (second, "alice")):
            made += [
                (host[tenant, 4], "OpenSession", {"agent_id": agent, "taint": level})
                for level in LEVELS
                if (tenant, agent) == (first, "alice") or self.rng.random() < 0.4
            ]
        return made

    def operation(self, token: str, rpc: str, fields: dict[str, Any] | bytes, *, mark: str = "") -> Operation:
        """The next operation. Time goes on."""
        self._number += 1
        self._time += timedelta(microseconds=self.rng.choice((1, 1000, 250_000, 7_000_001)))
        request = (
            fields
            if isinstance(fields, bytes)
            else GetMessageClass(METHODS[rpc].input_type)(**fields).SerializeToString()
        )
        metadata = [("authorization", f"Bearer {token}")]
        if self.rng.random() < 0.08:
            request += self.rng.choice(_UNKNOWN_FIELDS)
        if self.rng.random() < 0.05:
            metadata.append(self.rng.choice(_SMUGGLED))
        return Operation(f"{self._seed}.{self._number}{mark}", self._time, token, rpc, request, tuple(metadata))

    def next(self) -> Operation:
        """What somebody does now."""
        if self.rng.random() < 0.02:
            self._time += timedelta(minutes=self.rng.choice((1, 11, 25)))
        if (raised := self._raised_pages()) and self.rng.random() < 0.15:
            return self._continued(self.rng.choice(raised))
        kinds = (self._session_does, self._host_does, self._next_page, self._out_of_form, self._wrong_caller)
        return self.rng.choices(kinds, (74, 15, 5, 4, 2))[0]()

    def instead(self, operation: Operation, seen: Seen) -> Operation:
        """Something else that the same session does at the same time: its other world's data."""
        rpc, fields = self._about_memories(seen)
        request = GetMessageClass(METHODS[rpc].input_type)(**fields).SerializeToString()
        return replace(operation, name=operation.name.rstrip("!"), rpc=rpc, request=request)

    # Sessions.

    def _session(self) -> tuple[str, str]:
        """The token and the id of some session: rarely one that has ended."""
        alive = [one for one in self._seen.sessions if self._model.level(one[0]) is not None]
        by_level = [[one for one in alive if self._model.level(one[0]) == level] for level in LEVELS]
        if self.rng.random() < 0.06 or not alive:
            return self.rng.choice([one for one in self._seen.sessions if one not in alive] or alive)
        return self.rng.choice(self.rng.choice([some for some in by_level if some]))

    def _session_does(self) -> Operation:
        token, session_id = self._session()
        if self.rng.random() < 0.04:
            rpc = "CloseSession" if self.rng.random() < 0.2 else "GetSession"
            named = self.rng.choice(("", "", session_id, self.rng.choice(self._seen.sessions)[1]))
            return self.operation(token, rpc, {"session_id": named})
        return self.operation(token, *self._about_memories(self._seen))

    def _about_memories(self, seen: Seen) -> tuple[str, dict[str, Any]]:
        rng = self.rng
        key = rng.choice(KEYS)
        sent = SPELLINGS.get(key, key) if rng.random() < 0.3 else key
        match rng.choices(("save", "get", "list", "search", "delete"), (40, 16, 17, 17, 10))[0]:
            case "save":
                return "SaveMemory", {"key": sent, **self._content(), **self._expiry(), **self._etag(seen, key)}
            case "get":
                return "GetMemory", {"key": sent}
            case "list":
                tag = rng.choice(TAGS) if rng.random() < 0.5 else ""
                return "ListMemories", {"tag": tag, "page_size": rng.choice((0, 1, 1, 2, 3, 251))}
            case "search":
                return "SearchMemories", {
                    "query": " ".join(
                        rng.choices((*WORDS, "the", "user-name", "it's & | !", '"%_'), k=rng.choice((1, 1, 2, 3)))
                    ),
                    "max_results": rng.choice((0, 0, 1, 2, 101)),
                    "tags": rng.sample(TAGS, rng.choice((0, 0, 1, 2))),
                    "tag_match": rng.choice((0, 1, 2)),
                }
        return "DeleteMemory", {"key": sent, **self._etag(seen, key)}

    def _content(self) -> dict[str, Any]:
        words = self.rng.choices(WORDS, k=self.rng.choice((1, 1, 2, 4)))
        return {
            "content": " ".join((*words, CANARY)),
            "tags": self.rng.choices(TAGS, k=self.rng.choice((0, 1, 1, 2))),
        }

    def _expiry(self) -> dict[str, Any]:
        if self.rng.random() < 0.8:
            return {}
        return {"expire_time": self._time + timedelta(seconds=self.rng.choice((8, 60, 900)))}

    def _etag(self, seen: Seen, key: str) -> dict[str, Any]:
        known = seen.etags.get(key, [])
        if self.rng.random() < 0.65 or not known:
            return {}
        foreign = self.rng.choice(seen.etags[self.rng.choice(sorted(seen.etags))])
        return {"etag": self.rng.choice((known[-1], known[-1], self.rng.choice(known), foreign))}

    def _next_page(self) -> Operation:
        """A page continued: mostly as it should be, sometimes by another caller or with another filter."""
        if not self._seen.pages:
            return self._session_does()
        return self._continued(self.rng.choice(self._seen.pages[-6:]))

    def _raised_pages(self) -> list[Operation]:
        """Pages begun at a lower taint than their session's is now."""
        return [page for page in self._seen.pages if self._model.outlived(page.token, page.parsed().page_token)]

    def _continued(self, page: Operation) -> Operation:
        request, token = page.parsed(), page.token
        if self.rng.random() < 0.12:
            token = self._session()[0]
        if self.rng.random() < 0.06 and page.rpc == "ListMemories":
            request.tag = self.rng.choice(TAGS)
        if self.rng.random() < 0.04:
            request.page_token = request.page_token[:-1] + "A"
        return self.operation(token, page.rpc, request.SerializeToString())

    # Hosts.

    def _host(self, tenant: str = "") -> str:
        """The token of a host, of *tenant* if one is named."""
        tenant = tenant or self.rng.choices(self._tenants, (4, 1))[0]
        ceiling = self.rng.choice([ceiling for of, ceiling in sorted(self._hosts) if of == tenant])
        return self._hosts[tenant, self._top if self.rng.random() < 0.4 else ceiling]

    def _host_of(self, session_id: str) -> str:
        """A host that knows the session; now and then one that must not."""
        session = self._model.sessions.get(session_id)
        return self._host(session.tenant if session and self.rng.random() < 0.9 else "")

    def _host_does(self) -> Operation:
        rng = self.rng
        host = self._host()
        agent: dict[str, Any] = {"agent_id": rng.choices(AGENTS, (6, 3, 1))[0]}
        session: dict[str, Any] = {"session_id": self._session()[1]}
        page: dict[str, Any] = {"page_size": rng.choice((0, 1, 2, 5))}
        rpc = rng.choices(*zip(*_HOSTS_DO.items(), strict=True))[0]
        fields: dict[str, Any]
        match rpc:
            case "OpenSession":
                conversation = rng.choice(("", *CONVERSATIONS))
                ttl = CONVERSATIONS.get(conversation)
                fields = {
                    **agent,
                    "taint": rng.choice(LEVELS),
                    "conversation_id": conversation,
                    **({"ttl": ttl} if ttl else {}),
                }
            case "RaiseTaint":
                host = self._host_of(session["session_id"])
                fields = {**session, "taint": rng.choices(LEVELS, (1, 4, 3, 2))[0], "reason": "read a file"}
            case "GetSession" | "ResetSession" | "CloseSession":
                host, fields = self._host_of(session["session_id"]), session
            case "ListSessions":
                fields = {**agent, **page, "include_closed": rng.random() < 0.5}
            case "ListAgents":
                fields = page
            case "UpdateAgent":
                fields = {**agent, rng.choice(("display_name", "language")): rng.choice(("en", "de"))}
            case "ListAuditEvents":
                fields = {**page, **rng.choice(({}, agent, session))}
            case _:
                fields = agent
        return self.operation(host, rpc, fields)

    # What must be refused.

    def _out_of_form(self) -> Operation:
        token = self._session()[0]
        rpc, fields = self.rng.choice(_OUT_OF_FORM)
        if rpc not in FOR_SESSIONS:
            token = self._host()
        if "expire_time" in fields:
            fields = {**fields, "expire_time": self._time - timedelta(seconds=self.rng.choice((0, 1, 3600)))}
        return self.operation(token, rpc, fields if fields else b"\xff\xff\xff", mark="" if fields else "!")

    def _wrong_caller(self) -> Operation:
        rng = self.rng
        session, session_id = self._session()
        host = self._host()
        token, rpc, fields = rng.choice(
            (
                (session, "RaiseTaint", {"session_id": session_id, "taint": 1}),
                (session, "OpenSession", {"agent_id": "alice", "taint": 1}),
                (session, "ListAuditEvents", {}),
                (session, "ListSessions", {"agent_id": "alice"}),
                (session, "ResetSession", {"session_id": session_id}),
                (session, "UpdateAgent", {"agent_id": "alice"}),
                (host, "GetMemory", {"key": "plan"}),
                (host, "SaveMemory", {"key": "plan", "content": "no"}),
                (session, "Nothing", b""),
                (host, "Nothing", b""),
                (session[:-2] + "AA", "GetMemory", {"key": "plan"}),
                ("nonsense", "ListMemories", {}),
            )
        )
        return self.operation(token, rpc, fields)


_HOSTS_DO = {
    "OpenSession": 30,
    "RaiseTaint": 20,
    "ResetSession": 7,
    "CloseSession": 6,
    "GetSession": 6,
    "ListSessions": 10,
    "ListAuditEvents": 14,
    "GetAgent": 3,
    "ListAgents": 5,
    "UpdateAgent": 4,
    "CreateAgent": 3,
    "DeleteAgent": 1,
}
_OUT_OF_FORM: tuple[tuple[str, dict[str, Any]], ...] = (
    ("SaveMemory", {"key": "", "content": CANARY}),
    ("SaveMemory", {"key": "plan", "content": ""}),
    ("SaveMemory", {"key": "plan", "content": f"{CANARY}\0"}),
    ("SaveMemory", {"key": f" {CANARY}", "content": "x"}),
    ("SaveMemory", {"key": f"{CANARY}\n", "content": "x"}),
    ("SaveMemory", {"key": "plan", "content": CANARY, "tags": ["a"] * 33}),
    ("SaveMemory", {"key": "plan", "content": CANARY, "tags": ["  "]}),
    ("SaveMemory", {"key": "plan", "content": CANARY, "etag": "none"}),
    ("SaveMemory", {"key": "plan", "content": CANARY, "expire_time": None}),
    ("SaveMemory", {"key": "budget", "content": CANARY, "expire_time": None}),
    ("SaveMemory", {}),
    ("GetMemory", {"key": "x" * 257}),
    ("GetMemory", {"key": "plan "}),
    ("GetMemory", {}),
    ("ListMemories", {"page_size": -1}),
    ("ListMemories", {"page_token": "AAAA"}),
    ("ListMemories", {}),
    ("SearchMemories", {"query": "  "}),
    ("SearchMemories", {"query": "\0"}),
    ("SearchMemories", {"query": "x" * 1025}),
    ("SearchMemories", {"query": "budget", "max_results": -1}),
    ("SearchMemories", {"query": "budget", "tag_match": 7}),
    ("DeleteMemory", {"key": ""}),
    ("DeleteMemory", {"key": "plan", "etag": "!" * 27}),
    ("OpenSession", {"agent_id": "alice", "taint": 0}),
    ("OpenSession", {"agent_id": "alice", "taint": 5}),
    ("RaiseTaint", {"session_id": "not-one", "taint": 2}),
    ("GetAgent", {"agent_id": "not one"}),
    ("ListSessions", {"agent_id": "alice", "page_size": -3}),
    ("ListAgents", {"page_token": "AAAA"}),
    ("ListAuditEvents", {"page_token": "AAAA"}),
    ("ListAuditEvents", {"session_id": "not-one"}),
)
