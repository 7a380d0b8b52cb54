"""The agents, sessions and memories of a load. One database, which grows from one size to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import psycopg

import muniment
from muniment_server.domain.classification import Classification
from muniment_server.embedder.queue import START, embed_batch
from muniment_server.postgres.pool import operator_conninfo
from muniment_server.search.embeddings import Vector
from tests.support.labels import untrusted
from tests.tools.bench.processes import Service
from tests.tools.bench_search.corpus import Source
from tests.tools.bench_search.loading import Owner, load, new_owners
from tests.tools.load.calls import Caller
from tests.tools.load.vectors import Vectors

AGENTS = 64
"""Agents among which memories are dealt out evenly."""
LEVELS = (Classification.INTERNAL, Classification.CONFIDENTIAL, Classification.PUBLIC, Classification.RESTRICTED)
"""Sessions are at these levels in turn. A single client is at the first."""
_LOADERS = 2
_KEYS = 200
"""The keys of each level that one session asks for."""
_NAMES = """
SELECT name
  FROM item
 WHERE tenant = %(tenant)s AND agent = %(agent)s AND kind = 1 AND delete_time IS NULL
 ORDER BY name
 LIMIT %(most)s
"""
_NOTE = "Prefers short answers, and wants to hear about the budget on Fridays."
_OWN_KEY = "load"
"""The key of a memory that every session has at its level."""

Done = Callable[[int], None]
"""Receives how many memories were loaded, or embedded."""


class _Session(NamedTuple):
    token: str
    note_id: str


class World:
    """The loaded database of one service."""

    def __init__(self, service: Service, source: Source) -> None:
        self._source = source
        self._owners: Sequence[Owner] = new_owners(service.conninfo, AGENTS)
        self._sessions: dict[Owner, _Session] = {}
        self._keys: dict[Owner, Sequence[str]] = {}
        self.items = 0

    def grow(self, service: Service, items: int, vectors: Vectors, done: Done) -> None:
        """Load memories until there are *items*, and store their embeddings."""
        more = items - self.items
        contents = self._source.items(2 * more)
        load(service.conninfo, contents, owners=self._owners, count=more, done=done, loaders=_LOADERS)
        self.embed(service, vectors.embed, done)
        with psycopg.connect(operator_conninfo(service.conninfo("postgres")), autocommit=True) as owner:
            owner.execute("RESET ROLE")
            owner.execute("VACUUM ANALYZE")
        self._keys.clear()
        self.items = items

    def embed(self, service: Service, vector_of: Callable[[str], Vector], done: Done = lambda _: None) -> None:
        """Store the vectors of all that is queued for the embedder, whether or not it runs."""

        def embed(text: str) -> Vector:
            done(1)
            return vector_of(text)

        def embed_level(level: Classification) -> None:
            with psycopg.connect(service.conninfo(untrusted(level).role), autocommit=True) as connection:
                connection.execute("SET synchronous_commit = off")
                position = START
                while (batch := embed_batch(connection, embed, position)) or position != START:
                    position = batch.last if batch else START

        with ThreadPoolExecutor(_LOADERS) as pool:
            list(pool.map(embed_level, Classification))

    def callers(self, service: Service, clients: int) -> Sequence[Caller]:
        """*clients* sessions, of different agents first, then of different levels."""
        with muniment.connect(service.address, host_key=service.host_key, timeout=60) as host:
            return [self._caller(service, host, self._owner(number)) for number in range(clients)]

    def one_level(self, service: Service, clients: int, level: Classification) -> Sequence[Caller]:
        """*clients* sessions of different agents, all at one level."""
        owners = [one for one in self._owners if one.level is level][:clients]
        with muniment.connect(service.address, host_key=service.host_key, timeout=60) as host:
            return [self._caller(service, host, one) for one in owners]

    def agent(self, service: Service, level: Classification) -> tuple[Owner, Sequence[str]]:
        """An agent, by its numbers, and the keys of its memories at one level."""
        owner = [one for one in self._owners if one.level is level][-1]  # if only some agents have any, it does
        return owner, self._keys_of(service, owner)

    def _owner(self, number: int) -> Owner:
        agent, level = number % AGENTS + 1, LEVELS[(number + number // AGENTS) % len(LEVELS)]
        return next(one for one in self._owners if (one.agent, one.level) == (agent, level))

    def _caller(self, service: Service, host: muniment.HostClient, owner: Owner) -> Caller:
        if owner not in self._sessions:
            self._sessions[owner] = _opened(host, owner)
            self._keys.pop(owner, None)  # it has one more now
        session = self._sessions[owner]
        seen = [one for one in self._owners if one.agent == owner.agent and one.level.can_flow_to(owner.level)]
        return Caller(
            token=session.token,
            agent_id=f"agent{owner.agent}",
            keys=[key for one in seen for key in self._keys_of(service, one)],
            own_keys=self._keys_of(service, owner),
            note_id=session.note_id,
        )

    def _keys_of(self, service: Service, owner: Owner) -> Sequence[str]:
        if owner not in self._keys:
            parameters = {**owner._asdict(), "most": _KEYS}
            with psycopg.connect(service.conninfo(untrusted(owner.level).role)) as connection:
                self._keys[owner] = [name for (name,) in connection.execute(_NAMES, parameters)]
        return self._keys[owner]


def _opened(host: muniment.HostClient, owner: Owner) -> _Session:
    session = host.open_session(f"agent{owner.agent}", muniment.Classification(int(owner.level)))
    session.save_memory(_OWN_KEY, "What this session saved first.")
    return _Session(session.token, session.add_note(f"{_NOTE} ({owner.level.name})").note.note_id)
