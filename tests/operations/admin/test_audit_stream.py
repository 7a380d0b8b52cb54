"""The audit log through OpenTelemetry's collector, with the configuration that service/deploy/audit ships.

Exporter and collector are killed in between, and what arrives is whole all the same.
"""

from __future__ import annotations

import gzip
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from tests.operations.tools.programs import build
from tests.support.commands import COMMAND, Server, environment_in, run, run_process, wait_until

pytestmark = pytest.mark.proof
_CONFIGURATION = Path(__file__).parents[3] / "service" / "deploy" / "audit" / "otel.yaml"


@contextmanager
def receiving(file: Path) -> Iterator[str]:
    """The address of a system that appends the lines that it is sent to *file*."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            request = ExportLogsServiceRequest.FromString(
                gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body
            )
            scopes = (scope for resource in request.resource_logs for scope in resource.scope_logs)
            lines = [f"{record.body.string_value}\n" for scope in scopes for record in scope.log_records]
            with file.open("a") as opened:
                opened.writelines(lines)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def running(*command: str | Path, folder: Path, output: Path) -> Iterator[None]:
    """A program that is killed at the end."""
    with output.open("ab") as opened, (folder / "errors").open("ab") as errors:
        process = subprocess.Popen(
            command, cwd=folder, env=environment_in(folder), stdin=subprocess.DEVNULL, stdout=opened, stderr=errors
        )
        try:
            yield
            assert process.poll() is None, (folder / "errors").read_text()[-2000:]
        finally:
            process.kill()
            process.wait()


def test_what_a_collector_delivers_is_whole_also_after_kills(
    serving: Callable[..., Server], folder: Path, data_dir: Path, request: pytest.FixtureRequest
) -> None:
    serving("--dev", "--listen", "127.0.0.1:0")
    collector = build("collector", request.config.cache.mkdir("programs"))
    exported, received, kept = folder / "audit.jsonl", folder / "received.jsonl", folder / "checkpoints.jsonl"
    exported.touch()
    received.touch()
    (folder / "offsets").mkdir()
    export = ("--tenant", "development", "--ceiling", "restricted", "--follow", "--cursor", "cursor.jsonl")
    run(folder, "agent", "create", "ada")

    with receiving(received) as address:
        configuration = _CONFIGURATION.read_text()
        for old, new in (
            ("/var/log/muniment/audit.jsonl", str(exported)),
            ("/var/lib/otelcol", str(folder / "offsets")),
            ("https://siem.example:4318", address),
        ):
            assert old in configuration
            configuration = configuration.replace(old, new)
        (folder / "otel.yaml").write_text(configuration)
        for key in ("plan", "salary"):
            with ExitStack() as programs:
                programs.enter_context(running(*COMMAND, "audit", "export", *export, folder=folder, output=exported))
                programs.enter_context(
                    running(collector, "--config", "file:otel.yaml", folder=folder, output=folder / "errors")
                )
                run(folder, "memory", "save", key, "text", "--agent", "ada", "--taint", "confidential")
                wait_until(lambda: _is_sealed(folder), f"the event of {key} is sealed")
                kept.write_text(run(folder, "audit", "checkpoint", "--tenant", "development", "--json").stdout)
                wait_until(
                    lambda: _check(folder, "received.jsonl") == 0,
                    f"what was received is whole: {(folder / 'errors').read_text()}",
                )

    lines = received.read_text().splitlines()
    run(folder, "audit", "verify", "--tenant", "development", "--checkpoint", "cursor.jsonl")
    (folder / "less.jsonl").write_text("\n".join(line for line in lines if line != lines[0]))
    assert _check(folder, "less.jsonl") == 1


def _check(folder: Path, file: str) -> int:
    checkpoints = ("--checkpoint", "checkpoints.jsonl")
    return run_process(folder, "audit", "check-export", file, "--tenant", "development", *checkpoints).returncode


def _is_sealed(folder: Path) -> bool:
    """Whether no event is left to be sealed."""
    lines = run(folder, "audit", "verify", "--tenant", "development").stdout.splitlines()
    return all(int(line.split("\t")[4]) == 0 for line in lines)
