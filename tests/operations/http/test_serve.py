"""`muniment serve --http`: a gateway beside the workers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess

import pytest
from click.testing import CliRunner

from muniment_server.admin.serve import serve
from tests.operations.http.gateways import call
from tests.support.command_fixtures import data_dir, serving
from tests.support.commands import COMMAND, run, run_process, wait_until
from tests.support.ports import free_port

__all__ = ["data_dir", "serving"]
LIST = "AgentService/ListAgents"


def _gateway_of(server):
    return next((pid for pid, command in server.children().items() if "muniment_http.child" in command), None)


@pytest.mark.usefixtures("data_dir")
def test_its_crash_ends_no_worker_and_it_comes_back(serving, folder):
    port = free_port()
    server = serving("--dev", "--http", f"127.0.0.1:{port}")
    server.read_to_the_last_line()
    host_key = json.loads((folder / ".muniment" / "development.json").read_text())["host_key"]
    workers, gateway = server.workers, _gateway_of(server)
    assert f"HTTP is at http://127.0.0.1:{port}." in server.output
    assert call(port, LIST, host_key).status == 200

    os.kill(gateway, signal.SIGKILL)

    assert run(folder, "agent", "list").returncode == 0
    wait_until(lambda: _gateway_of(server) not in {None, gateway}, "another gateway runs")
    wait_until(lambda: _answers(port, host_key), "it forwards calls")
    assert server.workers == workers
    assert server.stop() == 0


def _answers(port, host_key):
    try:
        return call(port, LIST, host_key).status == 200
    except OSError:
        return False


@pytest.mark.usefixtures("data_dir")
def test_an_address_that_is_taken_is_named(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run_process(folder, "serve", "--listen", "127.0.0.1:0", "--http", address)

    assert done.returncode == 1
    assert f"the HTTP gateway cannot listen at {address}: Address already in use" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--http", "0.0.0.0:8080"], "run `muniment http` beside the server"),
        (["--http", "127.0.0.1:0"], "--http needs a host and a port"),
        (["--http", "unix:/run/http"], "--http needs a host and a port"),
    ],
)
def test_a_mistake_in_the_options_is_named(options, message):
    done = subprocess.run([*COMMAND, "serve", *options], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert message in done.stderr


def test_without_the_extra_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    result = CliRunner().invoke(serve, ["--data-dir", str(tmp_path), "--http", "127.0.0.1:8080"])

    assert "HTTP needs the extra `http`" in result.output
