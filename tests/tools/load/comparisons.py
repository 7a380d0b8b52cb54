"""The sections of the report that compare: with what does less, with other systems, and by other load generators."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tests.tools.load import side_by_side
from tests.tools.load.calls import GET, SAVE, SEARCH
from tests.tools.load.results import Results
from tests.tools.load.run import PEERS_ITEMS
from tests.tools.load.side_by_side import Line
from tests.tools.load.tables import markdown, milliseconds

_CALLERS = max(side_by_side.CALLERS)
_ORDER = (GET, side_by_side.GET_AUDITED, SAVE, SEARCH)
_OURS = (side_by_side.WORDS, side_by_side.SEMANTIC)


def sections(results: Results) -> Iterator[str]:
    """The sections, in order."""
    yield _guards(results)
    yield _peers(results)
    yield _opinions(results)


def _guards(results: Results) -> str:
    gets = {(one.system, one.operation): one for one in results.lines if one.callers == _CALLERS}
    ours = [gets[side_by_side.WORDS, operation] for operation in (GET, side_by_side.GET_AUDITED)]
    baselines = [one for one in gets.values() if one.system in (side_by_side.PING, side_by_side.BARE, side_by_side.GO)]
    rows = [
        [
            f"{one.operation} / {other.system}", f"{one.per_second / other.per_second:.2f}",
            f"{sum(one.cpu) / sum(other.cpu):.2f}" if sum(other.cpu) else "–",
            f"{one.figures.p50 / other.figures.p50:.2f}",
        ]
        for one in ours for other in baselines
    ]  # fmt: skip
    return f"""## What the guards cost

GetMemory of Muniment, divided by what does less: {_CALLERS} callers, each of which sends its next call at once. The
ping has no database; the servers with one SELECT know no caller and check nothing. Reads at CONFIDENTIAL and above are
audited. CPU is that of server and Postgres together.

{markdown(("", "calls per s", "CPU a call", "p50"), rows)}"""


def _peers(results: Results) -> str:
    ours = {(one.system, one.operation, one.callers): one.per_second for one in results.lines}
    rows = [
        [
            one.system, one.operation, str(one.callers), f"{one.per_second:,.0f}",
            *(milliseconds(value) for value in (one.figures.p50, one.figures.p99)),
            f"{sum(one.cpu):,.0f}" if sum(one.cpu) else "–",
            _ratio(one, ours),
        ]
        for one in sorted(filter(_shown, results.lines), key=lambda one: (_ORDER.index(one.operation), one.callers))
    ]  # fmt: skip
    return f"""## Side by side

The smallest store, in the same run: each caller sends its next call at once, one operation at a time, for
{results.plan.times.baseline:g} s. Latencies are in milliseconds, CPU in microseconds a call. The last column is the
calls a second of the Muniment that does the same, divided by those of the other.

* LangGraph's PostgresStore and mem0 run inside the calling process, on up to {PEERS_ITEMS:,} memories: no network, no
  caller to authenticate, no levels, no audit. Their CPU is without Postgres.
* PostgresStore uses the same Postgres, without vectors: its search is a filter, sorted by time.
* mem0 runs without an LLM (`infer=False`), on Qdrant in a local folder, with Muniment's embedding
  model.{_missing(results)}

{markdown(("system", "operation", "callers", "calls per s", "p50", "p99", "CPU", "ratio"), rows)}"""


def _shown(one: Line) -> bool:
    """The CSV has all. mem0 has one caller. With embeddings, a get is what it is without."""
    many = one.callers == _CALLERS or one.system == side_by_side.MEM0
    return many and (one.system != side_by_side.SEMANTIC or one.operation in (SAVE, SEARCH))


def _ratio(one: Line, ours: Mapping[tuple[str, str, int], float]) -> str:
    """Of others, compared with the Muniment that does the same: mem0 with embeddings."""
    same = side_by_side.SEMANTIC if one.system == side_by_side.MEM0 else side_by_side.WORDS
    per_second = ours.get((same, one.operation, one.callers))
    return "" if one.system in _OURS or per_second is None else f"{per_second / one.per_second:.2g}"


def _missing(results: Results) -> str:
    if any(one.system == side_by_side.MEM0 for one in results.lines):
        return ""
    return "\n* LangGraph's store, mem0 and grpc-go were not measured: `make load-report` installs them."


def _opinions(results: Results) -> str:
    parts = (f"```sh\n{one.command}\n```\n```text\n{_short(one.says)}\n```\n" for one in results.opinions)
    return (
        "## Second opinions\n\nGetMemory of one memory by one session, measured by other load generators.\n\n"
        + "\n".join(parts)
    )


def _short(says: str) -> str:
    """Without ghz's histogram, and of its percentiles the middle and the last."""
    kept = [line.strip() for line in says.splitlines() if _KEPT.search(line)]
    return "\n".join(kept) or says


_KEPT = re.compile(r"^ *(Requests/sec|50 %|99 %|\[\w+\] +\d+ responses)")
