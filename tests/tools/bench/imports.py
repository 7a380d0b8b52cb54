"""`make bench-import`: an import of short passages into a new database, beside its statements without the service.

Both fill agents of one database, in turn, so that each step of one has a step of the other beside it. The first steps
show what a new database costs, before Postgres has analyzed its tables.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import psycopg
from rich.console import Console
from rich.progress import track
from rich.table import Table

import muniment
from muniment import Classification, NewPassage, SessionClient
from muniment_server.domain.items import ItemKind
from muniment_server.monitor.queries import SESSION_QUERIES
from muniment_server.monitor.session_scope import Statement
from muniment_server.postgres.pool import SETTINGS
from muniment_server.search import index
from tests.tools.bench.processes import Service, serving
from tests.tools.bench.usage import Usage, cpu_seconds
from tests.tools.bench_search.corpus import Source
from tests.tools.eval.folder import data_option

_CONSOLE = Console(width=130)
_BATCH = 100
"""As many passages as the service commits at once, if they are short."""
_AUTHOR = "Ahab"


class Step(NamedTuple):
    """What one step took."""

    seconds: float
    cpu: Usage


@click.command(epilog="Example: make bench-import ARGS='--passages 60000 --embedder'")
@click.option("--passages", default=20_000, show_default=True, help="How many each of the two stores.")
@click.option("--step", default=2_000, show_default=True, help="How many the two store in turn.")
@click.option("--embedder", is_flag=True, help="Embed meanwhile, which takes a core of its own.")
@data_option
def main(passages: int, step: int, embedder: bool, data: Path) -> None:
    """Measure imports on this machine. Takes about a minute. The database is durable (fsync on)."""
    texts = list(Source(data).items(passages))
    folder = Path(tempfile.mkdtemp(prefix="muniment-bench-"))
    folder.chmod(0o711)
    try:
        with serving(folder, workers=1, threads=4, words_alone=not embedder) as service:
            _CONSOLE.print(_table(step, *_measured(service, texts, step)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(service: Service, texts: Sequence[str], step: int) -> tuple[list[Step], list[Step]]:
    """The steps of the service, and those of the statements."""
    imports, statements = [], []
    with muniment.connect(service.address, host_key=service.host_key, timeout=600) as host:
        for agent_id in ("import", "statements"):
            host.create_agent(agent_id)
        session = host.open_session("import", Classification.INTERNAL)
        with closing(_Statements(service, host.open_session("statements", Classification.INTERNAL))) as direct:
            for first in track(range(0, len(texts), step), description="importing", console=_CONSOLE, transient=True):
                of_step = texts[first : first + step]
                imports.append(_timed(service, partial(session.import_passages, _passages(of_step))))
                statements.append(_timed(service, partial(direct.store, of_step)))
    return imports, statements


def _passages(texts: Sequence[str]) -> Iterator[NewPassage]:
    for text in texts:
        yield NewPassage(content=text, author=_AUTHOR, passage_id=str(uuid.uuid4()))


def _timed(service: Service, act: Callable[[], object]) -> Step:
    before, started = cpu_seconds(service), time.monotonic()
    act()
    return Step(time.monotonic() - started, cpu_seconds(service) - before)


class _Statements:
    """What an import has Postgres do, from a connection of our own."""

    def __init__(self, service: Service, session: SessionClient) -> None:
        settings = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items() if name != "search_path")
        self._connection = psycopg.connect(service.conninfo("muniment_internal"), options=settings, autocommit=True)
        self._connection.prepare_threshold = 0
        self._session = {"tenant": int(session.token.split("_")[2]), "session_id": session.session_id}

    def close(self) -> None:
        self._connection.close()

    def store(self, texts: Sequence[str]) -> None:
        for first in range(0, len(texts), _BATCH):
            self._store_batch(texts[first : first + _BATCH])

    def _store_batch(self, texts: Sequence[str]) -> None:
        rows = [_row(position, text) for position, text in enumerate(texts)]
        entries = [
            index.entry(ItemKind.PASSAGE, row["name"], row["change_id"], row["content"], author=_AUTHOR) for row in rows
        ]
        change = {"change_id": uuid.uuid4()}
        with self._connection.transaction():
            self._run("store_passages", {"passages": json.dumps(rows, default=str), "count": len(rows), **change})
            for statement in (
                Statement("let_entries_wait", {}),
                index.index_statement(ItemKind.PASSAGE, entries),
                index.queue_statement(ItemKind.PASSAGE, entries),
            ):
                self._run(statement.name, {**statement.parameters, **change})

    def _run(self, name: str, parameters: dict[str, Any]) -> None:
        self._connection.execute(
            SESSION_QUERIES[name], {**parameters, **self._session, "method": "PassageService/ImportPassages"}
        )


def _row(position: int, text: str) -> dict[str, Any]:
    return {
        "position": position,
        "name": str(uuid.uuid4()),
        "item_id": uuid.uuid4(),
        "change_id": uuid.uuid4(),
        "content": text,
        "tags": [],
        "author": _AUTHOR,
    }


def _table(step: int, imports: Sequence[Step], statements: Sequence[Step]) -> Table:
    table = Table(title="an import, beside its statements from one connection; CPU in us a passage")
    for heading in ("passages", "a second", "by the statements", "ratio", "CPU of the worker", "CPU of Postgres"):
        table.add_column(heading, justify="right")
    for number, (one, other) in enumerate(zip(imports, statements, strict=True), 1):
        cpu = one.cpu.per(step / 1e6)
        table.add_row(
            f"{number * step:,}",
            f"{step / one.seconds:,.0f}",
            f"{step / other.seconds:,.0f}",
            f"{other.seconds / one.seconds:.2f}",
            f"{cpu.server:,.0f}",
            f"{cpu.postgres:,.0f}",
        )
    return table


if __name__ == "__main__":
    main()
