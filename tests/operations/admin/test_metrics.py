"""`muniment serve --metrics`: what it serves, to whom, and that no reader can stop it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.proof.faults.processes import may_mount
from tests.support.certificates import make as make_certificate
from tests.support.commands import Server, children_of, line_of, run, wait_until
from tests.support.prometheus import asked, connection, sample, samples
from tests.support.words import ROOT

_TOKEN = "a-token-for-the-tests-0123456789"


@pytest.fixture(scope="module")
def address(pair_of_workers) -> str:
    """Where the metrics of that server are."""
    return f"unix:{pair_of_workers.folder / '.muniment' / 'metrics.sock'}"


@pytest.fixture
def folder_of_two(pair_of_workers: Server) -> Path:
    """The folder of that server, once it is ready."""
    wait_until(lambda: run(pair_of_workers.folder, "status").returncode == 0, "it is ready")
    return pair_of_workers.folder


def token_file(folder: Path, token: str = _TOKEN) -> Path:
    file = folder / "metrics-token"
    file.write_text(f"{token}\n")
    file.chmod(0o600)
    return file


def handled(address: str, method: str, code: str) -> float:
    service = {"GetMemory": "MemoryService", "CreateAgent": "AgentService"}[method]
    labels = {"grpc_type": "unary", "grpc_service": f"muniment.v1.{service}", "grpc_method": method, "grpc_code": code}
    return sample(address, "grpc_server_handled_total", **labels) or 0


def test_the_calls_of_all_workers_are_added_up(folder_of_two, address):
    labels = {"grpc_method": "GetMemory", "grpc_code": "NOT_FOUND", "reason": "MEMORY_NOT_FOUND"}
    before = handled(address, "GetMemory", "NotFound"), sample(address, "muniment_calls_refused_total", **labels) or 0
    for _ in range(8):  # each is a process with a channel of its own, which lands on either worker
        assert run(folder_of_two, "memory", "get", "none", "--agent", "alice", "--taint", "public").returncode == 1

    assert handled(address, "GetMemory", "NotFound") == before[0] + 8
    assert handled(address, "CreateAgent", "OK") == 1
    assert sample(address, "muniment_calls_refused_total", **labels) == before[1] + 8


def test_what_a_worker_counted_stays_when_it_dies_and_its_gauges_go(pair_of_workers, folder_of_two, address):
    run(folder_of_two, "memory", "get", "none", "--agent", "alice", "--taint", "public")
    counted = handled(address, "GetMemory", "NotFound")
    before = pair_of_workers.workers
    for worker in before:
        os.kill(worker, signal.SIGKILL)
    wait_until(lambda: len(pair_of_workers.workers - before) == 2, "there are two new workers")
    wait_until(lambda: sample(address, "muniment_ready") == 1, "they are ready")

    assert handled(address, "GetMemory", "NotFound") == counted >= 1
    assert sample(address, "muniment_calls_in_flight", pool="calls") == 0


_WRITES_LABELS = """
from muniment_server.telemetry import worker_metrics
for number in range(400):
    worker_metrics.REFUSED.labels(f"{number:0>30}", "UNAUTHENTICATED", "CREDENTIAL_INVALID").inc()
print("counted")
"""
_IN_A_FULL_FOLDER = """
mount -t tmpfs -o size=12m tmpfs "$PROMETHEUS_MULTIPROC_DIR" || exit 77
"$0" -c "
import shutil, os
from muniment_server.telemetry import worker_metrics
folder = os.environ['PROMETHEUS_MULTIPROC_DIR']
with open(f'{folder}/other', 'wb', buffering=0) as other:
    try:
        while other.write(bytes(4096)): pass
    except OSError: pass
