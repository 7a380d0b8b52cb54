"""`muniment status`: what it says of a running server, and what to do if it cannot be asked."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from muniment_server.admin.readings import Reading
from muniment_server.admin.status import in_words, status_of
from tests.support.certificates import make
from tests.support.commands import Done, children_of, objects, on_a_terminal, run, wait_until
from tests.support.ports import free_port

_TOKEN = "a-token-for-the-tests-0123456789"
_FIELDS = [  # of a server of which nothing else is set up
    "ready",
    "workers",
    "gate_open",
    "gate_problems",
    "database_up",
    "checksum_failures",
    "database_answered",
    "disk_full",
    "disk_free_bytes",
    "calls_in_flight",
    "calls_queued",
    "calls_by_code",
    "refusals_by_reason",
    "sessions_by_level",
    "agents",
    "agents_being_erased",
    "stored_bytes_by_level",
]


@pytest.fixture
def served(pair_of_workers):
    """That server, once it is ready."""
    wait_until(ready(pair_of_workers.folder), "it is ready")
    return pair_of_workers


@pytest.fixture
def token_file(folder):
    """A file with the token of the server at a port."""
    made = folder / "token"
    made.write_text(_TOKEN)
    made.chmod(0o600)
    return made


@pytest.fixture
def at_a_port(serving, data_dir, token_file):
    """The address of the metrics of a server that requires a token."""
    server = serving(
        "--dev", "--data-dir", ".muniment", "--metrics", "127.0.0.1:0", "--metrics-token-file", str(token_file)
    )
    server.read_to_the_last_line()
    return server.said.partition("Metrics are at ")[2].split()[0].removesuffix(".")


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """A port at which every connection gets *answer*."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer_each() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        threading.Thread(target=answer_each, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def fails(done: Done, *words: str, status: int = 1) -> None:
    assert done.returncode == status
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert [word for word in words if word not in done.stderr] == [], done.stderr


def ready(folder) -> Callable[[], bool]:
    return lambda: run(folder, "status").returncode == 0


def test_a_server_in_development_is_found_and_ready(served):
    run(served.folder, "memory", "get", "none", "--agent", "alice", "--taint", "internal")

    (found,) = objects(run(served.folder, "status", "--json"))

    assert list(found) == _FIELDS
    assert (found["ready"], found["workers"], found["gate_open"]) == (True, 2, True)
    assert found["gate_problems"] == {"grants": 0, "log_settings": 0}
    assert found["database_up"]
    assert (found["disk_full"], found["disk_free_bytes"] > 0) == (False, True)
    assert found["calls_by_code"] == {"OK": 3, "NotFound": 1}
    assert found["refusals_by_reason"] == {"MEMORY_NOT_FOUND": 1}
    assert found["calls_queued"].keys() == found["calls_in_flight"].keys()
    assert set(found["sessions_by_level"]) == {"PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED"}
    assert (found["agents"], found["agents_being_erased"]) == (1, 0)
    assert found["stored_bytes_by_level"]["PUBLIC"] > 0


def test_people_see_a_table_and_pipes_get_lines(served):
    lines = dict(line.split("\t") for line in run(served.folder, "status").stdout.splitlines())
    status, shown = on_a_terminal(served.folder, "status")

    assert list(lines) == _FIELDS
    assert (lines["ready"], lines["workers"]) == ("yes", "2")
    assert status == 0
    assert "database up" in shown


def test_the_queue_of_a_model_that_never_answered_is_not_said_to_be_empty():
    metrics = 'muniment_database_up 1\nmuniment_remote_embedder{address="127.0.0.1:9",ceiling="INTERNAL"} 1\n'
    queue = 'muniment_remote_embedding_queue{level="PUBLIC"} 0\n'
    before, after = (in_words(status_of(Reading.parse(text))) for text in (metrics, metrics + queue))

    assert (before["remote_embedder"], before["remote_embedder_ceiling"]) == ("127.0.0.1:9", "INTERNAL")
    assert "remote_embedding_queue_by_level" not in before
    assert after["remote_embedding_queue_by_level"] == "none"


