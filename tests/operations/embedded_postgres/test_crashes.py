"""What survives kill -9, and what a start finds in its way afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from muniment_server.embedded_postgres import conninfo_of_running
from muniment_server.embedded_postgres.postmaster import postmaster_of
from tests.support.embedded import as_root, query

pytestmark = pytest.mark.proof


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Whether process *pid* has ended; as a zombie no one reaps, perhaps."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def kill_postgres(server) -> None:
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: not server.running, "Postgres survived SIGKILL")


def test_rows_survive_the_death_of_postgres_and_the_same_object_starts_again(embedded):
    server = embedded(durable=True)
    server.start()
    query(server.conninfo(user="postgres"), "CREATE TABLE kept AS SELECT 'vanilla' AS flavor")
    kill_postgres(server)

    server.start()

    assert query(server.conninfo(user="postgres"), "SELECT flavor FROM kept") == "vanilla"


def test_a_dead_server_is_not_taken_for_a_running_one(embedded, directory):
    server = embedded()
    server.start()
    kill_postgres(server)

    assert conninfo_of_running(directory, user="postgres") is None


def test_postgres_stops_by_itself_when_its_supervisor_is_killed(supervisor, directory):
    process = supervisor(directory)
    process.kill()

    wait_until(lambda: is_gone(process.report["pid"]), "Postgres outlived its supervisor")
    assert not (directory / "data" / "postmaster.pid").exists()  # a clean shutdown


def test_a_start_right_after_the_supervisor_was_killed_waits_for_its_postgres(supervisor, embedded, directory):
    process = supervisor(directory)
    process.kill()

    with embedded() as server:
        assert server.pid != process.report["pid"]
        assert is_gone(process.report["pid"])


def test_an_orphan_that_still_serves_is_shut_down_and_taken_over(embedded, directory, parent):
    """As where no death signal reaches it."""
    with embedded() as server:
        command = Path(f"/proc/{server.pid}/cmdline").read_bytes().split(b"\0")[:-1]
    owner = (directory / "data").stat()
    rights: dict[str, Any] = {"user": owner.st_uid, "group": owner.st_gid} if os.geteuid() == 0 else {}
    with (
        (parent / "orphan.log").open("wb") as log,
        subprocess.Popen(command, stderr=log, cwd="/", **rights) as orphan,
    ):
        wait_until(lambda: conninfo_of_running(directory, user="postgres") is not None, "no orphan")
        with embedded() as server:
            assert orphan.wait(60) == 0
            assert query(server.conninfo(user="postgres"), "SELECT 1") == 1
    assert "received fast shutdown request" in (parent / "orphan.log").read_text()


def test_a_busy_session_of_a_killed_postgres_is_ended(embedded):
    """It holds the shared memory, and does not notice its postmaster's death."""
    server = embedded()
    server.start()
    with psycopg.connect(server.conninfo(user="postgres")) as busy:
        thread = threading.Thread(target=_count_without_end, args=[busy], daemon=True)
        thread.start()
        wait_until(lambda: _is_active(server, busy.info.backend_pid), "the query does not run")
        backend = busy.info.backend_pid
        kill_postgres(server)
        assert not is_gone(backend)

        server.start()

        assert is_gone(backend)
        thread.join()


def _count_without_end(connection: psycopg.Connection[tuple[int, ...]]) -> None:
    with contextlib.suppress(psycopg.OperationalError):
        connection.execute("SELECT count(*) FROM generate_series(1, 10000000000) WHERE random() > 2")


def _is_active(server, backend: int) -> bool:
    asked = "SELECT state = 'active' FROM pg_stat_activity WHERE pid = %s"
    return query(server.conninfo(user="postgres"), asked, backend) is True


def test_a_pid_that_by_now_is_a_strangers_does_not_matter(embedded, directory):
    """Postgres alone would refuse: a live process of its own user has the pid in its lock files."""
    server = embedded()
    server.start()
    kill_postgres(server)
    owner = (directory / "data").stat().st_uid
    with subprocess.Popen(["sleep", "60"], user=owner if os.geteuid() == 0 else None, cwd="/") as stranger:
        for path in (directory / "data" / "postmaster.pid", directory / "run" / ".s.PGSQL.5432.lock"):
            _, _, rest = path.read_text().partition("\n")
            path.write_text(f"{stranger.pid}\n{rest}")
        try:
            server.start()
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_a_pid_file_that_was_cut_short_does_not_matter(embedded, directory):
    """As a power failure leaves it; Postgres alone would refuse."""
    server = embedded()
    server.start()
    kill_postgres(server)
    (directory / "data" / "postmaster.pid").write_text("")

    server.start()

    assert server.running


def test_half_a_cluster_is_made_again(embedded, directory):
    (directory / "data.part" / "base").mkdir(parents=True)
    directory.chmod(0o711)

    with embedded() as server:
        assert query(server.conninfo(user="postgres"), "SELECT 1") == 1


@as_root
@pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare to make a pid namespace")
def test_a_restarted_container_in_which_every_pid_comes_again(supervisor, directory):
    """The pid file a kill left names the new server's pid, as ready."""
    container = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    supervisor(directory, command=container).finish()
    pids = []
    for _ in range(2):
        process = supervisor(directory, command=container)
        assert process.report["greeting"] == "muniment é"
        pids.append(process.report["pid"])
        process.kill()

    assert pids[0] == pids[1]


def test_a_server_that_waits_for_ever_to_shut_down_is_not_serving(embedded, monkeypatch):
    """A smart shutdown waits for each client, and lets in no new one."""
    server = embedded()
    server.start()
    with psycopg.connect(server.conninfo(user="postgres")):
        os.kill(server.pid, signal.SIGTERM)
        wait_until(
            lambda: getattr(postmaster_of(server._data), "status", "") == "stopping", "the shutdown did not begin"
        )

        assert (server.running, server.is_serving()) == (True, True)
        monkeypatch.setattr("muniment_server.embedded_postgres.server._STOPPING_SECONDS", 0.0)
        assert (server.running, server.is_serving()) == (True, False)
