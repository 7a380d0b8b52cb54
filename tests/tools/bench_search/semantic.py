"""`make bench-semantic`: what semantic search costs one agent with up to a million embeddings, and how much it finds.

Compared in one run, with the same questions: search without lists, search with them, and pgvector's HNSW, which the
embedded Postgres has. The model embeds real texts and real questions. The other embeddings are drawn around real ones,
since the model would take half a day for a million.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import psycopg
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from muniment_server.domain.classification import Classification
from muniment_server.domain.items import ALL_ITEMS, ItemFilter
from muniment_server.embedder.e5.model import Model
from muniment_server.embedder.lists import maintain_lists
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.process.stop_signal import StopSignal
from muniment_server.search.embeddings import EMBEDDER
from tests.support.labels import untrusted
from tests.tools.bench.processes import Service, serving
from tests.tools.bench_search.corpus import sizes
from tests.tools.bench_search.loading import SHARES, Owner, new_owners
from tests.tools.bench_search.measure import Bench
from tests.tools.eval.corpora import corpora
from tests.tools.eval.folder import data_option

_CONSOLE = Console(width=132)
_NEAR = 0.8
"""The approximate cosine between a drawn embedding and the real one it is drawn around."""
_BATCH = 5000
_FOUND = 10
_RARE = 100
"""One item in so many has the tag that is searched with."""
_EF_SEARCH = (40, 100, 200)
_ITEM = "COPY {level}.item (tenant, agent, kind, name, item_id, change_id, content, tags) FROM STDIN"
_CHUNK = """
COPY {level}.chunk (tenant, agent, kind, name, change_id, piece, is_whole, start, size, tier, tags, sample, language,
                    stems, grams, stem_count, gram_count) FROM STDIN
"""
_EMBEDDING = """
COPY {level}.meaning (tenant, agent, kind, name, change_id, piece, embedder, signs, vector) FROM STDIN
"""
_HNSW = "SELECT number FROM peer.item ORDER BY embedding <#> %s::halfvec LIMIT 10"


class Texts(NamedTuple):
    """The embeddings of real texts and questions, a row each."""

    documents: Any
    questions: Any


class Measured(NamedTuple):
    """One way to search, at one size."""

    embeddings: int
    way: str
    p50: float
    p95: float
    cpu: float
    """Milliseconds of the database's CPU for a search."""
    recall: float
    """The share of the ten most similar that is found."""
    made_in: float
    """Seconds to make the index or the lists."""


@click.command(epilog="Example: make bench-semantic ARGS='--sizes 1e4,1e5 --vectors vectors.npz'")
@click.option("--sizes", "wanted", default="1e4,1e5,1e6", show_default=True, help="Numbers of embeddings.")
@click.option("--real", default=2000, show_default=True, help="Texts that the model embeds.")
@click.option("--queries", default=100, show_default=True, help="Questions.")
@click.option("--vectors", type=click.Path(path_type=Path), help="A file that keeps real embeddings for another run.")
@data_option
def main(wanted: str, real: int, queries: int, vectors: Path | None, data: Path) -> None:
    """Measure semantic search on this machine. A million embeddings take an hour."""
    rows: list[Measured] = []
    with Progress(console=Console(stderr=True)) as progress:
        texts = _texts(data, real, queries, vectors, progress)
        for count in sizes(wanted):
            for row in _measured(texts, count, progress):
                progress.console.print(row)
                rows.append(row)
    _report(rows, len(texts.documents))


def _texts(data: Path, real: int, queries: int, path: Path | None, progress: Progress) -> Texts:
    if path is not None and path.exists():
        with np.load(path) as kept:
            return Texts(kept["documents"][:real], kept["questions"][:queries])
    documents, questions = _real_texts(data)
    model = Model()
    task = progress.add_task("embedding real texts", total=min(real, len(documents)) + queries)
    made = [
        np.array([_advanced(progress, task, embed(text)) for text in some], dtype=np.int16)
        for embed, some in ((model.embed_chunk, documents[:real]), (model.embed_query, questions[:queries]))
    ]
    if path is not None:
        np.savez(path, documents=made[0], questions=made[1])
    return Texts(*made)


def _advanced(progress: Progress, task: Any, value: Any) -> Any:
    progress.advance(task)
    return value


def _real_texts(data: Path) -> tuple[Sequence[str], Sequence[str]]:
    """Turns, facts and paragraphs, and questions about them, in a constant random order."""
    sets = [corpus for corpus in corpora(data) if corpus.name != "LoCoMo bare turns"]
    documents = [document.text for corpus in sets for document in corpus.documents]
    questions = [question.text for corpus in sets for question in corpus.questions]
    order = np.random.default_rng(1)
    return [documents[at] for at in order.permutation(len(documents))], [
        questions[at] for at in order.permutation(len(questions))
    ]