@pytest.mark.parametrize(
    ("sample", "field"),
    [
        ('muniment_database_up{{server="{}"}}', "servers_up"),
        ('muniment_database_up 1\nmuniment_node_up{{node="{}"}}', "nodes_up"),
    ],
)
def test_a_server_that_is_away_is_named_in_words_too(sample, field):
    metrics = "".join(f"{sample.format(name)} {up}\n" for name, up in {"a": 1, "b": 0}.items())

    assert in_words(status_of(Reading.parse(metrics)))[field] == "a 1, b 0"


def test_a_database_that_hangs_is_reported_at_once(served):
    """No reader waits for it, and it is known since when."""
    database = [served.postgres, *children_of(served.postgres)]
    for process in database:
        os.kill(process, signal.SIGSTOP)
    try:
        wait_until(lambda: run(served.folder, "status").returncode == 1, "it is not ready")
        found = json.loads(run(served.folder, "status", "--json").stdout)
    finally:
        for process in database:
            os.kill(process, signal.SIGCONT)

    assert (found["ready"], found["gate_open"], found["database_up"]) == (False, True, False)
    assert found["database_sqlstate"] == "none"
    assert found["database_down_since"]
    assert not found.keys() & {"sessions_by_level", "stored_bytes_by_level", "agents"}
    wait_until(ready(served.folder), "it is ready again")
    assert "database_down_since" not in objects(run(served.folder, "status", "--json"))[0]


def test_metrics_at_a_port_need_the_token(at_a_port, folder, token_file):
    named = ("--metrics", at_a_port)
    wrong = folder / "wrong"
    wrong.write_text(_TOKEN[::-1])
    wrong.chmod(0o600)

    wait_until(
        lambda: run(folder, "status", *named, "--metrics-token-file", str(token_file)).returncode == 0, "it is ready"
    )
    in_environment = {"MUNIMENT_METRICS": at_a_port, "MUNIMENT_METRICS_TOKEN_FILE": str(token_file)}
    assert run(folder, "status", **in_environment).returncode == 0
    assert run(folder, "status", MUNIMENT_METRICS_TOKEN_FILE=str(token_file)).returncode == 0, (
        "development.json names it"
    )
    fails(run(folder, "status", *named), "need a token", "--metrics-token-file FILE")
    refused = run(folder, "status", *named, "--metrics-token-file", str(wrong))
    fails(refused, "refuses the token")
    assert _TOKEN[::-1] not in refused.stderr
    token_file.chmod(0o644)
    fails(run(folder, "status", *named, "--metrics-token-file", str(token_file)), "chmod 600")


def test_tls_is_used_with_the_authority_that_is_given(serving, data_dir, folder, token_file):
    make(folder, "ca", "-addext", "basicConstraints=critical,CA:TRUE")
    make(folder, "server", "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1")
    make(folder, "other", "-addext", "basicConstraints=critical,CA:TRUE")
    pair = ("--tls-cert", "server.pem", "--tls-key", "server.key")
    secret = ("--metrics-token-file", str(token_file))
    server = serving("--data-dir", ".muniment", *pair, "--metrics", "127.0.0.1:0", *secret)
    server._read_until("Metrics are at")
    named = ("--metrics", server.said.partition("Metrics are at ")[2].split()[0].removesuffix("."), *secret)

    wait_until(lambda: run(folder, "status", *named, "--tls-ca", "ca.pem").returncode == 0, "it is ready")
    fails(run(folder, "status", *named), "does it use TLS? give --tls-ca FILE")
    fails(run(folder, "status", *named, "--tls-ca", "other.pem"), "is not trusted", "--tls-ca FILE")
    fails(run(folder, "status", *named, "--tls-ca", "server.key"), "does not contain a certificate")

    make(folder, "server", "-CA", "other.pem", "-CAkey", "other.key", "-addext", "subjectAltName=IP:127.0.0.1")
    renewed = run(folder, "status", *named, "--tls-ca", "other.pem")
    assert renewed.returncode == 0, "the renewed certificate is served"


