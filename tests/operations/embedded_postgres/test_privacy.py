"""What Postgres never tells: to its log, to the network, to other users, in a core dump."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path

import psycopg
import pytest

from tests.support.embedded import PYTHONS, as_root, python_for, query

CANARY = "canary7f3a"
MIB = 1024 * 1024

FAILURES = {
    "unique violation": ("INSERT INTO note VALUES (%s)", (CANARY,)),
    "division by zero": ("SELECT %s::text, 1 / %s::int", (CANARY, 0)),
    "syntax error": (f"SELEKT {CANARY}", ()),
    "text that is no uuid": ("SELECT %s::uuid", (CANARY,)),
    "query that does not parse": ("SELECT to_tsquery('simple', %s)", (f"{CANARY} & & {CANARY}",)),
    "raised by a function": (f"DO $$ BEGIN RAISE WARNING '{CANARY}'; RAISE '{CANARY}'; END $$", ()),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_an_error_leaves_no_content_in_the_log(embedded, directory, failure):
    with embedded() as server:
        conninfo = server.conninfo(user="postgres")
        query(conninfo, "CREATE TABLE note (text text UNIQUE)")
        query(conninfo, "INSERT INTO note VALUES (%s)", CANARY)
        statement, parameters = FAILURES[failure]
        with pytest.raises(psycopg.Error):
            query(conninfo, statement, *parameters)

    assert CANARY not in (directory / "postgres.log").read_text()


def test_a_crashing_session_leaves_its_crash_in_the_log_but_not_its_statement(embedded, directory):
    with embedded() as server, psycopg.connect(server.conninfo(user="postgres")) as victim:
        backend = victim.info.backend_pid
        waiting = threading.Thread(target=_sleep_until_killed, args=[victim], daemon=True)
        waiting.start()
        while query(server.conninfo(user="postgres"), _STATE, backend) != "active":
            pass
        os.kill(backend, signal.SIGSEGV)
        waiting.join()
        while not _answers(server.conninfo(user="postgres")):
            pass  # a shutdown during recovery may hang until it is made an immediate one

    log = (directory / "postgres.log").read_text()
    assert "was terminated by signal 11" in log
    assert CANARY not in log


def _answers(conninfo: str) -> bool:
    try:
        return bool(query(conninfo, "SELECT 1"))
    except psycopg.OperationalError:
        return False


_STATE = "SELECT state FROM pg_stat_activity WHERE pid = %s"


def _sleep_until_killed(connection: psycopg.Connection[tuple[str, ...]]) -> None:
    with pytest.raises(psycopg.OperationalError):
        connection.execute(f"SELECT pg_sleep(60) /* {CANARY} */".encode())


def test_no_core_is_dumped(embedded):
    with embedded() as server:
        limits = Path(f"/proc/{server.pid}/limits").read_text().splitlines()

    assert [line.split()[4:6] for line in limits if line.startswith("Max core file size")] == [["1", "1"]]


def test_no_port_is_opened(embedded):
    with embedded() as server:
        inodes = {os.readlink(path) for path in Path(f"/proc/{server.pid}/fd").iterdir()}
        lines = [line for name in ("tcp", "tcp6") for line in _table(name)]

    assert not [line for line in lines if f"socket:[{line.split()[9]}]" in inodes]


def _table(name: str) -> list[str]:
    path = Path("/proc/net", name)
    return path.read_text().splitlines()[1:] if path.exists() else []


@as_root
def test_another_user_is_not_admitted(embedded):
    """Not even into the socket's directory."""
    intruder = "import sys, psycopg; psycopg.connect(sys.argv[1])"
    with embedded() as server:
        conninfo = server.conninfo(user="postgres")
        done = subprocess.run(
            [python_for(4321), "-c", intruder, conninfo],
            env={"PYTHONPATH": os.pathsep.join(_readable_path())},
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            user=4321,
        )

    assert "Permission denied" in done.stderr, PYTHONS


def _readable_path() -> list[str]:
    return [str(Path(psycopg.__file__).parent.parent)]


def test_a_server_of_another_user_is_not_trusted(embedded):
    """A stranger who takes the socket's place gets no session from us."""
    with embedded() as server:
        conninfo = server.conninfo(user="postgres")
        mistrustful = psycopg.conninfo.make_conninfo(conninfo, requirepeer="daemon")
        with pytest.raises(psycopg.OperationalError, match="requirepeer"):
            query(mistrustful, "SELECT 1")

    assert "requirepeer=" in conninfo


def test_the_log_is_put_aside_when_it_is_long(embedded, directory):
    """One older log is kept, so that there are never more than two."""
    with embedded():
        pass
    log, older = directory / "postgres.log", directory / "postgres.log.1"
    for filler in ("first", "second"):
        log.write_text(filler * MIB)
        with embedded():
            pass

    assert older.read_text(errors="replace").startswith("second")
    assert log.stat().st_size < MIB
    assert oct(log.stat().st_mode & 0o777) == "0o600"
    assert len(list(directory.glob("postgres.log*"))) == 2


def test_a_short_log_is_continued(embedded, directory):
    with embedded():
        pass
    before = (directory / "postgres.log").read_text()
    with embedded():
        pass

    assert (directory / "postgres.log").read_text().startswith(before)