def _drawn(texts: Texts, count: int) -> Any:
    """*count* embeddings: the real ones, and others near a real one, each moved towards another."""
    source = np.random.default_rng(1)
    real = texts.documents.astype(np.float32)
    rows = np.empty((count, real.shape[1]), dtype=np.int16)
    rows[: len(real)] = texts.documents[:count]
    for at in range(len(real), count, _BATCH):
        near, towards = (source.integers(0, len(real), min(_BATCH, count - at)) for _ in range(2))
        mixed = _NEAR * real[near] + np.sqrt(1 - _NEAR**2) * real[towards]
        rows[at : at + len(mixed)] = np.round(mixed * (1000 / np.linalg.norm(mixed, axis=1, keepdims=True)))
    return rows[source.permutation(count)]


def _measured(texts: Texts, count: int, progress: Progress) -> Iterator[Measured]:
    folder = Path(tempfile.mkdtemp(prefix="muniment-bench-semantic-"))
    folder.chmod(0o711)
    rows = _drawn(texts, count)
    asked = texts.questions.astype(np.float32)
    exact = _nearest(rows, asked)
    try:
        with serving(folder, workers=1, threads=4, words_alone=True) as service:
            task = progress.add_task(f"loading {count:,}", total=count)
            names = _load(service, rows, lambda more: progress.advance(task, more))
            with closing(Bench(service, "agent1", Classification.RESTRICTED)) as bench:
                ours = _ServiceSearch(service, bench, names)
                yield ours.measured("all signs", count, texts.questions, exact, 0.0)
                took = _with_lists(service, progress)
                yield ours.measured("lists", count, texts.questions, exact, took)
                yield from _with_tag(ours, rows, count, texts, took)
            yield from _hnsw(service, rows, asked, exact, progress)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _nearest(rows: Any, queries: Any, numbers: Any = None) -> list[set[int]]:
    """The numbers of the ten embeddings, of all or of some, that are most similar to each query."""
    numbers = np.arange(len(rows)) if numbers is None else numbers
    similarity = np.concatenate(
        [rows[numbers[at : at + 50_000]].astype(np.float32) @ queries.T for at in range(0, len(numbers), 50_000)]
    )
    best = np.argpartition(-similarity, _FOUND, axis=0)[:_FOUND]
    return [set(numbers[column].tolist()) for column in best.T]


def _load(service: Service, rows: Any, done: Callable[[int], object]) -> dict[str, int]:
    """Store the embeddings for one agent, at all levels; return the number of each name."""
    owners = new_owners(service.conninfo, 1)
    parts = np.cumsum([round(SHARES[owner.level] * len(rows)) for owner in owners])[:-1]
    names: dict[str, int] = {}
    with _as_admin(service) as connection:
        connection.execute("SET session_replication_role = replica")  # foreign keys are not checked
        for level in Classification:  # no query here looks a word up
            connection.execute(
                f"DROP INDEX {untrusted(level).role}.chunk_stems, {untrusted(level).role}.chunk_grams".encode()
            )
        for owner, numbers in zip(owners, np.split(np.arange(len(rows)), parts), strict=True):
            for at in range(0, len(numbers), _BATCH):
                batch = numbers[at : at + _BATCH]
                names |= _store(connection, owner, batch, rows[batch])
                done(len(batch))
        connection.execute("VACUUM ANALYZE")
    return names


def _store(connection: psycopg.Connection[Any], owner: Owner, numbers: Any, rows: Any) -> dict[str, int]:
    """Store a batch at one level by COPY, with text that is built here: psycopg takes minutes for a million arrays."""
    names = {str(uuid.uuid4()): int(number) for number in numbers}
    signs = np.where(rows > 0, "1", "0").tolist()
    lines: dict[str, list[str]] = {_ITEM: [], _CHUNK: [], _EMBEDDING: []}
    for (name, number), sign, row in zip(names.items(), signs, rows.tolist(), strict=True):
        key = f"{owner.tenant}\t{owner.agent}\t1\t{name}\t"
        change_id, tag = uuid.uuid4(), "{rare}" if number % _RARE == 0 else "{}"
        scope = f"'@{owner.agent}:1'"
        lines[_ITEM].append(f"{key}{uuid.uuid4()}\t{change_id}\ttext\t{tag}\n")
        lines[_CHUNK].append(f"{key}{change_id}\t0\tt\t0\t4\t1\t{tag}\t0\tenglish\t{scope}\t{scope}\t1\t1\n")
        lines[_EMBEDDING].append(f"{key}{change_id}\t0\t{EMBEDDER}\t{''.join(sign)}\t{{{','.join(map(str, row))}}}\n")
    for statement, texts in lines.items():
        with connection.cursor().copy(statement.replace("{level}", untrusted(owner.level).role).encode()) as copy:
            copy.write("".join(texts))
    connection.execute(
        f"INSERT INTO {untrusted(owner.level).role}.stat"
        " (tenant, agent, kind, language, change_id, chunks, stems, grams)"
        f" VALUES (%s, %s, 1, 'english', gen_random_uuid(), %s, %s, %s)".encode(),
        [owner.tenant, owner.agent, len(names), len(names), len(names)],
    )
    return names


