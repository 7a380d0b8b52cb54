"""The schema as it stands after all migrations, written out: `python -m tests.support.schema` renews `schema.sql`."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from muniment_server.domain.classification import Classification, Label
from muniment_server.embedded_postgres import EmbeddedPostgres, find_bindir
from muniment_server.postgres import migrate, roles

SCHEMA = Path(migrate.__file__).with_name("schema.sql")
_HEADER = """\
-- The schema with its grants, as the migrations make it: to be read, and held equal to them by a test.
-- Renewed by `make schema`. Of the labels, only those of INTERNAL are here: the others are like them.
-- Which dictionary a text search configuration takes for which kind of word is left out.
"""
_HEADING = re.compile(r"^--\n-- Name: .*\n--\n", re.MULTILINE)
_OBJECT = re.compile(r"\b(?:muniment_\w+|vault)\b")
"""The schema of an object is the first that the statements which make it name."""
_MAPPING = re.compile(r"^ALTER TEXT SEARCH CONFIGURATION \S+\n    ADD MAPPING FOR .*;\n", re.MULTILINE)
_NOISE = re.compile(r"^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\.*|)\n", re.MULTILINE)


def dump(postgres: EmbeddedPostgres, database: str) -> list[str]:
    """What makes the schema of *database*, object by object, without what changes from one pg_dump to the next."""
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
    objects = (_NOISE.sub("", _MAPPING.sub("", one)) for one in _HEADING.split(finished.stdout))
    return [one.rstrip().replace(";\n", ";\n\n") for one in objects if one]


def shown(objects: list[str]) -> str:
    """What `schema.sql` has of them: of the eight labels, those of INTERNAL."""
    others = {label.role for label in Label if label.level is not Classification.INTERNAL}
    return "\n\n".join([_HEADER.rstrip(), *(one for one in objects if schema_of(one) not in others)]) + "\n"


def schema_of(made: str) -> str:
    """The schema of an object, by what makes it; empty for what has none."""
    found = _OBJECT.search(made)
    return found[0] if found else ""


def main() -> None:
    """Write `schema.sql` anew."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        with EmbeddedPostgres(Path(folder, "postgres"), roles=roles.ALL, durable=False) as postgres:
            migrate.migrate(postgres.conninfo(user="postgres"))
            SCHEMA.write_text(shown(dump(postgres, "muniment")))


if __name__ == "__main__":
    main()
