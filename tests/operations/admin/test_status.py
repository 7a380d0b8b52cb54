"""`muniment status`: what it says of a running server, and what to do if it cannot be asked."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from muniment_server.admin.status import Samples, in_words, status_of
from tests.support.commands import Done, children_of, objects, on_a_terminal, run, wait_until
from tests.support.ports import free_port

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
]


@pytest.fixture
def served(pair_of_workers):
    """That server, once it is ready."""
    wait_until(ready(pair_of_workers.folder), "it is ready")
    return pair_of_workers


@contextmanager
def answering(folder: Path, answer: bytes) -> Iterator[str]:
    """A socket at which every connection gets *answer*."""
    path = folder / "answering.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

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
        yield f"unix:{path}"
        listening.shutdown(socket.SHUT_RDWR)
        path.unlink()


def samples_of(text: str) -> Samples:
    found = defaultdict(list)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name].append(sample)
    return found


def fails(done: Done, *words: str, status: int = 1) -> None:
    assert done.returncode == status
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert [word for word in words if word not in done.stderr] == [], done.stderr


def ready(folder) -> Callable[[], bool]:
    return lambda: run(folder, "status").returncode == 0


def test_a_server_in_development_is_found_and_ready(served):
    (found,) = objects(run(served.folder, "status", "--json"))

    assert list(found) == _FIELDS
    assert (found["ready"], found["workers"], found["gate_open"]) == (True, 2, True)
    assert found["gate_problems"] == {"grants": 0, "log_settings": 0}
    assert found["database_up"]
    assert (found["disk_full"], found["disk_free_bytes"] > 0) == (False, True)


def test_people_see_a_table_and_pipes_get_lines(served):
    lines = dict(line.split("\t") for line in run(served.folder, "status").stdout.splitlines())
    status, shown = on_a_terminal(served.folder, "status")

    assert list(lines) == _FIELDS
    assert (lines["ready"], lines["workers"]) == ("yes", "2")
    assert status == 0
    assert "database up" in shown


@pytest.mark.parametrize(
    ("sample", "field"),
    [
        ('muniment_database_up{{server="{}"}}', "servers_up"),
        ('muniment_database_up 1\nmuniment_node_up{{node="{}"}}', "nodes_up"),
    ],
)
def test_a_server_that_is_away_is_named_in_words_too(sample, field):
    metrics = "".join(f"{sample.format(name)} {up}\n" for name, up in {"a": 1, "b": 0}.items())

    assert in_words(status_of(samples_of(metrics)))[field] == "a 1, b 0"


@pytest.mark.parametrize("waiting", [0, 5])
def test_embeddings_that_wait_are_counted_where_there_is_an_embedder(waiting):
    queue = f'muniment_embedding_queue{{level="PUBLIC"}} 0\nmuniment_embedding_queue{{level="INTERNAL"}} {waiting}\n'

    assert status_of(samples_of("muniment_database_up 1\n" + queue))["embeddings_waiting"] == waiting
    assert "embeddings_waiting" not in status_of(samples_of("muniment_database_up 1\n"))


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
    wait_until(ready(served.folder), "it is ready again")
    assert "database_down_since" not in objects(run(served.folder, "status", "--json"))[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ("no server serves metrics at unix:", "muniment/metrics.sock", "is it running?", "muniment serve")),
        (("--data-dir", "nowhere"), ("at unix:nowhere/metrics.sock", "is it running?")),
        (("--metrics", "unix:none.sock"), ("at unix:none.sock", "is it running?", "Metrics are at")),
        (("--metrics", "unix:" + "x" * 200), ("path too long",)),
    ],
)
def test_a_server_that_cannot_be_asked_is_reported_with_what_to_do(folder, arguments, words):
    fails(run(folder, "status", *arguments), *words)


def test_a_port_is_not_read(folder):
    """The token of such a server is sent nowhere."""
    fails(run(folder, "status", MUNIMENT_METRICS="127.0.0.1:9464"), "Usage:", "unix:PATH", "Prometheus", status=2)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"up 1\n", b"muniment_database_up{ 1\n", b"\xff\xfe", b"# TYPE muniment_database_up histogram\n",
        b"muniment_database_up 1\nmuniment_workers{state=\"listening\"} NaN\n",
    ],
)  # fmt: skip
def test_something_else_at_the_address_is_reported(folder, body):
    head = b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    with answering(folder, head + body) as address:
        fails(run(folder, "status", "--metrics", address), "not the metrics of a server", "Metrics are at")
    with answering(folder, b"220 mail ready\r\n" + body) as address:
        fails(run(folder, "status", "--metrics", address), "no server serves metrics", "Metrics are at")


def test_metrics_that_end_early_are_reported(folder):
    """A line that is lost with the rest would count as a metric that the server does not have."""
    with answering(folder, b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\nmuniment_database_up 1\n") as address:
        fails(run(folder, "status", "--metrics", address), "no server serves metrics")


def test_a_path_that_is_too_long_serves_no_metrics(serving, folder, made_before):
    """In development they are off, with a line in the log; if they are asked for, the server does not start."""
    deep = folder / ("d" * (100 - len(str(folder))))
    refused = run(folder, "serve", "--dev", "--data-dir", "x", "--metrics", f"unix:{deep}/metrics.sock")
    server = serving("--dev", "--data-dir", str(deep))
    server.read_to_the_last_line()

    fails(refused, "at most 107 bytes", "--metrics")
    assert "Metrics are at" not in server.output
    assert "metrics are not served" in server.errors.read_text()
    fails(run(folder, "status", "--data-dir", str(deep)), "path too long")


def test_a_second_server_does_not_take_the_socket(served):
    port = free_port()
    address = f"unix:{served.folder / '.muniment' / 'metrics.sock'}"
    done = run(served.folder, "serve", "--data-dir", "other", "--listen", f"127.0.0.1:{port}", "--metrics", address)

    fails(done, "another server listens on")
    wait_until(ready(served.folder), "the first one is still read")
