"""`muniment status`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from muniment.cli.output import Output, with_output
from muniment_server.admin.metrics_reader import MetricsReader, with_metrics
from muniment_server.admin.readings import Reading


@click.command
@with_metrics
@with_output
def status(metrics: MetricsReader, output: Output) -> None:
    """Show how a running server does, from its metrics. Exits with 1 if it is not ready.

    Says nothing of what is not set up, not known or never happened. Sessions, agents and sizes are counted every half
    minute.

    \b
    Examples:
      muniment status
      muniment status --metrics unix:/run/muniment/metrics --json
      muniment status --metrics db.example:9464 --metrics-token-file /etc/muniment/metrics-token --tls-ca ca.pem
    """
    reading = metrics.read()
    with metrics.no_metrics():
        found = status_of(reading)
    if output.as_json:
        output.record(found, ())
    elif output.on_terminal:
        output.record(in_words(found), list(found))
    else:
        output.rows([{"name": name, "value": value} for name, value in in_words(found).items()], ("name", "value"))
    sys.exit(0 if found["ready"] else 1)


def in_words(found: Mapping[str, Any]) -> dict[str, object]:
    """What people and pipes get for what `status_of` *found*."""
    words = {name: _in_words(value) for name, value in found.items()}
    for name in {"servers_up", "nodes_up"} & found.keys():  # `_in_words` omits zeros, but here 0 says what is away
        words[name] = ", ".join(f"{each} {is_up}" for each, is_up in found[name].items())
    return words


def status_of(reading: Reading) -> dict[str, Any]:
    """What `status` shows, by the names of `--json`. What is not set up, not known or never happened is left out."""
    return {name: value for name, value in _all_of(reading).items() if value is not None}


def _all_of(reading: Reading) -> dict[str, Any]:
    return {
        "ready": reading.value("muniment_ready") == 1,
        "workers": int(reading.by("muniment_workers", "state").get("listening", 0)),
        "replaced_by_reason": _counts(reading, "muniment_processes_replaced_total", "reason"),
        "gate_open": _flag(reading, "muniment_gate_open"),
        "gate_problems": _gauges(reading, "muniment_gate_problems", "kind"),
        "database_up": reading.lowest("muniment_database_up") == 1,
        "servers_up": _servers(reading),
        "nodes_up": _gauges(reading, "muniment_node_up", "node"),
        "database_sqlstate": reading.label("muniment_database_up", "sqlstate"),
        "checksum_failures": _count(reading, "muniment_database_checksum_failures"),
        "database_answered": _moment(reading.value("muniment_database_answered_timestamp_seconds") or None),
        "database_down_since": _moment(reading.lowest("muniment_database_down_since_timestamp_seconds")),
        "disk_full": _flag(reading, "muniment_disk_full"),
        "disk_free_bytes": _count(reading, "muniment_disk_free_bytes"),
        "calls_in_flight": _gauges(reading, "muniment_calls_in_flight", "pool"),
        "calls_queued": _gauges(reading, "muniment_calls_queued", "pool"),
        "calls_by_code": _counts(reading, "grpc_server_handled_total", "grpc_code"),
        "refusals_by_reason": _counts(reading, "muniment_calls_refused_total", "reason"),
        "sessions_by_level": _gauges(reading, "muniment_sessions", "level"),
        "embedding_queue_by_level": _gauges(reading, "muniment_embedding_queue", "level"),
        "embedding_queue_since_by_level": _times(reading, "muniment_embedding_queue_since_timestamp_seconds", "level"),
        "remote_embedder": reading.label("muniment_remote_embedder", "address"),
        "remote_embedder_ceiling": reading.label("muniment_remote_embedder", "ceiling"),
        "remote_embedder_failures_by_level": _counts(reading, "muniment_remote_embedder_failures_total", "level"),
        "remote_embedding_queue_by_level": _gauges(reading, "muniment_remote_embedding_queue", "level"),
        "remote_embedding_queue_since_by_level": _times(
            reading, "muniment_remote_embedding_queue_since_timestamp_seconds", "level"
        ),
        "reranker": reading.label("muniment_reranker", "address"),
        "reranker_ceiling": reading.label("muniment_reranker", "ceiling"),
        "reranker_requests_by_outcome": _counts(reading, "muniment_reranker_requests_total", "outcome"),
        "agents": _count(reading, "muniment_agents"),
        "agents_being_erased": _count(reading, "muniment_agents_being_erased"),
        "stored_bytes_by_level": _gauges(reading, "muniment_stored_bytes", "level"),
    }


def _servers(reading: Reading) -> dict[str, int] | None:
    """Whether each of several database servers answers. None if there is one, which has no name."""
    found = _gauges(reading, "muniment_database_up", "server")
    return None if found is None or "" in found else found


def _count(reading: Reading, name: str) -> int | None:
    value = reading.value(name)
    return None if value is None else int(value)


def _flag(reading: Reading, name: str) -> bool | None:
    value = reading.value(name)
    return None if value is None else value == 1


def _counts(reading: Reading, name: str, label: str) -> dict[str, int] | None:
    """A counter, without the labels of which nothing was counted."""
    return {key: int(value) for key, value in reading.by(name, label).items() if value} or None


def _gauges(reading: Reading, name: str, label: str) -> dict[str, int] | None:
    return {key: int(value) for key, value in reading.by(name, label).items()} or None


def _moment(seconds: float | None) -> datetime | None:
    """The time so many *seconds* after the beginning of 1970."""
    return None if seconds is None else datetime.fromtimestamp(round(seconds), UTC)


def _times(reading: Reading, name: str, label: str) -> dict[str, datetime | None] | None:
    """Those that are set: a gauge is 0 until then."""
    return {key: _moment(value or None) for key, value in reading.by(name, label).items()} or None


def _in_words(value: object) -> object:
    match value:
        case True:
            return "yes"
        case False:
            return "no"
        case int():
            return f"{value:,}"
        case datetime():
            return f"{value:%H:%M:%SZ}"
        case Mapping():
            return ", ".join(f"{key} {_in_words(each)}" for key, each in value.items() if each) or "none"
    return value
