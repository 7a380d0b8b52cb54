"""The schema as it stands after all migrations, written out: `python -m tests.support.schema` renews `schema.sql`."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from muniment_server.embedded_postgres import EmbeddedPostgres, find_bindir
from muniment_server.postgres import migrate, roles

SCHEMA = Path(migrate.__file__).with_name("schema.sql")
_HEADER = """\
-- The whole schema with its grants, as the migrations make it: to be read, and held equal to them by a test.
-- Renewed by `make schema`. Which dictionary a text search configuration takes for which kind of word is left out.
"""
_MAPPING = re.compile(r"^ALTER TEXT SEARCH CONFIGURATION \S+\n    ADD MAPPING FOR .*;\n", re.MULTILINE)
_NOISE = re.compile(r"^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\.*|)\n", re.MULTILINE)


def dump(postgres: EmbeddedPostgres, database: str) -> str:
    """The schema of *database*, without what changes from one version of pg_dump to the next."""
    finished = subprocess.run(
        [
            str(find_bindir() / "pg_dump"),
            "--schema-only",
            "--no-owner",
            postgres.conninfo(user="postgres", dbname=database),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    statements = re.sub(r";\n", ";\n\n", _NOISE.sub("", _MAPPING.sub("", finished.stdout)))
    return f"{_HEADER}\n{statements}".rstrip() + "\n"


def main() -> None:
    """Write `schema.sql` anew."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        with EmbeddedPostgres(Path(folder, "postgres"), roles=roles.ALL, durable=False) as postgres:
            migrate.migrate(postgres.conninfo(user="postgres"))
            SCHEMA.write_text(dump(postgres, "muniment"))


if __name__ == "__main__":
    main()
