"""Which database server may be used, so that no taint falls after a failover.

A promoted standby begins a new timeline. A server on a lower timeline than the highest seen, such as the old primary
that came back, may lack raises of taint, and so may another system, such as a restored dump. Both are refused.

Each connection reads the epoch of its server once, when it is opened. The highest epoch is kept in a file that all
processes of a server share, and that survives their restart. Each use of a pooled connection compares the two, without
a round trip, and mostly without a look at the file: for a moment, a process trusts what it saw there. One that finds a
new epoch waits as long before it uses a server; by then, no process begins a call on the old one.

On a cluster, the server is the coordinator. The epochs of the workers, `Epoch.nodes`, are also read again once a
second.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg

_LOG = logging.getLogger("muniment.database")
_TRUST_SECONDS = 0.01
"""For how long a process trusts what it saw in the file. A look gives up the interpreter lock: one for each call took
3 to 4 % of the CPU of a read."""
_ADOPT = "if this is the server to use from now on, run `muniment database adopt`"


@dataclass(frozen=True, slots=True)
class Epoch:
    """The system identifier of a database server, and its timeline, which each promotion raises."""

    system: str
    timeline: int
    """0 on a standby, which writes none."""
    nodes: Mapping[str, Epoch] = field(default_factory=dict)
    """The workers of a cluster that answered, by their groups in pg_dist_node, which are never used again."""


class WrongEpoch(psycopg.OperationalError):
    """The server may lack what another one has acknowledged. The text says what to do."""


class EpochGuard:
    """Refuses servers below the highest epoch seen by all guards of one directory, or without one, by this guard."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._file = directory / "epoch.json" if directory else None
        self._highest: Epoch | None = None
        self._version: tuple[int, int] | None = None
        self._look_at = self._changed_at = 0.0
        """When to look at the file again, and when it was first seen as it is, in seconds of the monotonic clock."""
        self._refused: Epoch | None = None
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        """Without it, what one thread has read before a change could replace what another has read after it."""

    def admit(self, found: Epoch) -> Epoch:
        """Record the epoch of a server; return what is known of it. Raises WrongEpoch if it must not be used.

        Nodes that did not answer, or were removed from the cluster, are known as they were seen last.
        """
        try:
            highest = self.highest()
            known = _with_known_nodes(found, highest)
            if known != highest or not self._is_kept():
                with self._locked():
                    self.check(found)
                    known = _with_known_nodes(found, self.highest())
                    self._keep(known)
            self._outlast_trust()
            return known
        except (OSError, WrongEpoch) as refused:
            if found != self._refused:  # once: each call tries again
                _LOG.critical("refused a database server: %s", refused)
            self._refused = found
            raise WrongEpoch(str(refused)) from None

    def check(self, found: Epoch) -> None:
        """Raise WrongEpoch if a server of the epoch *found* must not be used."""
        highest = self.highest()
        _check("it", found, highest)
        for group, node in found.nodes.items():
            _check(f"its node of group {group}", node, highest.nodes.get(group) if highest else None)

    def adopt(self, found: Epoch) -> None:
        """Use the server of the epoch *found* from now on, whatever was seen before.

        Of the same cluster, nodes that did not answer stay as they were seen. Raises WrongEpoch if one is a standby.
        """
        for group, node in found.nodes.items():
            _check(f"its node of group {group}", node, None)
        with self._locked():
            try:
                highest = self.highest()
            except WrongEpoch:  # the file is damaged
                highest = None
            same = highest is not None and highest.system == found.system
            self._keep(_with_known_nodes(found, highest if same else None))
        self._outlast_trust()

    def is_behind(self, epoch: Epoch | None) -> bool:
        """Whether another server has overtaken the one of *epoch*, or might have: the file cannot be read.

        Looks at the file only if what it has seen may not be trusted any more.
        """
        now = time.monotonic()
        if now >= self._look_at:
            try:
                self.highest()
            except (OSError, WrongEpoch):
                return True
            self._look_at = now + _TRUST_SECONDS
        return epoch != self._highest

    def highest(self) -> Epoch | None:
        """The highest epoch seen. None: no server was. Raises WrongEpoch if the file is damaged.

        If the file is deleted, what this object has read from it still holds.
        """
        if self._file is None:
            return self._highest
        with suppress(FileNotFoundError):
            if _version(self._file) != self._version:
                with self._reading:
                    version = _version(self._file)
                    self._highest, self._version = _read(self._file), version
                    self._changed_at = time.monotonic()
        return self._highest

    def _outlast_trust(self) -> None:
        """Wait until no other process trusts what it saw before the file changed."""
        if self._file is not None:
            time.sleep(max(0.0, self._changed_at + _TRUST_SECONDS - time.monotonic()))

    def _is_kept(self) -> bool:
        return self._file is None or self._file.exists()

    def _keep(self, epoch: Epoch) -> None:
        with self._reading:
            if self._file is not None:
                _replace(self._file, epoch)
            self._highest = epoch
            self._changed_at = time.monotonic()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time reads the file and replaces it: what is kept only rises."""
        with self._lock:
            if self._directory is None:
                yield
                return
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (self._directory / "epoch.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield


def _check(name: str, found: Epoch, highest: Epoch | None) -> None:
    """Raise WrongEpoch if a server is a standby, is of another system than *highest*, or is behind it."""
    if found.timeline == 0:
        raise WrongEpoch(f"{name} is a standby: connect to the primary")
    if highest is None:
        return
    if found.system != highest.system:
        raise WrongEpoch(f"{name} is system {found.system}, and system {highest.system} was used before: {_ADOPT}")
    if found.timeline < highest.timeline:
        raise WrongEpoch(
            f"{name} is on timeline {found.timeline}, and timeline {highest.timeline} was seen, so another server was "
            f"promoted in its place: stop it; {_ADOPT}"
        )


def _with_known_nodes(found: Epoch, highest: Epoch | None) -> Epoch:
    """*found*, with the nodes that only *highest* has."""
    if highest is None or not highest.nodes:
        return found
    return replace(found, nodes={**highest.nodes, **found.nodes})


def _version(file: Path) -> tuple[int, int]:
    """What changes whenever *file* is replaced. Raises FileNotFoundError."""
    found = file.stat()
    return found.st_ino, found.st_mtime_ns


def _read(file: Path) -> Epoch:
    try:
        kept = json.loads(file.read_text("utf-8"))
        nodes = {str(group): _epoch(node) for group, node in kept.get("nodes", {}).items()}
        return replace(_epoch(kept), nodes=nodes)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise WrongEpoch(f"{file} is damaged, so what was seen is unknown: {_ADOPT}") from None


def _epoch(kept: Mapping[str, Any]) -> Epoch:
    return Epoch(str(kept["system"]), int(kept["timeline"]))


def _fields(epoch: Epoch) -> dict[str, Any]:
    """What the file has of *epoch*. On plain Postgres, it has no nodes."""
    own = {"system": epoch.system, "timeline": epoch.timeline}
    return {**own, "nodes": {group: _fields(node) for group, node in epoch.nodes.items()}} if epoch.nodes else own


def _replace(file: Path, epoch: Epoch) -> None:
    """Write *epoch*. A complete file exists at all times, and the new one survives a power failure."""
    part = file.with_suffix(".part")
    with part.open("w", encoding="utf-8") as writer:
        json.dump(_fields(epoch), writer)
        writer.flush()
        os.fsync(writer.fileno())
    part.replace(file)
    _sync(file.parent)


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
