"""What `muniment top` shows: tables of one change. Names come from callers, so control characters are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.table import Table
from rich.text import Text

from muniment.cli.output import LEVEL_STYLES, harmless
from muniment_server.admin.readings import Change, Reading, moment

_GIB = 1024**3
_BELOW = 7
"""The lines of the tables at the bottom of the screen."""
_MOST = 6
_LONGEST_NAME = 28
"""Cells of the terminal."""


def screen(change: Change, address: str, now: datetime, problem: str = "") -> Layout:
    """All of it, cut to the size of the terminal: what has the highest rates stands above."""
    layout = Layout()
    layout.split_column(
        Layout(_head(change.after, address, now, problem), size=3),
        Layout(name="calls"),
        Layout(name="below", size=_BELOW),
        Layout(Text("q ends", style="dim"), size=1),
    )
    layout["calls"].split_row(Layout(_methods(change), ratio=4), Layout(_refusals(change), ratio=3))
    layout["below"].split_row(
        Layout(_pools(change.after), size=26), Layout(_levels(change.after), size=34), Layout(_tenants(change.after))
    )
    return layout


def page(change: Change, address: str, now: datetime) -> Group:
    """The same, one below the other and nothing cut."""
    reading = change.after
    beside = Columns([_pools(reading), _levels(reading), _tenants(reading)], padding=(0, 3))
    return Group(_head(reading, address, now, ""), _methods(change), "", _refusals(change), "", beside)


def _head(reading: Reading, address: str, now: datetime, problem: str) -> RenderableType:
    first = Text.assemble(f"{now:%H:%M:%S}Z  ", (harmless(address), "bold"), no_wrap=True, overflow="ellipsis")
    if problem:
        return Group(first, Text(harmless(problem), style="bold red", no_wrap=True, overflow="ellipsis"), "")
    return Group(first, Text("  ").join(_conditions(reading)), "")


def _conditions(reading: Reading) -> Iterator[Text]:
    """Whether the server works, and what keeps it from working."""
    yield _condition(reading.value("muniment_ready") == 1, "ready", "not ready")
    yield _condition(reading.value("muniment_gate_open") != 0, "gate open", "gate closed")
    yield _condition(reading.lowest("muniment_database_up") == 1, "database up", _why_down(reading))
    if away := [harmless(node) for node, is_up in reading.by("muniment_node_up", "node").items() if not is_up]:
        yield Text(f"{', '.join(away)} down", style="bold red")
    free = reading.value("muniment_disk_free_bytes")
    left = "disk not known" if free is None else f"disk {free / _GIB:,.1f} GiB left"
    yield _condition(reading.value("muniment_disk_full") != 1, left, "disk full")
    erased = reading.value("muniment_agents_being_erased")
    if erased:
        yield Text(f"erasing {erased:,.0f} agents")
    if address := reading.label("muniment_remote_embedder", "address"):
        yield Text(_waiting_for(harmless(address), reading))
    if address := reading.label("muniment_reranker", "address"):
        asked = reading.by("muniment_reranker_requests_total", "outcome")
        yield Text(f"{asked.get('reranked', 0):,.0f} of {sum(asked.values()):,.0f} reranked by {harmless(address)}")


def _waiting_for(address: str, reading: Reading) -> str:
    """The queue of the model at an *address*, which is measured once the model has answered."""
    if queues := reading.by("muniment_remote_embedding_queue", "level"):
        return f"{sum(queues.values()):,.0f} chunks wait for {address}"
    failures = sum(reading.by("muniment_remote_embedder_failures_total", "level").values())
    return f"{address} has not answered yet (failures: {failures:,.0f}): its queue is not known"


def _why_down(reading: Reading) -> str:
    since = moment(reading.lowest("muniment_database_down_since_timestamp_seconds"))
    begin = f" since {since:%H:%M:%S}Z" if since is not None else ""
    names = [name for name, up in reading.by("muniment_database_up", "server").items() if name and not up]
    which = f" {harmless(', '.join(names))}" if names else ""
    return f"database{which} down{begin} (SQLSTATE {harmless(reading.label('muniment_database_up', 'sqlstate'))})"


def _condition(is_good: bool, good: str, bad: str) -> Text:
    return Text(good, style="green") if is_good else Text(bad, style="bold red")


def _methods(change: Change) -> Table:
    table = _table("calls", "/s", "total", "p50 ms", "p99 ms")
    rates = change.rates("grpc_server_handled_total", "grpc_method")
    handled = change.after.by("grpc_server_handled_total", "grpc_method")
    totals = {method: total for method, total in handled.items() if total}
    medians, slowest = (change.quantile(share, "grpc_server_handling_seconds", "grpc_method") for share in (0.50, 0.99))
    table.add_row(Text("all"), _rate(sum(rates.values())), f"{sum(totals.values()):,.0f}", "", "", style="bold")
    for method in sorted(totals, key=lambda each: (-rates[each], -totals[each], each)):
        times = _milliseconds(medians.get(method)), _milliseconds(slowest.get(method))
        table.add_row(_name(method), _rate(rates[method]), f"{totals[method]:,.0f}", *times)
    return table


def _refusals(change: Change) -> Table:
    table = _table("refusals", "/s", "total")
    rates = change.rates("muniment_calls_refused_total", "reason")
    totals = change.after.by("muniment_calls_refused_total", "reason")
    for reason in sorted(totals, key=lambda each: (-rates[each], -totals[each], each)):
        table.add_row(_name(reason), _rate(rates[reason]), f"{totals[reason]:,.0f}")
    return table


def _pools(reading: Reading) -> Table:
    table = _table("pool", "running", "queued")
    running, queued = (reading.by(f"muniment_calls_{state}", "pool") for state in ("running", "queued"))
    for pool, count in running.items():
        table.add_row(_name(pool), f"{count:,.0f}", f"{queued.get(pool, 0):,.0f}")
    return table


def _levels(reading: Reading) -> Table:
    table = _table("level", "sessions", "to embed")
    sessions = reading.by("muniment_sessions", "level")
    chunks = reading.by("muniment_embedding_queue", "level")
    for level in sessions or chunks:
        counts = _whole(sessions.get(level)), _whole(chunks.get(level))
        table.add_row(_name(level, LEVEL_STYLES.get(level, "")), *counts)
    return table


def _tenants(reading: Reading) -> Table:
    """Those with most calls, by name: in the last minute, over which the server takes the average."""
    table = _table("tenant", "/min")
    rates = reading.samples.get("muniment_tenant_calls_per_second", {})
    by_name = [(dict(labels), rate) for labels, rate in rates.items()]
    for labels, rate in _highest(by_name):
        table.add_row(_name(labels.get("name") or labels.get("tenant", "")), _rate(60 * rate))
    return table


def _highest(rates: Iterable[tuple[Mapping[str, str], float]]) -> Sequence[tuple[Mapping[str, str], float]]:
    return sorted(((labels, rate) for labels, rate in rates if rate), key=lambda each: -each[1])[:_MOST]


def _table(title: str, *columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(title, overflow="ellipsis")  # which gives way where the terminal is narrow
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _name(name: str, style: str = "") -> Text:
    """*name* without control characters, in one line, and not too long."""
    shown = Text(harmless(name), style=style, no_wrap=True, overflow="ellipsis")
    shown.truncate(_LONGEST_NAME, overflow="ellipsis")
    return shown


def _rate(value: float) -> str:
    return f"{value:,.1f}" if value else "0"


def _whole(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:,.1f}"
