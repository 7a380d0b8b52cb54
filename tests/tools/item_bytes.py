"""How many bytes an item takes in the database: `python -m tests.tools.item_bytes DATA --items 20000`.

DATA is a folder of real text, as for `make bench-search`. The items are saved through the service by one session of
each level, embedded and sealed. What is counted is what Postgres takes for tables with their indexes, after a VACUUM.
"""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import click

from muniment_server.background.sealer import Sealer
from muniment_server.domain.classification import Classification
from muniment_server.postgres.placement import ONLY, PlacedDatabase
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.process.stop_signal import StopSignal
from muniment_server.search.embeddings import DIMENSIONS, Vector
from tests.support.databases import Database, cloned, running_postgres
from tests.support.embedders import embed_by
from tests.support.labels import untrusted
from tests.support.services import serving
from tests.tools.bench_search.corpus import Source

_BATCH = 50
_SIZES = """
SELECT class.relname AS name, sum(pg_table_size(class.oid))::bigint AS rows,
       sum(pg_indexes_size(class.oid))::bigint AS indexes
  FROM pg_class AS class
       JOIN pg_namespace AS namespace
            ON namespace.oid = class.relnamespace
           AND namespace.nspname = ANY(%s)
 WHERE class.relkind = 'r'
 GROUP BY class.relname
 ORDER BY sum(pg_total_relation_size(class.oid)) DESC
"""


@click.command
@click.argument("data", type=click.Path(exists=True, path_type=Path))
@click.option("--items", default=20_000, show_default=True)
def main(data: Path, items: int) -> None:
    """Save ITEMS memories with texts like those in DATA, and print what each takes."""
    with running_postgres() as postgres, cloned(postgres) as database:
        before = _sizes(database)
        contents = _save(database, data, items)
        embed_by(database, lambda _: _drawn(), StopSignal())
        _seal(database)
        after = _sizes(database)
    total = 0.0
    for name, (rows, indexes) in after.items():
        had_rows, had_indexes = before.get(name, (0, 0))
        own, index = (rows - had_rows) / items, (indexes - had_indexes) / items
        total += own + index
        if own + index >= 1:
            click.echo(f"{name:18} {own:8,.0f} bytes of rows {index:8,.0f} of indexes")
    click.echo(f"{'together':18} {total:8,.0f} bytes an item, with {contents / items:,.0f} bytes of content each")


def _save(database: Database, data: Path, items: int) -> int:
    """Save the memories, a part at each level; return the bytes of their contents."""
    texts, written = Source(data).items(items), 0
    with serving(database) as service:
        sessions = [service.session(level) for level in Classification]
        for number in range(0, items, _BATCH):
            batch = list(islice(texts, min(_BATCH, items - number)))
            written += sum(len(text.encode()) for text in batch)
            requests = [{"key": f"key-{number + place}", "content": text} for place, text in enumerate(batch)]
            sessions[number // _BATCH % len(sessions)].save_memories(memories=requests, timeout=120.0)
    return written


def _seal(database: Database) -> None:
    pools = RoleDatabase(database.conninfo, pool_sizes=SINGLE)
    Sealer(PlacedDatabase(ONLY, pools), lambda: True).seal_all()
    pools.close()


def _drawn() -> Vector:
    return [random.randint(-127, 127) for _ in range(DIMENSIONS)]


def _sizes(database: Database) -> dict[str, tuple[int, int]]:
    with database.as_admin() as admin:
        admin.execute("VACUUM ANALYZE")
        schemas = [
            *(untrusted(level).role for level in Classification),
            "muniment_control",
            "muniment_auditor",
            "vault",
        ]
        return {name: (rows, indexes) for name, rows, indexes in admin.execute(_SIZES, [schemas])}


if __name__ == "__main__":
    main()
