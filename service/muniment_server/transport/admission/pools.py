"""How many calls of each sort there may be, and the threads that run them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.monitor.policy import Method
from muniment_server.postgres import roles
from muniment_server.transport.admission.calls import CallPool
from muniment_server.transport.admission.shares import Shares

_LONG_CALLS_PER_THREAD = 128
_ERASURES = 64
"""The most calls that erase. One runs at a time, and others have their turn after each batch."""
_FOR_ERASING = 2
"""The connections of the eraser: one for calls, one for deleted agents."""
_FOR_SEALING = 1
"""The connection of the sealer, in the role of the auditor, beside those of calls: it may be held for seconds."""
_FOR_TRUSTED = 1
"""The fewest connections of each trusted label. They are opened only if they are used."""
_MAX_STREAMS = 128
_RECEIVED_AT_ONCE = (256, 192, 10, 5)
"""Messages of all sessions, of a tenant, of an agent at one level, and of a session."""
_RECEIVED_OF_FEW = (64, 48, 10, 5)
"""The same for hosts, of which a key is the third, and for searches and prompts."""
_HEALTH_CHECKS = 16
"""How many health checks one connection may have under way."""
_HEALTH_BYTES = 64 * 1024
"""How many bytes their requests may have."""
_HEALTH_RECEIVED = 4
"""How many of their messages are received at once."""
_CONNECTIONS = 2**20
"""`Shares` divides a total. This one is too large to be used up, so each connection has a fixed part."""
_HEALTH_THREADS = 2
_MIB = 1024 * 1024
_MAX_ANSWER = 3 * _MIB
"""A page ends before it is longer."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one server takes on at once."""

    threads: int = 4
    """Calls of sessions that run at once. More would contend for the interpreter lock."""
    host_threads: int = 2
    """Calls of hosts that run at once, on threads of their own: raising a taint must not wait for sessions."""
    long_threads: int = 2
    """Searches and renderings that run at once, on threads of their own."""
    running_streams: int = 1
    """Streams that store at once. Those that wait for their callers are not counted."""
    max_in_flight: int = 2048
    """Calls that run or wait, of sessions and of hosts each, apart from long ones, erasures and streams. As many may
    wait for their message."""
    max_bytes: int = 64 * _MIB
    """Requests in memory, for each of the five sorts of calls."""

    def connections(self, most: int) -> Mapping[str, int]:
        """How many connections each role may open: one for each thread that may use it, or its part of *most*.

        Each label has a fixed part, so that load at one label takes no connection from another. The eraser and the
        sealer have all that they may use. Trusted labels divide what the others leave.
        """
        wanted = self._wanted()
        total = sum(wanted.values())
        most -= _FOR_ERASING + _FOR_SEALING + _FOR_TRUSTED * len(roles.OF_TRUSTED)
        parts = wanted if total <= most else {role: max(1, most * count // total) for role, count in wanted.items()}
        for_each = _FOR_TRUSTED + (most - sum(parts.values())) // len(roles.OF_TRUSTED)
        trusted = dict.fromkeys(roles.OF_TRUSTED, max(_FOR_TRUSTED, min(for_each, self._of_sessions)))
        return {**parts, **trusted, roles.ERASER: _FOR_ERASING, roles.AUDITOR: parts[roles.AUDITOR] + _FOR_SEALING}

    @property
    def _of_sessions(self) -> int:
        return self.threads + self.long_threads + self.running_streams

    def _wanted(self) -> Mapping[str, int]:
        beside_calls = 2  # to look tokens up, and to ask whether the database answers
        erasing = 1
        control = self._of_sessions + self.host_threads + erasing + beside_calls
        single = {roles.CONTROL: control, roles.AUDITOR: self.host_threads}
        untrusted = [label for label in roles.LABELS if label not in roles.OF_TRUSTED]
        return {**dict.fromkeys(untrusted, self._of_sessions), **single}


@dataclass(frozen=True, slots=True)
class Pools:
    """A pool for each sort of call. A full one refuses its own calls, not those of the others."""

    calls: CallPool
    hosts: CallPool
    long: CallPool
    health: CallPool
    """Checks of the health, which need no credential: they are answered when all others are busy."""
    erasing: Shares
    streams: Shares
    """Erasures and streams have threads of their own: see `AdmittedStream`."""

    @classmethod
    def of(cls, limits: Limits) -> Pools:
        """The pools of a server with *limits*."""
        shares = partial(Shares, max_bytes=limits.max_bytes, max_answer=_MAX_ANSWER)
        of_calls = shares(received=_RECEIVED_AT_ONCE, turns=limits.threads, max_calls=limits.max_in_flight)
        of_hosts = shares(received=_RECEIVED_OF_FEW, turns=limits.host_threads, max_calls=limits.max_in_flight)
        of_long = shares(
            received=_RECEIVED_OF_FEW,
            turns=limits.long_threads,
            turns_of_tenant=limits.long_threads,
            max_calls=_LONG_CALLS_PER_THREAD * limits.long_threads,
        )
        of_health = Shares(
            received=(_HEALTH_RECEIVED * _CONNECTIONS, _HEALTH_RECEIVED),
            turns=_HEALTH_THREADS,
            max_calls=_HEALTH_CHECKS * _CONNECTIONS,
            max_bytes=_HEALTH_BYTES * _CONNECTIONS,
            max_answer=0,
            parts=(1 / _CONNECTIONS,),
        )
        return cls(
            calls=CallPool("call", limits.threads, of_calls),
            hosts=CallPool("host", limits.host_threads, of_hosts),
            long=CallPool("long", limits.long_threads, of_long),
            health=CallPool("health", _HEALTH_THREADS, of_health),
            erasing=shares(turns=1, max_calls=_ERASURES, max_answer=0),
            streams=shares(turns=limits.running_streams, max_calls=_MAX_STREAMS, max_answer=0),
        )

    def by_name(self) -> Iterator[tuple[str, Shares]]:
        """The sorts of calls, and what is under way of each."""
        yield from (("calls", self.calls.shares), ("hosts", self.hosts.shares), ("long", self.long.shares))
        yield from (("erasing", self.erasing), ("streams", self.streams))

    def stop(self) -> None:
        """End the threads."""
        for pool in (self.calls, self.hosts, self.long, self.health):
            pool.stop()

    def shares_with_threads(self, method: Method) -> Shares | None:
        """The turns of calls with threads of their own. None: those of *method* have none."""
        if method.takes_stream:
            return self.streams
        return self.erasing if method.name == "EraseItems" else None

    def pool_for(self, principal: HostIdentity | SessionIdentity, method: Method) -> CallPool:
        """The pool for a call of *principal* that has no thread of its own."""
        if isinstance(principal, HostIdentity):
            return self.hosts
        return self.long if method.declared.runs_long else self.calls
