"""`muniment status`."""

from __future__ import annotations

import http.client
import socket
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import click
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from muniment.cli.failures import Failure
from muniment.cli.output import Output, with_output
from muniment_server.admin.database import data_dir_option, option
from muniment_server.runtime.metrics_endpoint import PATH

_SECONDS = 10.0
"""How long a server may say nothing."""
_START = (
    "is it running? If so, give the address that it says after `Metrics are at`; otherwise start it: muniment serve"
)
Samples: TypeAlias = Mapping[str, list[Sample]]


@click.command
@option(
    "--metrics",
    "ADDRESS",
    "The socket where the server serves its metrics: unix:PATH.",
    show_default="unix:DIR/metrics.sock",
)
@data_dir_option
@with_output
def status(output: Output, metrics: str | None, data_dir: Path) -> None:
    """Show how a running server does, from its metrics on a socket. Exits with 1 if it is not ready.

    Says nothing of what is not set up, not known or never happened. Metrics at a port are for Prometheus.

    \b
    Examples:
      muniment status
      muniment status --metrics unix:/run/muniment/metrics --json
    """
    address = metrics or f"unix:{data_dir / 'metrics.sock'}"
    if not address.startswith("unix:"):
        raise click.BadParameter(
            "`status` reads a socket, unix:PATH: read a port with Prometheus", param_hint="--metrics"
        )
    try:
        found = status_of(read(Path(address.removeprefix("unix:"))))
    except (OSError, http.client.HTTPException) as error:
        raise Failure(f"no server serves metrics at {address} ({error})", _START) from None
    except (ValueError, LookupError, ArithmeticError):  # what the parser raises depends on the text
        raise Failure(f"what {address} serves are not the metrics of a server", _START) from None
    shown = found if output.as_json else in_words(found)
    if output.on_terminal or output.as_json:
        output.record(shown, list(shown))
    else:
        output.rows([{"name": name, "value": value} for name, value in shown.items()], ("name", "value"))
    sys.exit(0 if found["ready"] else 1)


def read(path: Path) -> Samples:
    """The metrics that a server serves on a socket. Raises OSError, HTTPException, or any error of the parser."""
    found: dict[str, list[Sample]] = {}
    with closing(_Connection(path)) as connection:
        connection.request("GET", PATH)
        text = connection.getresponse().read().decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


class _Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_SECONDS)
        self.sock.connect(str(self._path))


def status_of(samples: Samples) -> dict[str, Any]:
    """What `status` shows, by the names of `--json`. What is not set up, not known or never happened is left out."""
    servers = _by(samples, "muniment_database_up", "server")
    found = {
        "ready": _values(samples, "muniment_ready") == [1],
        "workers": _by(samples, "muniment_workers", "state").get("listening", 0),
        "replaced_by_reason": +_by(samples, "muniment_processes_replaced_total", "reason"),
        "gate_open": _values(samples, "muniment_gate_open") == [1],
        "gate_problems": _by(samples, "muniment_gate_problems", "kind"),
        "database_up": min(_values(samples, "muniment_database_up")) == 1,
        "servers_up": {} if "" in servers else servers,
        "nodes_up": _by(samples, "muniment_node_up", "node"),
        "database_sqlstate": _label(samples, "muniment_database_up", "sqlstate"),
        "checksum_failures": _by(samples, "muniment_database_checksum_failures", "").get(""),
        "database_answered": _moment(samples, "muniment_database_answered_timestamp_seconds"),
        "database_down_since": _moment(samples, "muniment_database_down_since_timestamp_seconds"),
        "disk_full": any(_values(samples, "muniment_disk_full")),
        "disk_free_bytes": _by(samples, "muniment_disk_free_bytes", "").get(""),
        "embeddings_waiting": _by(samples, "muniment_embedding_queue", "").get(""),
        "remote_embedder": _label(samples, "muniment_remote_embedder", "address"),
        "remote_embedder_ceiling": _label(samples, "muniment_remote_embedder", "ceiling"),
        "reranker": _label(samples, "muniment_reranker", "address"),
        "reranker_ceiling": _label(samples, "muniment_reranker", "ceiling"),
    }
    return {name: value for name, value in found.items() if value not in (None, "", {})}


def in_words(found: Mapping[str, Any]) -> dict[str, object]:
    """What people and pipes get for what `status_of` *found*."""
    return {name: _in_words(value) for name, value in found.items()}


def _in_words(value: object) -> object:
    match value:
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return ", ".join(f"{key} {number}" for key, number in value.items())
    return value


def _values(samples: Samples, metric: str) -> list[float]:
    return [sample.value for sample in samples.get(metric, ())]


def _by(samples: Samples, metric: str, label: str) -> Counter[str]:
    """The values of a metric, added up by one of its labels."""
    sums = Counter[str]()
    for sample in samples.get(metric, ()):
        sums[sample.labels.get(label, "")] += int(sample.value)
    return sums


def _label(samples: Samples, metric: str, label: str) -> str:
    """One label of a metric: of its samples, the first that is not empty."""
    return next(filter(None, (sample.labels.get(label) for sample in samples.get(metric, ()))), "")


def _moment(samples: Samples, metric: str) -> datetime | None:
    """The earliest time of a metric. One that is not set is 0."""
    seconds = min(_values(samples, metric), default=0)
    return datetime.fromtimestamp(round(seconds), UTC) if seconds else None
