"""Serves the metrics of all processes over HTTP: at a unix socket of the server's account, or at a port, for a token.

Whoever reads them learns of all tenants and levels, so nothing is answered without a credential.
"""

from __future__ import annotations

import hmac
import logging
import os
import re
import socket
import ssl
import sys
import threading
import time
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

from muniment_server.background.census import Censuses, by_tenant
from muniment_server.domain import tokens
from muniment_server.postgres.driver_errors import location_of
from muniment_server.process.input_files import read_file
from muniment_server.runtime import address
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
_RATE_SECONDS = 60.0
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
        self._counted_at = time.monotonic()
        self._counted: Mapping[str, float] = {}
        self._rates: Mapping[str, float] = {}
        self._lock = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        """All of them. One reader at a time, whatever readers do."""
        with self._lock:
            yield from self._censuses.families()
            self._forget_ended()
            workers: Metric | None = None
            for family in _multiprocess.MultiProcessCollector(None, str(self._directory)).collect():
                if family.name == "muniment_tenant_calls":
                    yield self._calls_of_tenants(family)
                    continue
                if family.name == "muniment_workers":
                    workers = family
                yield family
            yield from _of_all_workers(workers, hangs=any(child.hangs for child in self._children()))
            yield _replaced()

    def _calls_of_tenants(self, family: Metric) -> Metric:
        """The rates of those with most calls: as counters they would come and go."""
        now = time.monotonic()
        if now - self._counted_at >= _RATE_SECONDS or not self._rates:
            totals = (sample for sample in family.samples if sample.name.endswith("_total"))
            counts = {sample.labels["tenant"]: sample.value for sample in totals}
            seconds = max(now - self._counted_at, 1.0)
            self._rates = {key: (count - self._counted.get(key, 0)) / seconds for key, count in counts.items()}
            self._counted, self._counted_at = counts, now
        text = "Calls a second, by tenant, since a reading a minute ago or longer."
        return by_tenant("muniment_tenant_calls_per_second", text, self._rates, self._censuses.names)

    def _forget_ended(self) -> None:
        """Drop the gauges of processes that have ended. What they counted stays."""
        for file in self._directory.iterdir():
            if match := _LIVE_GAUGES.fullmatch(file.name):
                pid = int(match[1])
                try:
                    os.kill(pid, 0)
                except (ProcessLookupError, PermissionError):  # the number may be another account's by now
                    _multiprocess.mark_process_dead(pid, str(self._directory))


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

    def __init__(self, config: MetricsConfig, registry: CollectorRegistry, tls: _Certificate | None) -> None:
        self.registry = registry
        self._token_file = config.token_file
        self._token = read_token(config.token_file) if config.token_file is not None else None
        self._tls = tls
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

    def token(self) -> str | None:
        """The token in its file. While that cannot be used, the one from before. None if readers need none."""
        if self._token_file is not None:
            with suppress(ConfigError, OSError):
                self._token = read_token(self._token_file)
        return self._token

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
        self.server_name, self.server_port = "localhost", 0

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """Begin a thread for a reader, if there is a place for it."""
        assert isinstance(request, socket.socket)
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Serve a reader, and cut it off if it takes too long."""
        cut_off = threading.Timer(_READ_SECONDS, lambda: _shut_down(request))
        cut_off.daemon = True
        cut_off.start()
        try:
            if self._tls is not None:
                assert isinstance(request, socket.socket)
                request = self._tls.context().wrap_socket(request, server_side=True, do_handshake_on_connect=False)
                request.do_handshake()
            super().process_request_thread(request, client_address)
        except OSError:  # the reader has gone, or the handshake failed
            self.shutdown_request(request)
        finally:
            cut_off.cancel()
            self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Log what fails, except that a reader has gone."""
        error = sys.exception()
        if error is not None and not isinstance(error, OSError):
            _LOG.error("metrics could not be served: %s\n%s", type(error).__name__, location_of(error))


class _Certificate:
    """The certificate of the server, as its files are now."""

    def __init__(self, files: Tls) -> None:
        self._files = files
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """For one connection. While the files do not belong together, with the certificate from before."""
        with suppress(OSError, ValueError):
            self._context = self._load()
        return self._context

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._files.certificate, self._files.key, password="")  # OpenSSL would ask for one
        return context


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "muniment"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer a reader with the right token."""
        if not self._is_allowed():
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Bearer")
            self._send(b"send the token as `authorization: Bearer <token>`\n", "text/plain; charset=utf-8")
        elif self.path.partition("?")[0] != PATH:
            self.send_response(404)
            self._send(b"metrics are at /metrics\n", "text/plain; charset=utf-8")
        else:
            encode, content_type = choose_encoder(self.headers.get("accept", ""))
            body = encode(self.server.registry)
            self.send_response(200)
            self._send(body, content_type)

    def log_message(self, format: str, *args: object) -> None:
        """No line for a reader."""

    def _is_allowed(self) -> bool:
        wanted = self.server.token()
        if wanted is None:  # the socket's mode lets only the server's account in
            return True
        scheme, _, sent = self.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(sent.strip().encode(), wanted.encode())

    def _send(self, body: bytes, content_type: str) -> None:
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _listen(config: MetricsConfig, registry: CollectorRegistry, tls: Tls | None) -> _Server:
    certificate = _Certificate(tls) if tls is not None and not config.listen.startswith("unix:") else None
    try:
        return _Server(config, registry, certificate)
    except OSError as error:
        raise AddressInUse(f"cannot serve metrics at {config.listen}: {os.strerror(error.errno or 0)}") from None


def _shut_down(request: object) -> None:
    assert isinstance(request, socket.socket)
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
