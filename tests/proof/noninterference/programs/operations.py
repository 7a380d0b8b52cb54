"""One call, and what earlier answers gave to send again."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from tests.proof.noninterference.model import Model
from tests.proof.noninterference.values import METHODS, NAMES, ByName, Session, items_in
from tests.proof.noninterference.worlds import PATHS

Fields = dict[str, Any] | bytes
Call = tuple[str, Fields | list[Fields]]
"""The name of an RPC and its request by fields, or as it is on the wire; of a stream, a list of them."""


@dataclass(frozen=True)
class Operation:
    """One call of one caller."""

    name: str
    time: datetime
    token: str
    rpc: str
    requests: tuple[bytes, ...]
    """One, unless the requests are a stream."""
    metadata: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> str:
        """On the wire."""
        return PATHS.get(self.rpc, f"/muniment.v1.MemoryService/{self.rpc}")

    def parsed(self) -> Any:
        """The request, if it is one."""
        return GetMessageClass(METHODS[self.rpc].input_type).FromString(self.requests[0])

    def asking(self, rpc: str, fields: Fields | list[Fields]) -> Operation:
        """The same caller, at the same time, asks something else."""
        return replace(self, rpc=rpc, requests=encoded(rpc, fields))

    def __str__(self) -> str:
        return f"{self.name} {self.token[:14]} {self.rpc} {' | '.join(map(self._shown, self.requests))}"

    def _shown(self, request: bytes) -> str:
        if self.rpc not in METHODS:
            return ""
        try:
            text = str(GetMessageClass(METHODS[self.rpc].input_type).FromString(request)).replace("\n", " ")
        except DecodeError:
            return "no message"
        return text if len(text) < 1000 else f"{text[:200]} and so on"


def encoded(rpc: str, fields: Fields | list[Fields]) -> tuple[bytes, ...]:
    """Requests as they are on the wire."""
    if isinstance(fields, list):
        return tuple(request for one in fields for request in encoded(rpc, one))
    if isinstance(fields, bytes):
        return (fields,)
    return (GetMessageClass(METHODS[rpc].input_type)(**fields).SerializeToString(),)


@dataclass
class Seen:
    """What was seen in one world, to be sent again."""

    etags: dict[str, list[str]] = field(default_factory=dict)
    """By kind and name of the item."""
    ids: dict[str, list[str]] = field(default_factory=dict)
    """Of notes and passages."""
    texts: list[str] = field(default_factory=list)
    """The etags of rendered prompts."""
    pages: list[Operation] = field(default_factory=list)
    """Requests for a page that comes next."""
    sessions: list[tuple[str, str]] = field(default_factory=list)
    """Token and session id."""

    def learn(self, operation: Operation, answer: Any) -> None:
        """Remember what *answer* gives to send again."""
        for item in items_in(answer):
            kind = item.DESCRIPTOR.name
            name = getattr(item, NAMES[kind])
            if getattr(item, "etag", ""):
                self.etags.setdefault(f"{kind} {name}", []).append(item.etag)
            if name not in self.ids.setdefault(kind, []):
                self.ids[kind].append(name)
        if operation.rpc == "RenderPrompt":
            self.texts.append(answer.etag)
        if getattr(answer, "next_page_token", ""):
            request = operation.parsed()
            request.page_token = answer.next_page_token
            self.pages.append(replace(operation, requests=(request.SerializeToString(),)))
        if getattr(answer, "token", ""):
            self.sessions.append((answer.token, answer.session.session_id))


@dataclass
class Pen:
    """What one call of a session is written with."""

    rng: random.Random
    model: Model
    """The world that the call is for, as it must be."""
    seen: Seen
    token: str
    time: datetime

    @property
    def session(self) -> Session | None:
        """Who calls, if the session is open."""
        return self.model.session(self.token)

    def one_of(self, kinds: dict[str, int]) -> str:
        """One of *kinds*, which say how often each is drawn."""
        return self.rng.choices(list(kinds), list(kinds.values()))[0]

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    @property
    def level(self) -> int:
        """The taint of the caller; 0 if its session is not open."""
        return self.model.level(self.token) or 0

    def own(self, items: ByName, alphabet: Sequence[str]) -> str:
        """A name of the own level, if there is one, as often as any of *alphabet*."""
        own = [name for name in items if self.level in self.model.seen(items, name, self.level)]
        return self.rng.choice(own if own and self.chance(0.5) else alphabet)

    def spelled(self, name: str, spellings: dict[str, str]) -> str:
        """*name*, now and then with other code points."""
        return spellings.get(name, name) if self.chance(0.3) else name

    def etag(self, kind: str, name: str) -> dict[str, Any]:
        """Sometimes an etag: fresh, stale, or of something else."""
        known = self.seen.etags.get(f"{kind} {name}", [])
        if self.chance(0.6) or not known:
            return {}
        foreign = self.rng.choice(self.seen.etags[self.rng.choice(sorted(self.seen.etags))])
        return {"etag": self.rng.choice((known[-1], known[-1], self.rng.choice(known), foreign))}

    def words(self, alphabet: Sequence[str], counts: Sequence[int]) -> str:
        return " ".join(self.rng.choices(alphabet, k=self.rng.choice(counts)))
