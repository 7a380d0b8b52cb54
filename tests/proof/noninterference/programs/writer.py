"""The writer of programs.

A program is written while it runs: it sends back etags, page tokens and ids that it was given, its own and
others', fresh and stale. The same seed and the same answers give the same program.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tests.proof.noninterference import values
from tests.proof.noninterference.model import Model
from tests.proof.noninterference.programs.alphabets import LABELS, PREFIXES, TAGS, THREADS, WORDS
from tests.proof.noninterference.programs.blocks import about_blocks
from tests.proof.noninterference.programs.desk import about_releases
from tests.proof.noninterference.programs.hosts import about_hosts
from tests.proof.noninterference.programs.malformed import OUT_OF_FORM, wrong_calls
from tests.proof.noninterference.programs.memories import about_memories, renames
from tests.proof.noninterference.programs.notes import about_notes
from tests.proof.noninterference.programs.operations import Call, Fields, Operation, Pen, Seen, encoded
from tests.proof.noninterference.programs.passages import about_passages
from tests.proof.noninterference.programs.prompts import about_prompts
from tests.proof.noninterference.programs.seldom import seldom
from tests.proof.noninterference.programs.versions import about_versions
from tests.proof.noninterference.replay import BEGINNING
from tests.proof.noninterference.values import METHODS, level_of
from tests.support.methods import FOR_SESSIONS

NOUNS = {"memories": 22, "notes": 29, "blocks": 17, "passages": 20, "prompts": 7, "versions": 5}
"""What sessions do, and how often."""
_ABOUT = {
    "prompts": {"prompts": 500, "notes": 300, "blocks": 200},
    "versions": {"memories": 700, "versions": 300},
}
_KINDS = {
    "hosts": (34, 55, 4, 5, 2),
    "pages": (53, 15, 25, 5, 2),
    "blocks": (62, 25, 6, 5, 2),
    "erasing": (66, 25, 4, 3, 2),
    "undeleting": (66, 25, 4, 3, 2),
}
"""How often sessions act, hosts, pages are continued; what is out of form, or by a wrong caller."""
_UNKNOWN_FIELDS = (
    b"\xb8\x3e\x04",  # field 999, a number
    b"\xc2\x3e\x0aRESTRICTED",  # field 1000, a text
)
_SMUGGLED = (
    ("x-taint", "1"),
    ("x-taint", "4"),
    ("x-integrity", "1"),
    ("muniment-classification", "PUBLIC"),
    ("x-agent-id", "bob"),
)


class Writer:
    """Writes a program, one operation after the other. *about*: its only noun, nearly; or hosts, pages, erasing,
    or undeleting.
    """

    def __init__(
        self, seed: str, hosts: dict[tuple[str, int], str], model: Model, seen: Seen, *, observer: int, about: str = ""
    ) -> None:
        self.rng = random.Random(seed)
        self._seed = seed
        self._hosts = hosts
        self._tenants = sorted({tenant for tenant, _ in hosts})
        self._top = max(ceiling for _, ceiling in hosts)
        self._observer = observer
        self._model = model
        self._seen = seen
        self._nouns = (
            {**NOUNS, **_ABOUT.get(about, {about if about in NOUNS else "memories": 1000})} if about else NOUNS
        )
        self._about_what = about
        self._number = 0
        self._time = BEGINNING
        self._then: list[tuple[str, str, Fields]] = []
        self._desk: dict[str, list[str]] = {}
        self._release: Iterator[tuple[str, str, Fields]] | None = None

    def release_with(self, keys: dict[str, list[str]]) -> None:
        """Let hosts with these keys, by tenant, release items, too."""
        self._desk = keys

    def beginning(self, time: datetime) -> list[Any]:
        """What every program does first: agents, sessions with every label, a block that two agents share."""
        self._time = time
        first, second = self._tenants
        host = self._hosts
        made: list[Any] = []
        for tenant, agent in ((first, "alice"), (first, "bob"), (first, "carol"), (second, "alice")):
            settings: dict[str, Any] = {"memory_char_limit": 120, "user_char_limit": 60}
            if agent == "bob" and not self._about_what:
                settings["user_profile_enabled"] = False
            creator = host[tenant, level_of(self._observer) if agent == "carol" else 4]
            known = {"known_from": 1} if agent == "alice" else {}  # low keys reach carol, and know alice
            made.append((creator, "CreateAgent", {"agent_id": agent, "memory_settings": settings, **known}))
        for tenant, agent in ((first, "alice"), (first, "alice"), (first, "bob"), (second, "alice")):
            made += [
                (host[tenant, 4], "OpenSession", {"agent_id": agent, "taint": level_of(label), "integrity": label % 2})
                for label in values.LABELS
                if (tenant, agent) == (first, "alice") or self.rng.random() < 0.4
            ]
        made.append((host[first, 4], "OpenSession", {"agent_id": "carol", "taint": 1}))
        made.append((host[first, 1], "OpenSession", {"agent_id": "alice", "conversation_id": "c-1"}))
        for owner, consumer in (("bob", "alice"), ("alice", "bob"), ("carol", "bob")):
            block = {"owner_agent_id": owner, "label": self.rng.choice(LABELS)}
            made.append((host[first, 4], "CreateSharedBlock", block))
            made.append((host[first, 4], "AttachBlock", {**block, "agent_id": consumer}))
        return made

    def ending(self) -> Iterator[tuple[str, str, Fields]]:
        """What every program does last, since chance seldom brings it about: renames at each level, and seals."""
        tokens = {self._model.level(token): token for token in self._model.tokens}
        for label in values.LABELS:
            if label in tokens:
                yield from ((tokens[label], rpc, fields) for rpc, fields in renames(label))
        first, _ = self._tenants
        for ceiling, level in ((4, level_of(self._observer)), (4, 0), (1, 1)):  # these servers seal nothing
            fields = {"classification": level, "integrity": self._observer % 2}
            yield self._hosts[first, ceiling], "GetAuditCheckpoint", fields

    def operation(
        self, token: str, rpc: str, fields: Fields | list[Fields], *, mark: str = "", at_once: bool = False
    ) -> Operation:
        """The next operation. Time goes on, but for what is done *at_once*."""
        self._number += 1
        if not at_once:
            self._time += timedelta(microseconds=self.rng.choice((1, 1000, 250_000, 7_000_001)))
        requests = encoded(rpc, fields)
        metadata = [("authorization", f"Bearer {token}")]
        if self.rng.random() < 0.08 and requests:
            requests = (requests[0] + self.rng.choice(_UNKNOWN_FIELDS), *requests[1:])
        if self.rng.random() < 0.05:
            metadata.append(self.rng.choice(_SMUGGLED))
        return Operation(f"{self._seed}.{self._number}{mark}", self._time, token, rpc, requests, tuple(metadata))

    def next(self) -> Operation:
        """What somebody does now."""
        if self._then:
            return self.operation(*self._then.pop(), at_once=True)
        if self._desk and (step := self._next_of_release()):
            return self.operation(*step)
        if self.rng.random() < 0.02:
            self._time += timedelta(minutes=self.rng.choice((1, 11, 25)))
        if (raised := self._raised_pages()) and self.rng.random() < 0.3:
            return self._continued(self._one_of(raised))
        if not self._about_what and self.rng.random() < 0.03 and (searches := self._searches()):
            return self.operation(*self.rng.choice(searches))
        kinds = (self._session_does, self._host_does, self._next_page, self._out_of_form, self._wrong_caller)
        return self.rng.choices(kinds, _KINDS.get(self._about_what, (71, 16, 6, 5, 2)))[0]()

    def _next_of_release(self) -> tuple[str, str, Fields] | None:
        """The next step of a release. Sometimes others act in between, and none is under way most of the time."""
        if self._release is None:
            if self.rng.random() >= (0.3 if self._about_what == "releases" else 0.06):
                return None
            tenant = self.rng.choice(sorted(self._desk))
            self._release = about_releases(
                self.rng, self._model, self._desk[tenant], self.host(tenant), tenant, self._observer
            )
        elif self.rng.random() < 0.15:
            return None
        step = next(self._release, None)
        if step is None:
            self._release = None
        return step

    def instead(self, operation: Operation, model: Model, seen: Seen) -> Operation:
        """Something else that the same session does at the same time: its other world's data."""
        pen = Pen(self.rng, model, seen, operation.token, operation.time)
        rpc, fields = self._about(pen, ids=True)
        return replace(operation, name=operation.name.rstrip("!")).asking(rpc, fields)

    # Sessions.

    def some_session(self) -> tuple[str, str]:
        """The token and the id of some session: rarely one that has ended."""
        alive = [one for one in self._seen.sessions if self._model.level(one[0]) is not None]
        by_level = [[one for one in alive if self._model.level(one[0]) == label] for label in values.LABELS]
        if self.rng.random() < 0.06 or not alive:
            return self.rng.choice([one for one in self._seen.sessions if one not in alive] or alive)
        return self.rng.choice(self.rng.choice([some for some in by_level if some]))

    def reading_session(self) -> tuple[str, str]:
        """The token and the id of a session that has read a page, if there is one."""
        readers = {page.token for page in self._seen.pages[-6:]}
        known = [one for one in self._seen.sessions if one[0] in readers and self._model.level(one[0]) is not None]
        return self.rng.choice(known) if known else self.some_session()

    def _session_does(self) -> Operation:
        token, session_id = self.some_session()
        if self.rng.random() < 0.04:
            rpc = "CloseSession" if self.rng.random() < 0.2 else "GetSession"
            named = self.rng.choice(("", "", session_id, self.rng.choice(self._seen.sessions)[1]))
            return self.operation(token, rpc, {"session_id": named})
        rpc, fields = self._about(Pen(self.rng, self._model, self._seen, token, self._time))
        if rpc == "ImportPassages":
            self._then.append((token, "ListPassages", {"page_size": 250}))  # tells the ids that the server made
        return self.operation(token, rpc, fields)

    def _searches(self) -> list[tuple[str, str, Fields]]:
        """Searches without a filter, by compared sessions that see an item: both worlds then compare embeddings."""
        found: list[tuple[str, str, Fields]] = []
        for token, _ in self._seen.sessions:
            session, level = self._model.session(token), self._model.level(token)
            if session is None or level is None or not values.flows(level, self._observer):
                continue
            query: Fields = {"query": " ".join(self.rng.choices(WORDS, k=self.rng.choice((1, 2))))}
            kinds = {"SearchMemories": session.agent.memories, "SearchPassages": session.agent.passages}
            found += [(token, rpc, query) for rpc, items in kinds.items() if any(self._model.all_seen(items, level))]
        return found

    def _about(self, pen: Pen, *, ids: bool = False) -> Call:
        if not self._about_what and pen.chance(0.13):
            return seldom(pen)
        match pen.one_of(self._nouns):
            case "notes":
                return about_notes(pen)
            case "blocks":
                return about_blocks(pen)
            case "passages":
                return about_passages(pen, ids=ids)
            case "prompts":
                return about_prompts(pen)
            case "versions":
                return about_versions(pen)
        return about_memories(pen)

    def _next_page(self) -> Operation:
        """A page continued: mostly as it should be, sometimes by another caller or with another filter."""
        if not self._seen.pages:
            return self._session_does()
        return self._continued(self._one_of(self._seen.pages[-20:]))

    def _one_of(self, pages: list[Operation]) -> Operation:
        """Each RPC as often as any other."""
        rpc = self.rng.choice(sorted({page.rpc for page in pages}))
        return self.rng.choice([page for page in pages if page.rpc == rpc])

    def _raised_pages(self) -> list[Operation]:
        """Pages begun at a lower taint than their session's is now."""
        return [page for page in self._seen.pages if self._model.outlived(page.token, page.parsed().page_token)]

    def _continued(self, page: Operation) -> Operation:
        request, token = page.parsed(), page.token
        if self.rng.random() < 0.12:
            token = self.some_session()[0]
        if self.rng.random() < 0.12:
            self._filter_otherwise(request)
        if self.rng.random() < 0.04:
            request.page_token = request.page_token[:-1] + "A"
        return self.operation(token, page.rpc, request.SerializeToString())

    def _filter_otherwise(self, request: Any) -> None:
        for name, choices in (
            ("key_prefix", PREFIXES),
            ("tag", TAGS),
            ("tier", (1, 2)),
            ("thread", THREADS),
            ("label", LABELS),
            ("with_revisions", (True, False)),
        ):
            if hasattr(request, name):
                setattr(request, name, self.rng.choice(choices))

    # Hosts.

    def host(self, tenant: str = "") -> str:
        """The token of a host, of *tenant* if one is named."""
        tenant = tenant or self.rng.choices(self._tenants, (4, 1))[0]
        ceiling = self.rng.choice([ceiling for of, ceiling in sorted(self._hosts) if of == tenant])
        return self._hosts[tenant, self._top if self.rng.random() < 0.65 else ceiling]

    def host_of(self, session_id: str) -> str:
        """A host that knows the session; now and then one that must not."""
        session = self._model.sessions.get(session_id)
        return self.host(session.tenant if session and self.rng.random() < 0.9 else "")

    def _host_does(self) -> Operation:
        return self.operation(*about_hosts(self.rng, self._model, self, self._about_what))

    # What must be refused.

    def _out_of_form(self) -> Operation:
        token = self.some_session()[0]
        rpc, fields = self.rng.choice(OUT_OF_FORM)
        if rpc not in FOR_SESSIONS:
            token = self.host()
        if "expire_time" in fields:
            fields = {**fields, "expire_time": self._time - timedelta(seconds=self.rng.choice((0, 1, 3600)))}
        return self.operation(token, rpc, fields if fields else b"\xff\xff\xff", mark="" if fields else "!")

    def _wrong_caller(self) -> Operation:
        session, session_id = self.some_session()
        token, rpc, fields = self.rng.choice(wrong_calls(session, session_id, self.host()))
        return self.operation(token, rpc, fields if rpc in METHODS else b"")
