"""Which database server may be used, so that no taint falls after a failover.

A promoted standby begins a new timeline. A server on a lower timeline than the highest seen, such as the old primary
that came back, lacks later raises of taint, and so does another system, such as a restored dump. Both are refused.
What was seen is kept in a file, which all processes of a server share: a file survives restarts, needs no process to
hand it out, and a look at its inode for each call costs a microsecond.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg

_LOG = logging.getLogger("muniment.database")
_ADOPT = "if this is the server to use from now on, run `muniment database adopt`"


@dataclass(frozen=True, slots=True)
class Epoch:
    """A moment in the life of a database: its system identifier, and its timeline, which each promotion raises."""

    system: str
    timeline: int


class WrongEpoch(psycopg.OperationalError):
    """The server lacks what was acknowledged elsewhere, or that cannot be known. The text says what to do."""


class EpochGuard:
    """The highest epoch seen by all that share a directory; by this object alone, if there is none."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._highest: Epoch | None = None
        self._version: tuple[int, int] | None = None
        self._refused: Epoch | None = None
        self._lock = threading.Lock()

    def admit(self, found: Epoch) -> None:
        """Take note of the epoch of a server. Raises WrongEpoch if it must not be used."""
        try:
            if found == self.highest():
                return
            with self._locked():
                self.judge(found)
                self._keep(found)
        except (OSError, WrongEpoch) as refused:
            if found != self._refused:  # once: each call tries again
                _LOG.critical("refused a database server: %s", refused)
            self._refused = found
            raise WrongEpoch(str(refused)) from None

    def judge(self, found: Epoch) -> None:
        """Raise WrongEpoch if a server of the epoch *found* must not be used."""
        highest = self.highest()
        if highest is None:
            return
        if found.system != highest.system:
            raise WrongEpoch(f"it is system {found.system}, and system {highest.system} was used before: {_ADOPT}")
        if found.timeline < highest.timeline:
            raise WrongEpoch(
                f"it is on timeline {found.timeline}, and timeline {highest.timeline} was seen, so another server was "
                f"promoted in its place: stop it; {_ADOPT}"
            )

    def adopt(self, found: Epoch) -> None:
        """Use the server of the epoch *found* from now on, whatever was seen before."""
        with self._locked():
            self._keep(found)

    def is_behind(self, epoch: Epoch | None) -> bool:
        """Whether a server of *epoch* was overtaken since it was admitted, or may have been."""
        try:
            return epoch != self.highest()
        except (OSError, WrongEpoch):
            return True

    def highest(self) -> Epoch | None:
        """The highest epoch seen. None: no server was. Raises WrongEpoch if the file is damaged."""
        if self._directory is None:
            return self._highest
        try:
            found = self._file.stat()
        except FileNotFoundError:
            return None
        version = found.st_ino, found.st_mtime_ns
        if version != self._version:
            self._highest, self._version = self._read(), version
        return self._highest

    @property
    def _file(self) -> Path:
        assert self._directory is not None
        return self._directory / "epoch.json"

    def _read(self) -> Epoch:
        try:
            kept = json.loads(self._file.read_text("utf-8"))
            return Epoch(str(kept["system"]), int(kept["timeline"]))
        except (ValueError, KeyError, TypeError):
            raise WrongEpoch(f"{self._file} is damaged, so what was seen is unknown: {_ADOPT}") from None

    def _keep(self, epoch: Epoch) -> None:
        """Replace the file, so that a whole one is there at all times, and survives a power failure."""
        if self._directory is None:
            self._highest = epoch
            return
        part = self._file.with_suffix(".part")
        with part.open("w", encoding="utf-8") as file:
            json.dump(asdict(epoch), file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._file)
        _sync(self._directory)

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


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