def _with_lists(service: Service, progress: Progress) -> float:
    """Make the lists of all levels as the embedder does, but without its pauses; return how long that took."""
    task, began = progress.add_task("making lists", total=len(Classification)), time.monotonic()
    with closing(RoleDatabase(service.conninfo, pool_sizes=SINGLE)) as database, _as_admin(service) as connection:
        for level in Classification:
            before, left = None, _in_no_list(connection, level)
            while left != before:  # a run moves a part, and nothing where there are too few for lists
                maintain_lists(database, untrusted(level), _NoPause())
                before, left = left, _in_no_list(connection, level)
            progress.advance(task)
        took = time.monotonic() - began
        connection.execute("VACUUM ANALYZE")
    return took


class _NoPause(StopSignal):
    def wait(self, seconds: float) -> bool:
        return super().wait(0.0)


def _in_no_list(connection: psycopg.Connection[Any], level: Classification) -> int:
    found = connection.execute(
        f"SELECT count(*) FROM {untrusted(level).role}.meaning WHERE list IS NULL".encode()
    ).fetchone()
    assert found is not None
    return int(found[0])


class _ServiceSearch:
    """Searches with the service's own statement."""

    def __init__(self, service: Service, bench: Bench, names: dict[str, int]) -> None:
        self._bench = bench
        self._names = names
        self._backend = bench.backend()

    def measured(
        self,
        way: str,
        count: int,
        questions: Any,
        exact: Sequence[set[int]],
        took: float,
        wanted: ItemFilter = ALL_ITEMS,
    ) -> Measured:
        return _timed(count, way, [query.tolist() for query in questions], exact, took, self._backend, lambda query: {
            self._names[name] for name in self._bench.similar(query, wanted)[:_FOUND]
        })  # fmt: skip


def _with_tag(ours: _ServiceSearch, rows: Any, count: int, texts: Texts, took: float) -> Iterator[Measured]:
    """Searches among the items with a tag that few have."""
    few = texts.questions[:10]
    tagged = np.arange(0, len(rows), _RARE)
    exact = _nearest(rows, few.astype(np.float32), tagged)
    yield ours.measured("lists, one item in 100", count, few, exact, took, ItemFilter(tags=("rare",)))


def _hnsw(service: Service, rows: Any, asked: Any, exact: Sequence[set[int]], progress: Progress) -> Iterator[Measured]:
    """pgvector, with nothing but the embeddings in its table: no levels, no shadow, no filters."""
    with psycopg.connect(service.conninfo("postgres"), autocommit=True, prepare_threshold=0) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE SCHEMA peer")
        connection.execute("CREATE TABLE peer.item (number bigint, embedding halfvec(384))")
        task = progress.add_task("pgvector", total=len(rows) + 1)
        with connection.cursor().copy("COPY peer.item FROM STDIN") as copy:
            for number, row in enumerate(rows):
                copy.write_row((number, str(row.tolist())))
                progress.advance(task)
        connection.execute("SET maintenance_work_mem = '3GB'")
        began = time.monotonic()
        connection.execute("CREATE INDEX ON peer.item USING hnsw (embedding halfvec_ip_ops)")
        took = time.monotonic() - began
        progress.advance(task)
        backend = connection.info.backend_pid
        for ef_search in _EF_SEARCH:
            connection.execute(f"SET hnsw.ef_search = {ef_search}".encode())

            def found(query: Sequence[int]) -> set[int]:
                return {number for (number,) in connection.execute(_HNSW, [str(query)])}

            way = f"HNSW, ef_search {ef_search}"
            yield _timed(len(rows), way, [query.astype(int).tolist() for query in asked], exact, took, backend, found)


def _timed(
    count: int, way: str, queries: Sequence[Any], exact: Sequence[set[int]], took: float, backend: int,
    search_one: Callable[[Any], set[int]],
) -> Measured:  # fmt: skip
    for query in queries:
        search_one(query)  # warms what is read
    times, hits, before = [], 0, _processor(backend)
    for query, best in zip(queries, exact, strict=True):
        began = time.perf_counter()
        hits += len(search_one(query) & best)
        times.append((time.perf_counter() - began) * 1000)
    cpu = (_processor(backend) - before) / len(queries)
    times.sort()
    p95 = times[min(len(times) - 1, int(len(times) * 0.95))]
    return Measured(count, way, times[len(times) // 2], p95, cpu, hits / (_FOUND * len(queries)), took)


def _processor(process: int) -> float:
    """Milliseconds of processor that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 10.0


def _as_admin(service: Service) -> psycopg.Connection[Any]:
    return psycopg.connect(service.conninfo("postgres"), autocommit=True)


def _report(rows: Sequence[Measured], real: int) -> None:
    table = Table(title=f"semantic search of one agent, {real:,} embeddings real: milliseconds")
    for heading in ("embeddings", "search", "p50", "p95", "CPU", "recall@10", "made in"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            f"{row.embeddings:,}", row.way, f"{row.p50:,.1f}", f"{row.p95:,.1f}", f"{row.cpu:,.1f}",
            f"{row.recall:.3f}", f"{row.made_in:,.0f} s",
        )  # fmt: skip
    _CONSOLE.print(table)
    _CONSOLE.print("CPU: of the database, a search; recall@10: compared with the dot products of all embeddings")


if __name__ == "__main__":
    main()
