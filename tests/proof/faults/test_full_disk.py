"""A database whose disk fills up, on a small disk in memory."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import muniment
from muniment import Classification
from muniment_server.postgres.disk import LEAST_FREE, free_bytes
from tests.proof.faults.processes import ServerProcess, may_mount, running, wait_until

pytestmark = pytest.mark.proof
_MIB = 1024 * 1024
_DISK_MIB = 768
_ROOM = 128 * _MIB
"""What is free for saves at first."""
_OVERSHOT = 128 * _MIB
"""Eight segments of the write-ahead log."""
_WRITERS = 4
_BYTES = 30_000
_SLOWEST = 180.0
_HOLD = 60.0


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    if not may_mount():
        pytest.skip("no right to mount a disk in memory")
    with running(ServerProcess(disk_mib=_DISK_MIB)) as server:
        yield server


def test_saves_are_refused_before_postgres_dies_and_all_else_goes_on(server: ServerProcess) -> None:
    postmaster, disk = server.postmaster(), server.database_disk()
    other_file = disk / "other-file"
    _write(other_file, free_bytes(disk) - LEAST_FREE - _ROOM)
    with muniment.connect(server.address, host_key=server.host_key) as host:
        host.create_agent("alice")
        sessions = [host.open_session("alice", level) for level in Classification]

        with ThreadPoolExecutor(_WRITERS) as threads:
            saved = list(threads.map(_save_until_refused, sessions))
        left = free_bytes(disk)
        for session, keys in zip(sessions, saved, strict=True):
            _go_on(host, session, keys)
        assert free_bytes(disk) > LEAST_FREE - _OVERSHOT

        other_file.unlink()
        recovery = wait_until(lambda: _is_stored(sessions[0]), "saves go on", seconds=_HOLD)

        for session, keys in zip(sessions, saved, strict=True):
            assert {memory.key for memory in session.list_memories()} >= set(keys[1:])
    assert server.postmaster() == postmaster
    print(f"{sum(map(len, saved))} saves, then {left // _MIB} MiB were left; saves went on after {recovery:.1f} s")


def _write(file: Path, size: int) -> None:
    with file.open("wb") as other:
        os.posix_fallocate(other.fileno(), 0, size)


def _save_until_refused(session: muniment.SessionClient) -> list[str]:
    """Save texts that do not compress. Returns the keys of what was acknowledged."""
    keys: list[str] = []
    end = time.monotonic() + _SLOWEST
    while time.monotonic() < end:
        key = f"key-{len(keys)}"
        try:
            session.save_memory(key, secrets.token_urlsafe(_BYTES))
        except muniment.StorageFull:
            return keys
        keys.append(key)
    raise AssertionError("no save was refused")


def _go_on(host: muniment.HostClient, session: muniment.SessionClient, keys: list[str]) -> None:
    """What must go on while the disk is full."""
    session.get_memory(keys[-1])
    session.render_prompt()
    session.delete_memory(keys[0])
    other = host.open_session("alice", Classification.PUBLIC)
    host.raise_taint(other, Classification.RESTRICTED)
    host.close_session(host.reset_session(other))
    with pytest.raises(muniment.StorageFull):
        session.save_memory("one-more", "text")


def _is_stored(session: muniment.SessionClient) -> bool:
    try:
        session.save_memory("after", "text")
    except muniment.StorageFull:
        return False
    return True
