"""A backup that is not as it was written is refused before anything is done, and one without a digest is read."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from muniment.cli.failures import Failure, report_file_errors
from muniment_server.admin import backup, dumps
from muniment_server.admin.checks import Verdict
from muniment_server.admin.journal import from_bytes
from muniment_server.domain.classification import Classification as Level
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.postgres import migrate
from muniment_server.process.input_files import UnusableFile, read_file
from tests.operations.admin.test_backup import JOURNAL
from tests.support.commands import run
from tests.support.databases import Database, cloned
from tests.support.services import Service

_ROWS_OF_AUDIT = re.compile(
    rb"\0(\x01)\0\0\0\0.\0\0\0\d+\0.\0\0\0\d+\0\x05\0\0\0audit\0\x0a\0\0\0TABLE DATA", re.DOTALL
)
"""An entry: whether there are rows, two ids, its name and its kind. Before each text is its length."""
DAMAGED = "is not as `muniment backup` wrote it"


@pytest.fixture
def content(service: Service, tmp_path: Path) -> bytes:
    """A backup of a public and a confidential memory."""
    for level in (Level.PUBLIC, Level.CONFIDENTIAL):
        service.session(level).save_memory(key="plan", content="text")
    with (tmp_path / "whole.dump").open("wb") as target:
        dumps.dump(service.database.admin, target)
    return (tmp_path / "whole.dump").read_bytes()


def flipped(content: bytes, offset: int, bit: int = 0) -> bytes:
    changed = bytearray(content)
    changed[offset] ^= 1 << bit
    return bytes(changed)


def without_digest(content: bytes) -> bytes:
    """A backup as earlier versions wrote it, which knew whether it was summer time."""
    offset = dumps._offset_of_summer_time(content)
    return content[:offset] + bytes(2) + content[offset + 2 : -dumps._DIGEST_BYTES]


def offset_of_flag(content: bytes, schema: bytes) -> int:
    """Where the contents list says that the backup has the rows of the audit log in *schema*."""
    entries = _ROWS_OF_AUDIT.finditer(content)
    return next(entry.start(1) for entry in entries if schema in content[entry.end() : entry.end() + 900])


def require_damaged(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(Failure):
        dumps.require_whole(file)


def test_one_flipped_bit_anywhere_is_found(content: bytes, tmp_path: Path) -> None:
    end = len(content)
    for number, offset in enumerate([*range(0, end, end // 200), *range(end - dumps._DIGEST_BYTES, end)]):
        require_damaged(tmp_path / "flipped.dump", flipped(content, offset, number % 8))


def test_a_backup_that_was_cut_off_anywhere_is_found(content: bytes, tmp_path: Path) -> None:
    """Also where exactly the digest is cut off, and all else is there."""
    end = len(content)
    for length in [*range(0, end, end // 40), *range(end - dumps._DIGEST_BYTES - 12, end, 6)]:
        require_damaged(tmp_path / "cut.dump", content[:length])


@pytest.mark.parametrize("length", [0, 10, 100])
def test_what_is_left_of_a_backup_needs_another_copy_and_no_other_login(
    content: bytes, tmp_path: Path, length: int
) -> None:
    (tmp_path / "cut.dump").write_bytes(content[:length])

    with pytest.raises(Failure) as failed:
        dumps.require_whole(tmp_path / "cut.dump")

    assert dumps._USE_ANOTHER_COPY in failed.value.hint


@pytest.mark.parametrize("more", [b"\0", b"\n", b"\0" * 2**20, None], ids=["zero", "newline", "zeros", "itself"])
def test_a_backup_with_more_at_its_end_is_found(content: bytes, tmp_path: Path, more: bytes | None) -> None:
    require_damaged(tmp_path / "longer.dump", content + (content if more is None else more))


def test_a_damaged_backup_is_not_restored_at_all(content: bytes, folder: Path) -> None:
    (folder / "flipped.dump").write_bytes(flipped(content, len(content) // 2))

    for command in (("restore", "flipped.dump", "--data-dir", "restored"), ("verify", "flipped.dump")):
        done = run(folder, *command, TMPDIR=str(folder))

        assert done.returncode == 1
        assert DAMAGED in done.stderr
    assert [each.name for each in folder.iterdir()] == ["flipped.dump"]


@pytest.mark.parametrize(
    "command",
    [
        ("verify", "FILE"),
        ("restore", "FILE", "--data-dir", "restored"),
        ("restore", "any.dump", "--journal", "FILE", "--data-dir", "restored"),
        ("agent", "list"),
        ("serve", "--servers", "FILE"),
        ("serve", "--tls-cert", "FILE", "--tls-key", "FILE"),
        ("serve", "--metrics", "127.0.0.1:0", "--metrics-token-file", "FILE"),
        ("serve", "--embedder", "https://localhost", "--embedder-model", "m", "--embedder-key-file", "FILE"),
    ],
)
def test_a_pipe_or_a_device_is_no_file_to_read(folder: Path, command: tuple[str, ...]) -> None:
    """It may have no end, or wait for somebody to write."""
    os.mkfifo(folder / "development.json")
    for file in ("/dev/zero", "development.json"):
        named = [file if word == "FILE" else word for word in command]
        done = run(folder, *named, TMPDIR=str(folder), MUNIMENT_DATA_DIR=".")

        assert done.returncode == 1
        assert "is not a regular file" in done.stderr
    assert [each.name for each in folder.iterdir()] == ["development.json"]


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "long").touch()
    os.truncate(tmp_path / "long", 2**20 + 1)

    with pytest.raises(UnusableFile, match="long: it has more than 1,048,576 bytes"):
        read_file(tmp_path / "long")


def test_a_backup_without_a_digest_is_read_and_one_sentence_says_so(
    postgres: EmbeddedPostgres, content: bytes, folder: Path
) -> None:
    (folder / "older.dump").write_bytes(without_digest(content))
    with cloned(postgres) as restored:
        done = run(folder, "restore", "older.dump", "--database-url", restored.admin)

    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("! older.dump has no digest: an earlier version of Muniment wrote it")


def test_a_backup_without_a_digest_that_was_cut_off_is_refused_before_anything_is_done(
    content: bytes, folder: Path
) -> None:
    (folder / "older.dump").write_bytes(without_digest(content)[:-2000])

    done = run(folder, "restore", "older.dump", "--data-dir", "restored")

    assert (done.returncode, (folder / "restored").exists()) == (1, False)
    assert "older.dump is no backup, or is damaged or cut off" in done.stderr


def test_a_backup_to_standard_output_has_a_digest_too(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "streamed.dump").open("wb") as target:
        monkeypatch.setattr(dumps, "_STANDARD_OUTPUT", target.fileno())
        dumps.dump(service.database.admin, target)
    streamed = (tmp_path / "streamed.dump").read_bytes()

    assert dumps.require_whole(tmp_path / "streamed.dump")
    require_damaged(tmp_path / "cut.dump", streamed[: -dumps._DIGEST_BYTES])


def test_a_backup_of_a_later_schema_is_refused_before_anything_is_done(
    content: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "later.dump").write_bytes(content)
    later = migrate.newest_version() - 1
    monkeypatch.setattr(migrate, "newest_version", lambda: later)

    done = run(folder, "restore", "later.dump", "--data-dir", "restored")

    assert (done.returncode, (folder / "restored").exists()) == (1, False)
    assert "the backup was made by a later version of Muniment" in done.stderr


def test_a_database_of_a_later_version_is_not_backed_up(database: Database, folder: Path) -> None:
    """That version may have made schemas that this one does not know, and `restore` would refuse the backup."""
    with database.as_owner() as owner:
        owner.execute("INSERT INTO vault.migration (version, name, oldest_server) VALUES (1000, 'later', 1)")

    done = run(folder, "backup", "later.dump", "--database-url", database.admin)

    assert (done.returncode, [*folder.glob("later.dump*")]) == (1, [])
    assert "the schema was made by a later version of Muniment" in done.stderr


@pytest.mark.parametrize(("oldest", "status"), [(1000, 1), (1, 0)])
def test_a_schema_of_a_later_version_is_not_ready_unless_it_says_so(
    database: Database, folder: Path, oldest: int, status: int
) -> None:
    with database.as_owner() as owner:
        owner.execute("INSERT INTO vault.migration (version, name, oldest_server) VALUES (1000, 'later', %s)", [oldest])

    done = run(folder, "migrate", "--database-url", database.admin)

    assert done.returncode == status
    assert ("upgrade this server" in done.stderr) == bool(status)


def test_a_verified_backup_has_an_audit_log_as_it_was_sealed(service: Service) -> None:
    """And the advice keeps what is found."""
    service.session(Level.CONFIDENTIAL).save_memory(key="plan", content="text")
    admin = service.database.admin
    assert [found.verdict for found in backup._check_audit(admin)] == [Verdict.GOOD]
    with service.database.as_owner() as owner:
        owner.execute("DELETE FROM muniment_confidential.audit")

    (found,) = backup._check_audit(admin)

    assert found.verdict is Verdict.BAD
    assert "of acme at CONFIDENTIAL: 1 versions of items have no audit event: keep the backup" in found.text


@pytest.mark.proof
def test_rows_that_the_contents_list_of_a_backup_lacks_are_found(content: bytes, folder: Path) -> None:
    """By the digest, or without one by the audit log. No advice would remove the evidence."""
    offset = offset_of_flag(content, b"muniment_confidential")
    require_damaged(folder / "lacking.dump", flipped(content, offset))
    (folder / "lacking.dump").write_bytes(without_digest(flipped(content, offset)))

    done = run(folder, "verify", "lacking.dump")

    assert done.returncode == 1
    assert "✗ the audit log of acme at CONFIDENTIAL" in done.stdout
    assert "reindex" not in done.stdout


@pytest.mark.parametrize(
    ("output", "hint"),
    [
        (b"pg_dump: error: could not write: No space left on device\n", "make room on the disk"),
        (b"pg_dump: error: COPY failed\npg_dump: detail: invalid page in block 3 of x\n", "the database is damaged"),
        (b'pg_dump: error: COPY failed\npg_dump: detail: could not open file "base/5/1": x\n', "Postgres cannot use"),
        (b"pg_dump: error: permission denied\n", "check that the login is an administrator"),
    ],
)
def test_a_backup_that_fails_says_what_to_do(output: bytes, hint: str) -> None:
    assert dumps._failure("pg_dump", output).hint.startswith(hint)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), OSError(errno.ENOSPC, "full", "muniment.journal")])
def test_a_full_disk_is_reported_as_such(error: OSError) -> None:
    with pytest.raises(Failure) as failed, report_file_errors():
        raise error

    assert failed.value.hint == "make room on the disk, and run the command again"


def test_one_flipped_bit_anywhere_in_a_journal_is_found() -> None:
    for offset in range(len(JOURNAL)):
        for bit in range(8):
            with pytest.raises(ValueError):  # noqa: PT011
                from_bytes(flipped(JOURNAL, offset, bit))
    for changed in (JOURNAL + b"\0", JOURNAL + b"\n", JOURNAL[:-1]):
        with pytest.raises(ValueError):  # noqa: PT011
            from_bytes(changed)
