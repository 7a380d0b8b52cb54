"""A database behind PgBouncer: session mode works, and transaction mode is refused."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import conninfo as libpq

import muniment
from muniment import Classification
from muniment_server.postgres import pool, roles
from muniment_server.postgres.pool import RoleConnection, WrongSettings, verify
from tests.support.commands import SYSTEM_POSTGRES, Server, line_of, run, run_process, wait_until
from tests.support.external_postgres import admin_url
from tests.support.ports import free_port

PGBOUNCER = shutil.which("pgbouncer", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin"]))
pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not SYSTEM_POSTGRES, reason="NO SYSTEM POSTGRES in /usr/lib/postgresql: not tested"),
    pytest.mark.skipif(
        not PGBOUNCER and not os.environ.get("REQUIRE_ALL_CLIENTS"),
        reason="NO PGBOUNCER (apt-get install pgbouncer): not tested",
    ),
]
_LINES = """
[databases]
kept = host=127.0.0.1 port={postgres}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = {mode}
default_pool_size = 20
"""

Pooler = Callable[[str], str]


@pytest.fixture
def pooler(folder: Path, other_postgres: int, passfile: Path) -> Iterator[Pooler]:
    """Start PgBouncer in a mode; the URL of the database behind it."""
    assert PGBOUNCER, "REQUIRE_ALL_CLIENTS is set, and there is no PgBouncer"
    rights: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    started: list[subprocess.Popen[bytes]] = []

    def start(mode: str) -> str:
        users, settings, port = folder / "users.txt", folder / "pgbouncer.ini", free_port()
        logins = [line.split(":")[3:5] for line in passfile.read_text().splitlines()]
        users.write_text("".join(f'"{role}" "{password}"\n' for role, password in logins))
        settings.write_text(_LINES.format(postgres=other_postgres, port=port, users=users, mode=mode))
        started.append(subprocess.Popen([str(PGBOUNCER), "-q", str(settings)], stderr=subprocess.DEVNULL, **rights))
        url = f"postgresql://127.0.0.1:{port}/kept"
        wait_until(lambda: _answers(_as_control(url, passfile)), "no PgBouncer")
        return url

    yield start
    for process in started:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def _as_control(url: str, passfile: Path) -> str:
    return libpq.make_conninfo(url, user=roles.CONTROL, passfile=str(passfile))


def _answers(conninfo: str) -> bool:
    try:
        psycopg.connect(conninfo).close()
    except psycopg.OperationalError:
        return False
    return True


def test_session_mode_works(
    serving: Callable[..., Server], folder: Path, url: str, passfile: Path, pooler: Pooler
) -> None:
    """With many calls at once, and a verdict of the doctor."""
    options = ("--database-url", pooler("session"), "--passfile", str(passfile))
    server = serving(*options, "--workers", "1")
    as_admin = {"MUNIMENT_DATABASE_URL": admin_url(url)}
    key = line_of(
        run(folder, "host-key", "create", "--tenant", "pooled", "--ceiling", "restricted", "--quiet", **as_admin)
    )
    with muniment.connect(server.address, host_key=key) as host:
        host.create_agent("alice")
        sessions = [host.open_session("alice", level) for level in Classification]
        with ThreadPoolExecutor(16) as threads:
            saved = list(threads.map(lambda n: sessions[n % 4].save_memory(f"{n}", "text"), range(200)))

    assert [memory.classification for memory in saved] == [[*Classification][number % 4] for number in range(200)]
    checked = run_process(folder, "doctor", *options)
    assert checked.returncode == 0, checked.stdout
    assert server.stop() == 0


def test_transaction_mode_is_refused(folder: Path, passfile: Path, pooler: Pooler) -> None:
    """A lock, a setting and a prepared statement would each be of another connection."""
    options = ("--database-url", pooler("transaction"), "--passfile", str(passfile))

    refused = run_process(folder, "serve", "--listen", "127.0.0.1:0", *options)

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "pool_mode to session" in refused.stderr
    assert "pool_mode to session" in run_process(folder, "doctor", *options).stdout


def test_a_connection_that_does_not_keep_its_settings_is_refused(
    url: str, passfile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Postgres itself keeps them: so what asks for them asks for others here."""
    with RoleConnection.connect(_as_control(url, passfile), autocommit=True) as connection:
        verify(connection, roles.CONTROL)
        forgetful = {**pool._QUERIES, "apply_settings": "SELECT %(names)s::text[], %(settings)s::text[]"}
        connection.execute("RESET ALL")
        monkeypatch.setattr(pool, "_QUERIES", forgetful)
        with pytest.raises(WrongSettings):
            verify(connection, roles.CONTROL)
