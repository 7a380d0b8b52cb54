"""Serves the metrics of all processes over HTTP: at a unix socket of the server's account, or at a port, for a token.

Whoever reads them learns of all tenants and levels, so nothing is answered without a credential.
"""

from __future__ import annotations

import hmac
import logging
import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any

from prometheus_client import CollectorRegistry, Metric, multiprocess
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from muniment_server.background.census import Censuses
from muniment_server.domain import tokens
from muniment_server.postgres.driver_errors import location_of
from muniment_server.process.input_files import read_file
from muniment_server.runtime import address, certificates
from muniment_server.runtime.address import AddressInUse
from muniment_server.runtime.child import REPLACED, Child
from muniment_server.runtime.configuration import ConfigError, MetricsConfig, Tls, split_address

_LOG = logging.getLogger("muniment.metrics")
_multiprocess: Any = multiprocess  # has no types
PATH = "/metrics"
"""What readers ask for."""
_MAX_READERS = 8
_READ_SECONDS = 5.0
"""How long a reader may take to ask, or to read."""
_TOKEN = re.compile(r"[\x21-\x7e]{16,512}")
_LIVE_GAUGES = re.compile(r"gauge_live\w*_(\d+)\.db")


def read_token(file: Path) -> str:
    """The bearer token in *file*. Raises ConfigError or OSError."""
    token = read_file(file).decode(errors="replace").strip()
    if file.stat().st_mode & 0o077:
        raise ConfigError(f"others can read {file}: run `chmod 600 {file}`")
    if not _TOKEN.fullmatch(token):
        raise ConfigError(f"{file} needs a token of at least 16 characters: try `openssl rand -hex 32`")
    if tokens.parse(token) is not None:
        raise ConfigError(f"{file} has a credential for calls: metrics need a token of their own")
    return token


@contextmanager
def serving(
    config: MetricsConfig, tls: Tls | None, censuses: Censuses, children: Callable[[], list[Child]]
) -> Iterator[str]:
    """Serve the metrics in the block; yield the address. Raises AddressInUse."""
    assert config.directory is not None
    registry = CollectorRegistry()
    registry.register(_OfServer(config.directory, censuses, children))
    with address.reserve(config.listen) if config.listen.startswith("unix:") else nullcontext():
        server = _listen(config, registry, tls)
        thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
        thread.start()
        try:
            yield server.address
        finally:
            server.shutdown()
            server.server_close()


class _OfServer(Collector):
    """The metrics of all processes together, and those of the database."""

    def __init__(self, directory: Path, censuses: Censuses, children: Callable[[], list[Child]]) -> None:
        self._directory = directory
        self._censuses = censuses
        self._children = children
        self._lock = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        """All of them. One reader at a time, whatever readers do."""
        with self._lock:
            yield from self._censuses.families()
            self._forget_ended()
            workers: Metric | None = None
            for family in _multiprocess.MultiProcessCollector(None, str(self._directory)).collect():
                if family.name == "muniment_tenant_calls":
                    family.samples = [_named(sample, self._censuses.names) for sample in family.samples]
                if family.name == "muniment_workers":
                    workers = family
                yield family
            yield from _of_all_workers(workers, hangs=any(child.hangs for child in self._children()))
            yield _replaced()

    def _forget_ended(self) -> None:
        """Drop the gauges of processes that have ended. What they counted stays."""
        for file in self._directory.iterdir():
            if match := _LIVE_GAUGES.fullmatch(file.name):
                pid = int(match[1])
                try:
                    os.kill(pid, 0)
                except (ProcessLookupError, PermissionError):  # the number may be another account's by now
                    _multiprocess.mark_process_dead(pid, str(self._directory))


def _named(sample: Sample, names: Mapping[str, str]) -> Sample:
    """*sample* of a tenant, with its name beside its number."""
    return sample._replace(labels={**sample.labels, "name": names.get(sample.labels["tenant"], "")})


def _replaced() -> Metric:
    text = "Processes that were replaced because they hung, or had grown beyond the limit of memory."
    family = CounterMetricFamily("muniment_processes_replaced", text, labels=("process", "reason"))
    for key in (("worker", "hangs"), ("worker", "memory"), ("embedder", "hangs")):
        family.add_metric(key, REPLACED[key])
    return family


