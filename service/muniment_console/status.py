"""The state of the server: what its health service tells everybody, and its metrics, which are for operators."""

from __future__ import annotations

import http.client
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import grpc
from grpc_health.v1 import health_pb2

from muniment import Classification, HostClient
from muniment_console.rendering import Chart
from muniment_server.admin.status import Samples, in_words, read, status_of

_INTERVAL = 10.0
_KEPT = 360
"""How many readings are kept: those of an hour."""
_TIMEOUT_SECONDS = 3.0
_Reading: TypeAlias = Mapping[str, float]

_GAUGES = {
    "Calls that run": "muniment_calls_running",
    "Calls that wait for their turn": "muniment_calls_queued",
    "Open sessions": "muniment_sessions",
    "Texts that wait for the embedder": "muniment_embedding_queue",
    "Connections to the database": "muniment_database_connections",
}
_COUNTERS = {"Calls": "muniment_tenant_calls_total", "Refused calls": "muniment_calls_refused_total"}
"""The titles of the charts, and the metrics that they add up: gauges as they are, counters as rates a second."""
_NOT_READ = (OSError, http.client.HTTPException, ValueError, LookupError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class _Metrics:
    """The metrics of one moment, in words, and the charts."""

    time: datetime
    found: Mapping[str, object]
    charts: list[Chart]


class Watch:
    """Reads the metrics at a socket every ten seconds, from the start of the console."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._readings = deque[tuple[float, _Reading]](maxlen=_KEPT)

    def start(self) -> None:
        """Begin to read, in a thread."""
        threading.Thread(target=self._read_on, name="metrics", daemon=True).start()

    def now(self) -> _Metrics | None:
        """The metrics now. None if nothing serves them."""
        try:
            samples = read(self._socket)
            return _Metrics(datetime.now(UTC), in_words(status_of(samples)), list(self._charts()))
        except _NOT_READ:
            return None

    def _read_on(self) -> None:
        while True:
            try:
                reading = _reading_of(read(self._socket))
            except _NOT_READ:
                reading = {}
            self._readings.append((time.monotonic(), reading))
            time.sleep(_INTERVAL)

    def _charts(self) -> Iterator[Chart]:
        readings = [each for each in self._readings if each[1]]
        if len(readings) < 2:
            return
        for title, metric in _COUNTERS.items():
            rates = [
                max(0.0, after[metric] - before[metric]) / (later - earlier)
                for (earlier, before), (later, after) in pairwise(readings)
            ]
            yield Chart(title, "a second", rates)
        for title, metric in _GAUGES.items():
            yield Chart(title, "", [reading[metric] for _, reading in readings])


def status_page(host: HostClient, address: str, watch: Watch | None) -> tuple[Classification, dict[str, object]]:
    """What the server says of itself. Its metrics count at all levels, for all tenants."""
    metrics = watch.now() if watch else None
    level = Classification.RESTRICTED if metrics else Classification.PUBLIC
    return level, {"address": address, "health": _health(host), "watches": watch is not None, "metrics": metrics}


def _health(host: HostClient) -> str:
    """Whether the server takes calls, in words."""
    check = host._calls.channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    try:
        answer = check(health_pb2.HealthCheckRequest(), timeout=_TIMEOUT_SECONDS)
    except grpc.RpcError as error:
        return f"does not answer ({error.code().name})"
    return "takes calls" if answer.status == health_pb2.HealthCheckResponse.SERVING else "takes no calls now"


def _reading_of(samples: Samples) -> _Reading:
    return {metric: _sum(samples, metric) for metric in (*_COUNTERS.values(), *_GAUGES.values())}


def _sum(samples: Samples, metric: str) -> float:
    return sum(sample.value for sample in samples.get(metric, ()))