def test_a_token_is_never_sent_in_the_clear_to_another_machine(folder, token_file):
    """An address that is not of this machine is reached with TLS only, as the server demands."""
    with socket.create_server(("0.0.0.0", 0)) as listening:
        listening.settimeout(20)
        elsewhere = f"{socket.gethostname()}:{listening.getsockname()[1]}"
        received: list[bytes] = []

        def receive() -> None:
            connection, _ = listening.accept()
            with connection:
                received.append(connection.recv(65536))

        thread = threading.Thread(target=receive, daemon=True)
        thread.start()
        done = run(folder, "status", "--metrics", elsewhere, "--metrics-token-file", str(token_file))
        thread.join(20)
    assert done.returncode == 1
    assert received[0][:1] == b"\x16", "the first byte of a TLS handshake"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ("no server is named", "muniment serve --dev", "make run", "MUNIMENT_METRICS")),
        (
            ("--data-dir", "nowhere"),
            ("no server is named", "nowhere/development.json", "serve --dev --data-dir nowhere"),
        ),
        (("--metrics", "unix:none.sock"), ("at unix:none.sock", "is it running?", "serve --metrics unix:none.sock")),
        (("--metrics", "unix:" + "x" * 200), ("cannot be reached",)),
        (("--metrics", "127.0.0.1:1"), ("no server serves metrics at 127.0.0.1:1",)),
        (("--metrics", "127.0.0.1:1", "--metrics-token-file", "none"), ("none: No such file",)),
        (("--metrics", "127.0.0.1:1", "--tls-ca", "missing.pem"), ("missing.pem: No such file",)),
    ],
)
def test_a_server_that_cannot_be_asked_is_reported_with_what_to_do(folder, arguments, words):
    fails(run(folder, "status", *arguments), *words)


def test_a_server_in_development_that_was_stopped_is_to_be_started_again(serving, folder, data_dir):
    server = serving("--dev", "--data-dir", ".muniment")
    server.read_to_the_last_line()
    server.stop()

    fails(run(folder, "status"), "is it running?", "muniment serve --dev --data-dir .muniment (or make run)")


@pytest.mark.parametrize(
    "arguments", [("--metrics", "nowhere"), ("--metrics", "a:b"), ("--metrics", "unix:x", "--data-dir", "y")]
)
def test_a_wrong_address_is_a_usage_error(folder, arguments):
    fails(run(folder, "status", *arguments), "Usage:", status=2)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"up 1\n", b"muniment_database_up{ 1\n", b"\xff\xfe", b"# TYPE muniment_database_up histogram\n",
        b"muniment_database_up 1\nmuniment_workers{state=\"listening\"} NaN\n",
        b"muniment_database_up 0\nmuniment_database_down_since_timestamp_seconds 1e18\n",
    ],
)  # fmt: skip
def test_something_else_at_the_address_is_reported(folder, body):
    head = b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    with answering(head + body) as address:
        fails(run(folder, "status", "--metrics", address), "not the metrics of a server", "Metrics are at")
    with answering(b"220 mail ready\r\n" + body) as address:
        fails(run(folder, "status", "--metrics", address), "ended the connection")


def test_metrics_that_end_early_are_reported(folder):
    """A line that is lost with the rest would count as a metric that the server does not have."""
    with answering(b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\nmuniment_database_up 1\n") as address:
        fails(run(folder, "status", "--metrics", address), "ended the connection")


def test_a_path_that_is_too_long_serves_no_metrics(serving, folder, made_before):
    """In development they are off, with a line in the log; if they are asked for, the server does not start."""
    deep = folder / ("d" * (100 - len(str(folder))))
    refused = run(folder, "serve", "--dev", "--data-dir", "x", "--metrics", f"unix:{deep}/metrics.sock")
    server = serving("--dev", "--data-dir", str(deep))
    server.read_to_the_last_line()

    fails(refused, "at most 107 bytes", "--metrics")
    assert "Metrics are at" not in server.said
    assert "metrics are not served" in server.errors.read_text()
    fails(run(folder, "status", "--data-dir", str(deep)), "names no metrics")


def test_a_second_server_does_not_take_the_socket(served):
    port = free_port()
    address = f"unix:{served.folder / '.muniment' / 'metrics.sock'}"
    done = run(served.folder, "serve", "--data-dir", "other", "--listen", f"127.0.0.1:{port}", "--metrics", address)

    fails(done, "another server listens on")
    wait_until(ready(served.folder), "the first one is still read")