def _of_all_workers(workers: Metric | None, *, hangs: bool) -> Iterator[Metric]:
    """Whether something is true of every worker that listens, and there is one. None is ready while a process hangs."""
    counts = {sample.labels["state"]: sample.value for sample in workers.samples} if workers else {}
    listening = counts.get("listening", 0)
    for name, text, state in (
        ("muniment_gate_open", "1 if every worker serves calls.", "gate_open"),
        ("muniment_ready", "1 if every worker is ready, as the health service reports, and no process hangs.", "ready"),
    ):
        is_true = 0 < listening <= counts.get(state, 0) and not (hangs and state == "ready")
        yield GaugeMetricFamily(name, text, value=is_true)


class _Server(ThreadingMixIn, HTTPServer):
    """Answers a few readers at a time, each for a few seconds at most."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, config: MetricsConfig, registry: CollectorRegistry, tls: Tls | None) -> None:
        self.registry = registry
        self._token_file = config.token_file
        self._token = read_token(config.token_file) if config.token_file is not None else None
        self._tls = tls
        self._context = certificates.loaded(tls.certificate, tls.key) if tls is not None else None
        self._places = threading.Semaphore(_MAX_READERS)
        self._path: Path | None = None
        if config.listen.startswith("unix:"):
            self.address_family = socket.AF_UNIX
            self._path = Path(config.listen.removeprefix("unix:"))
            super().__init__(str(self._path), _Handler)  # type: ignore[arg-type]
        else:
            host, port = split_address(config.listen)
            self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            super().__init__((host, port), _Handler)
        self.address = config.listen if self._path else f"{config.listen.rpartition(':')[0]}:{self.server_port}"

    def allows(self, authorization: str) -> bool:
        """Whether a reader sent the token in the file; while that cannot be used, the one from before."""
        if self._token_file is None:  # the socket's mode lets only the server's account in
            return True
        with suppress(ConfigError, OSError):
            self._token = read_token(self._token_file)
        scheme, _, sent = authorization.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(sent.strip().encode(), str(self._token).encode())

    def server_bind(self) -> None:
        """Bind. Another account cannot open the socket."""
        if self._path is None:
            super().server_bind()
            return
        before = os.umask(0o177)
        try:
            self.socket.bind(str(self._path))
        finally:
            os.umask(before)

    def get_request(self) -> tuple[socket.socket, object]:
        """A connection, with the certificate in its files. While they do not fit together, with the one from before."""
        request, client_address = super().get_request()
        if self._tls is not None and self._context is not None:
            with suppress(ConfigError, OSError):
                self._context = certificates.loaded(self._tls.certificate, self._tls.key)
            request = self._context.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        return request, client_address

    def process_request(self, request: Any, client_address: object) -> None:
        """Begin a thread for a reader, if there is a place for it."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: object) -> None:
        """Serve a reader, and cut it off if it takes too long."""
        cut_off = threading.Timer(_READ_SECONDS, _shut_down, [request])
        cut_off.daemon = True
        cut_off.start()
        super().process_request_thread(request, client_address)
        cut_off.cancel()
        self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Log what fails, except that a reader has gone, or that its handshake failed."""
        error = sys.exception()
        if error is not None and not isinstance(error, OSError):
            _LOG.error("metrics could not be served: %s\n%s", type(error).__name__, location_of(error))


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "muniment", ""

    def do_GET(self) -> None:
        """Answer a reader with the right token."""
        if self.server.allows(self.headers.get("authorization", "")):
            encode, content_type = choose_encoder(self.headers.get("accept", ""))
            self._send(200, encode(self.server.registry), content_type)
        else:
            self._send(401, b"send the token as `authorization: Bearer <token>`\n", "text/plain; charset=utf-8")

    def log_message(self, format: str, *args: object) -> None:
        """No line for a reader."""

    def _send(self, status: int, body: bytes, content_type: str) -> None:
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _listen(config: MetricsConfig, registry: CollectorRegistry, tls: Tls | None) -> _Server:
    try:
        return _Server(config, registry, None if config.listen.startswith("unix:") else tls)
    except OSError as error:
        raise AddressInUse(f"cannot serve metrics at {config.listen}: {os.strerror(error.errno or 0)}") from None


def _shut_down(request: socket.socket) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