$1"
"""


def test_no_worker_dies_of_a_new_refusal_while_the_disk_of_the_metrics_is_full(tmp_path):
    """The values are in files that are mapped into memory: a write for which there is no room would be a SIGBUS."""
    if not may_mount():
        pytest.skip("no right to mount a disk in memory")
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", _IN_A_FULL_FOLDER, sys.executable, _WRITES_LABELS],
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "counted\n"), done.stderr


def test_a_process_that_finds_no_room_for_its_metrics_says_so_and_leaves_no_file_that_readers_trip_over(tmp_path):
    limited = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        " resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)); from muniment_server.telemetry import worker_metrics"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited],
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert "OSError: [Errno 27]" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_the_database_has_is_counted(serving, folder, data_dir):
    """The server is new: it counts once in half a minute."""
    serving("--dev", "--data-dir", ".muniment").read_to_the_last_line()
    line_of(run(folder, "agent", "create", "alice"))
    run(folder, "memory", "save", "plan", "CANARY ship on Friday", "--agent", "alice", "--taint", "confidential")
    found = samples(f"unix:{data_dir / 'metrics.sock'}")

    def one(metric: str, /, **labels: str) -> float:
        return found[metric, frozenset(labels.items())]

    assert one("muniment_database_up", role="muniment_control", sqlstate="") == 1
    assert one("muniment_agents") == 1
    assert one("muniment_stored_bytes", level="CONFIDENTIAL") > 256
    assert one("muniment_stored_bytes", level="RESTRICTED") == 0
    assert one("muniment_tenant_stored_bytes", tenant="1", name="development") > 256
    assert one("muniment_tenant_calls_total", tenant="1", name="development") >= 2
    assert one("muniment_disk_free_bytes") > 0
    assert one("muniment_gate_open") == one("muniment_ready") == 1
    assert one("muniment_gate_problems", kind="grants") == 0
    assert {dict(labels)["level"] for name, labels in found if name == "muniment_sessions"} == {
        "PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED",
    }  # fmt: skip
    assert "CANARY" not in str(found)
    assert "alice" not in str(found)


def test_it_says_that_the_database_is_away_and_since_when(pair_of_workers, folder_of_two, address):
    begin = time.time()
    database = [pair_of_workers.postgres, *children_of(pair_of_workers.postgres)]
    for process in database:
        os.kill(process, signal.SIGSTOP)
    try:
        wait_until(lambda: sample(address, "muniment_ready") == 0, "no worker is ready")
        away = samples(address)
    finally:
        for process in database:
            os.kill(process, signal.SIGCONT)
    wait_until(lambda: sample(address, "muniment_ready") == 1, "the workers are ready again")

    assert [value for (name, _), value in away.items() if name == "muniment_database_up"] == [0]
    assert begin <= away["muniment_database_down_since_timestamp_seconds", frozenset()] <= time.time()
    assert ("muniment_agents", frozenset()) not in away
    assert sample(address, "muniment_database_up", role="muniment_control", sqlstate="") == 1


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool: apt-get install prometheus")
def test_prometheus_finds_no_fault_with_metrics_and_rules(folder_of_two, address):
    run(folder_of_two, "memory", "get", "none", "--agent", "alice", "--taint", "public")
    _, text = asked(address)

    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=True)
    assert checked.stdout + checked.stderr == ""
    subprocess.run(["promtool", "check", "rules", ROOT / "service/deploy/alerts.yml"], check=True)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool: apt-get install prometheus")
def test_prometheus_understands_every_query_of_the_dashboard(tmp_path):
    rules = [{"record": "query", "expr": re.sub(r"\$__\w+", "5m", query)} for query in _queries()]
    file = tmp_path / "rules.json"  # which is YAML, too
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))

    subprocess.run(["promtool", "check", "rules", "--lint=none", file], check=True)


def _queries() -> list[str]:
    panels = json.loads((ROOT / "service/deploy/dashboard.json").read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


_NAMING = {
    "alerts.yml": lambda: (ROOT / "service/deploy/alerts.yml").read_text(),
    "dashboard.json": lambda: "\n".join(_queries()),
    "operations.md": lambda: "\n".join(re.findall(r"`\w+`", (ROOT / "service/docs/operations.md").read_text())),
}


@pytest.mark.parametrize("file", _NAMING)
def test_every_metric_of_a_rule_a_panel_or_the_page_is_served(dev, file):
    """That server has an embedder."""
    run(dev.folder, "memory", "get", "none", "--agent", "alice", "--taint", "public")
    served = {name for name, _ in samples(f"unix:{dev.folder / '.muniment' / 'metrics.sock'}")}
    named = set(re.findall(r"(?:muniment|grpc)_\w+", _NAMING[file]()))
    # Those of others: test_remote_embedder.py and test_remote_reranker.py in tests/proof/faults, and
    # tests/operations/citus/test_serving.py.
    elsewhere = ("muniment_remote_", "muniment_reranker", "muniment_node_up")
    after_failures = ("muniment_database_failures_total", "muniment_database_down_since_timestamp_seconds")
    named -= {name for name in named if name.startswith(elsewhere)} | {"grpc_code", "grpc_method", *after_failures}

    assert sorted(name for name in named if not any(each.startswith(name) for each in served)) == []


def test_every_alert_says_what_to_do():
    """In its annotation `action`, which may name a section of a page of service/docs."""
    text = (ROOT / "service/deploy/alerts.yml").read_text()
    rules = re.split(r"^ +- alert: ", text, flags=re.MULTILINE)[1:]
    actions = [re.search(r"^ +action: \"(.+)\"$", rule, re.MULTILINE) for rule in rules]

    assert rules
    assert all(actions)
    for page, section in re.findall(r"see (operations|configuration), '([^']+)'", text, re.IGNORECASE):
        assert f"\n## {section}\n" in (ROOT / f"service/docs/{page}.md").read_text()


def test_only_the_account_of_the_server_reaches_the_socket(folder_of_two):
    assert stat.S_IMODE((folder_of_two / ".muniment" / "metrics.sock").stat().st_mode) == 0o600


def test_the_socket_of_a_server_that_was_killed_is_replaced(serving, folder, data_dir):
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(folder / "metrics.sock"))
    serving("--data-dir", ".muniment", "--metrics", "unix:metrics.sock")

    assert asked(f"unix:{folder / 'metrics.sock'}")[0] == 200


def test_no_other_file_is_replaced(folder, data_dir):
    (folder / "notes").write_text("keep me")
    refused = run(folder, "serve", "--data-dir", ".muniment", "--listen", "127.0.0.1:0", "--metrics", "unix:notes")

    assert "is not a socket: choose another path" in refused.stderr
    assert (folder / "notes").read_text() == "keep me"


def test_a_port_answers_nothing_without_the_token(serving, folder, data_dir):
    server = serving(
        "--dev", "--data-dir", ".muniment", "--metrics", "127.0.0.1:0", "--metrics-token-file", str(token_file(folder))
    )
    server.read_to_the_last_line()
    address = server.output.partition("Metrics are at ")[2].splitlines()[0].removesuffix(".")
    key = line_of(run(folder, "host-key", "create", "--tenant", "acme", "--ceiling", "public")).split()[-1]

    for wrong in (None, "", "x", _TOKEN[:-1], f"{_TOKEN}x", key):
        status, text = asked(address, wrong)
        assert (status, text) == (401, "send the token as `authorization: Bearer <token>`\n")
        assert asked(address, wrong, "/") == (status, text)
    assert asked(address, _TOKEN)[0] == 200


def test_a_token_that_is_renewed_is_required_at_once_and_one_that_cannot_be_used_changes_nothing(
    serving, folder, data_dir
):
    file = token_file(folder)
    server = serving("--dev", "--data-dir", ".muniment", "--metrics", "127.0.0.1:0", "--metrics-token-file", str(file))
    server.read_to_the_last_line()
    address = server.output.partition("Metrics are at ")[2].splitlines()[0].removesuffix(".")
    file.unlink()
    without_file = [asked(address, given)[0] for given in (None, "", _TOKEN)]
    file.write_text("short")
    file.chmod(0o600)
    with_a_short_one = [asked(address, given)[0] for given in ("short", _TOKEN)]
    file.write_text(_TOKEN[::-1])

    assert (without_file, with_a_short_one) == ([401, 401, 200], [401, 200])
    assert [asked(address, given)[0] for given in (_TOKEN, _TOKEN[::-1])] == [401, 200]


def test_readers_who_stall_stop_no_other_for_long(folder_of_two, address):
    """Those beyond the eighth are turned away at once, and each of the eight is cut off after five seconds."""
    with contextlib.ExitStack() as stalled:
        for _ in range(20):
            one = connection(address)
            stalled.callback(one.close)
            one.connect()
            with contextlib.suppress(OSError):  # it was turned away before
                one.sock.send(b"GET /metrics HTTP/1.1\r\n")

        assert not _is_answered(address)
        wait_until(lambda: _is_answered(address), "a reader finds a place")
    assert run(folder_of_two, "memory", "list", "--agent", "alice", "--taint", "public").returncode == 0


def _is_answered(address: str) -> bool:
    try:
        return asked(address)[0] == 200
    except OSError:
        return False


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")
def test_readers_who_reset_their_connections_take_no_places_and_a_renewed_certificate_is_served(
    serving, folder, data_dir, tmp_path
):
    make_certificate(tmp_path, "ca", "-addext", "basicConstraints=critical,CA:TRUE")
    make_certificate(tmp_path, "server", "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1")
    tls = ["--tls-cert", str(tmp_path / "server.pem"), "--tls-key", str(tmp_path / "server.key")]
    token = ["--metrics-token-file", str(token_file(folder))]
    server = serving("--dev", "--data-dir", ".muniment", "--metrics", "127.0.0.1:0", *token, *tls)
    server.read_to_the_last_line()
    address = server.output.partition("Metrics are at ")[2].splitlines()[0].removesuffix(".")
    host, _, port = address.rpartition(":")

    for _ in range(20):
        with socket.create_connection((host, int(port))) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close resets
        time.sleep(0.05)

    trusting = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    assert asked(address, _TOKEN, tls=trusting)[0] == 200
    with pytest.raises(OSError, match=r"reset|closed|ended"):  # in the clear
        asked(address, _TOKEN)

    make_certificate(tmp_path, "other", "-addext", "basicConstraints=critical,CA:TRUE")
    make_certificate(
        tmp_path, "server", "-CA", "other.pem", "-CAkey", "other.key", "-addext", "subjectAltName=IP:127.0.0.1"
    )
    assert asked(address, _TOKEN, tls=ssl.create_default_context(cafile=str(tmp_path / "other.pem")))[0] == 200


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--metrics", "127.0.0.1:0"], "give --metrics-token-file FILE"),
        (["--metrics", "0.0.0.0:0", "--metrics-token-file", "metrics-token"], "give --tls-cert and --tls-key"),
        (["--metrics", "nowhere"], "is not an address"),
        (["--metrics-token-file", "metrics-token"], "requires --metrics"),
        (["--metrics", "127.0.0.1:0", "--metrics-token-file", "open"], "chmod 600"),
        (["--metrics", "127.0.0.1:0", "--metrics-token-file", "short"], "openssl rand -hex 32"),
        (["--metrics", "127.0.0.1:0", "--metrics-token-file", "key"], "metrics need a token of their own"),
        (["--metrics", "127.0.0.1:0", "--metrics-token-file", "none"], "No such file"),
    ],
)
def test_metrics_that_others_could_read_are_refused(folder, data_dir, arguments, hint):
    token_file(folder)
    for name, text, mode in (("open", _TOKEN, 0o644), ("short", "short", 0o600)):
        (folder / name).write_text(text)
        (folder / name).chmod(mode)
    key = line_of(
        run(folder, "host-key", "create", "--tenant", "acme", "--ceiling", "public", "--data-dir", ".muniment")
    ).split()[-1]
    (folder / "key").write_text(key)
    (folder / "key").chmod(0o600)

    done = run(folder, "serve", "--data-dir", ".muniment", "--listen", "127.0.0.1:0", *arguments)

    assert done.returncode != 0
    assert hint in done.stderr


def test_the_log_is_json_if_it_is_asked_for(serving, folder, data_dir):
    server = serving("--dev", "--data-dir", ".muniment", "--log-format", "json", "--access-log")
    server.read_to_the_last_line()
    line_of(run(folder, "agent", "create", "alice"))
    server.stop()

    lines = [json.loads(line) for line in server.errors.read_text().splitlines()]
    assert {"time", "level", "logger", "process", "pid", "message"} <= lines[0].keys()
    (created,) = [line for line in lines if line.get("method") == "CreateAgent"]
    assert (created["message"], created["code"], created["process"]) == ("served", "OK", "worker")
