"""New passwords for the serving roles, while servers serve: no log-in fails, wherever a rotation is interrupted."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import conninfo as libpq

import muniment
from muniment import Classification
from muniment_server.postgres import pool, roles
from muniment_server.postgres.pool import RoleConnection, next_passfile
from muniment_server.runtime import passfile as passfiles
from muniment_server.runtime.passfile import PassfileError, migrate_with_passfile, prepare_rotation
from tests.support.commands import SYSTEM_POSTGRES, Server, line_of, run, run_process
from tests.support.external_postgres import admin_url, migrate

pytestmark = pytest.mark.skipif(not SYSTEM_POSTGRES, reason="NO SYSTEM POSTGRES in /usr/lib/postgresql: not tested")

EMBEDDED = ("--data-dir", ".muniment")


@pytest.fixture
def admin(url: str, passfile: Path) -> Iterator[str]:
    """The administrator's URL of a migrated database. Whatever a test leaves, the passfile of the others is right."""
    yield admin_url(url)
    if next_passfile(passfile).exists() or not can_log_in(url, passfile):
        migrate_with_passfile(admin_url(url), passfile, rotate=True)


@pytest.fixture
def far(folder: Path, passfile: Path) -> Path:
    """The passfile of a server on another machine."""
    return Path(shutil.copy2(passfile, folder / "far"))


def can_log_in(url: str, passfile: Path, connect: Callable[..., Any] = RoleConnection.connect) -> bool:
    """Whether every serving role can, with *passfile*."""
    try:
        for role in roles.SERVING:
            connect(libpq.make_conninfo(url, user=role, passfile=str(passfile))).close()
    except psycopg.OperationalError:
        return False
    return True


def distribute(passfile: Path, far: Path) -> None:
    """Copy the coming passwords to another machine."""
    shutil.copy2(next_passfile(passfile), next_passfile(far))


def passwords_in(passfile: Path) -> set[str]:
    return {line.split(":")[4] for line in passfile.read_text().splitlines()}


class Caller:
    """Calls a server over and over, and at levels that are new to it."""

    def __init__(self, server: Server, key: str, agent: str) -> None:
        self._host = muniment.connect(server.address, host_key=key, retries=False)
        self._host.create_agent(agent)
        self._agent = agent
        self.calls = 0

    def save(self, level: Classification) -> None:
        """Save at *level*, in many calls at once: each needs connections of its own."""
        with ThreadPoolExecutor(8) as threads:
            sessions = list(threads.map(lambda _: self._host.open_session(self._agent, level), range(8)))
            list(threads.map(lambda session: session.save_memory("plan", "text"), sessions * 3))

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Call on another thread until the block ends. Fails if a call fails."""
        ended = threading.Event()

        def call() -> None:
            session = self._host.open_session(self._agent, Classification.PUBLIC)
            while not ended.wait(0.01):
                session.save_memory("again", f"{self.calls}")
                self.calls += 1

        with ThreadPoolExecutor(1) as thread:
            running = thread.submit(call)
            try:
                yield
            finally:
                ended.set()
            running.result()


def test_no_call_fails_while_passwords_are_rotated(
    serving: Callable[..., Server], folder: Path, url: str, passfile: Path, admin: str, far: Path
) -> None:
    """On the machine of the passfile, and on one to which the files are copied. Each step needs new connections."""
    key = line_of(
        run(
            *(folder, "host-key", "create", "--tenant", "rotated", "--ceiling", "restricted", "--quiet"),
            MUNIMENT_DATABASE_URL=admin,
        )
    )
    old = Path(shutil.copy2(passfile, folder / "old"))
    here, there = (
        Caller(serving("--database-url", url, "--passfile", str(file), "--workers", "1"), key, agent)
        for file, agent in ((passfile, "here"), (far, "there"))
    )

    def save(level: Classification) -> None:
        here.save(level)
        there.save(level)

    with here.calling(), there.calling():
        save(Classification.PUBLIC)
        prepared = migrate(folder, url, passfile, "--prepare-rotation")
        distribute(passfile, far)
        save(Classification.INTERNAL)
        rotated = migrate(folder, url, passfile, "--rotate")
        save(Classification.CONFIDENTIAL)
        next_passfile(far).replace(far)
        save(Classification.RESTRICTED)

    assert prepared.stdout.splitlines() == [f"wrote {next_passfile(passfile)}"]
    assert rotated.stdout.splitlines()[-1] == f"wrote {passfile}"
    assert here.calls > 10 < there.calls
    assert far.read_bytes() == passfile.read_bytes()
    assert not next_passfile(passfile).exists()
    assert not can_log_in(url, old)


def test_a_server_starts_with_the_coming_passwords_and_says_what_to_do(
    serving: Callable[..., Server], folder: Path, url: str, passfile: Path, admin: str, far: Path
) -> None:
    """On a machine where the file was not renamed. The doctor says so, too."""
    options = ("--database-url", url, "--passfile", str(far))
    prepare_rotation(admin, passfile)
    distribute(passfile, far)
    prepared = run_process(folder, "doctor", *options)
    migrate_with_passfile(admin, passfile, rotate=True)

    server = serving(*options, "--workers", "1")

    rename = f"the passwords were rotated: rename {far}.next to {far}"
    assert (prepared.returncode, f"{far}.next has the passwords of a coming rotation" in prepared.stdout) == (0, True)
    assert rename in server.errors.read_text()
    rotated = run_process(folder, "doctor", *options)
    assert f"✗ {rename}" in rotated.stdout
    assert "roles can log in" in rotated.stdout


def test_the_doctor_reports_coming_passwords_that_libpq_would_ignore(
    folder: Path, url: str, passfile: Path, admin: str, far: Path
) -> None:
    prepare_rotation(admin, passfile)
    distribute(passfile, far)
    next_passfile(far).chmod(0o644)

    assert f"chmod 600 {far}.next" in run(folder, "doctor", "--database-url", url, "--passfile", str(far)).stdout


class Interrupted(Exception):
    """The machine has stopped."""


def _before(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    def stop(*_: Any, **__: Any) -> None:
        raise Interrupted

    return lambda patch: patch.setattr(passfiles, name, stop)


def _after(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    right = getattr(passfiles, name)

    def stop(*arguments: Any, **named: Any) -> None:
        right(*arguments, **named)
        raise Interrupted

    return lambda patch: patch.setattr(passfiles, name, stop)


@pytest.mark.parametrize(
    "interrupt",
    [
        pytest.param(_before("migrate"), id="before they are set"),
        pytest.param(_after("migrate"), id="once they are set"),
        pytest.param(_before("_rename"), id="before the file is renamed"),
        pytest.param(_after("_rename"), id="once the file is renamed"),
    ],
)
def test_a_rotation_that_is_interrupted_locks_no_role_out_and_can_be_repeated(
    url: str, passfile: Path, admin: str, far: Path, monkeypatch: pytest.MonkeyPatch, interrupt: Any
) -> None:
    prepare_rotation(admin, passfile)
    distribute(passfile, far)
    with monkeypatch.context() as patch:
        interrupt(patch)
        with pytest.raises(Interrupted):
            migrate_with_passfile(admin, passfile, rotate=True)

    assert can_log_in(url, passfile)
    assert can_log_in(url, far)
    if next_passfile(passfile).exists():
        migrate_with_passfile(admin, passfile, rotate=True)
    assert can_log_in(url, passfile, psycopg.connect)
    assert can_log_in(url, far)


@pytest.mark.parametrize("interrupt", [_before("_write"), _after("_write"), _before("_rename"), _after("_rename")])
def test_a_preparation_that_is_interrupted_changes_no_password(
    url: str, passfile: Path, admin: str, monkeypatch: pytest.MonkeyPatch, interrupt: Any
) -> None:
    before = passfile.read_bytes()
    with monkeypatch.context() as patch:
        interrupt(patch)
        with pytest.raises(Interrupted):
            prepare_rotation(admin, passfile)

    assert passfile.read_bytes() == before
    assert can_log_in(url, passfile, psycopg.connect)
    prepare_rotation(admin, passfile)
    migrate_with_passfile(admin, passfile, rotate=True)
    assert can_log_in(url, passfile, psycopg.connect)


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_log_in_that_meets_the_rename_reads_the_passfile_again(
    url: str, passfile: Path, admin: str, far: Path, monkeypatch: pytest.MonkeyPatch, attempt: int
) -> None:
    """The file is renamed after the old password was refused; or just before the next one is read."""
    prepare_rotation(admin, passfile)
    distribute(passfile, far)
    migrate_with_passfile(admin, passfile, rotate=True)
    attempts = []

    def connect(cls: Any, /, conninfo: str = "", **arguments: Any) -> Any:
        attempts.append(arguments)
        if len(attempts) == 2 == attempt:
            next_passfile(far).replace(far)
        try:
            return right(cls, conninfo, **arguments)
        finally:
            if len(attempts) == 1 == attempt:
                next_passfile(far).replace(far)

    right = psycopg.Connection.connect.__func__  # type: ignore[attr-defined]  # the function of the class method
    monkeypatch.setattr(psycopg.Connection, "connect", classmethod(connect))
    RoleConnection.connect(libpq.make_conninfo(url, user=roles.CONTROL, passfile=str(far))).close()

    assert len(attempts) == attempt + 1


def test_only_a_wrong_password_is_tried_again(
    url: str, passfile: Path, admin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a role that may not log in, or a database that is not there."""
    prepare_rotation(admin, passfile)
    attempts = []

    def connect(cls: Any, /, conninfo: str = "", **arguments: Any) -> Any:
        attempts.append(conninfo)
        return right(cls, conninfo, **arguments)

    right = psycopg.Connection.connect.__func__  # type: ignore[attr-defined]  # the function of the class method
    monkeypatch.setattr(psycopg.Connection, "connect", classmethod(connect))
    absent = url.replace("/kept", "/absent")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        RoleConnection.connect(libpq.make_conninfo(absent, user=roles.CONTROL, passfile=str(passfile)))

    assert len(attempts) == 1


@pytest.mark.proof
def test_without_the_second_attempt_a_server_would_be_locked_out(
    url: str, passfile: Path, admin: str, far: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_rotation(admin, passfile)
    distribute(passfile, far)
    migrate_with_passfile(admin, passfile, rotate=True)

    assert can_log_in(url, far)
    monkeypatch.setattr(pool, "_NEXT", ".absent")
    assert not can_log_in(url, far)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_the_passfile_keeps_its_owner_and_mode(url: str, passfile: Path, admin: str, mode: int) -> None:
    if os.geteuid() == 0:
        shutil.chown(passfile, "postgres", "postgres")
    passfile.chmod(mode)
    before = passfile.stat()

    def rights(file: Path) -> tuple[int, int, int]:
        found = file.stat()
        return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)

    prepare_rotation(admin, passfile)
    assert rights(next_passfile(passfile)) == (before.st_uid, before.st_gid, mode)
    next_passfile(passfile).chmod(0o640)
    migrate_with_passfile(admin, passfile, rotate=True)
    assert rights(passfile) == (before.st_uid, before.st_gid, mode)
    passfile.chmod(0o600)


def test_what_is_prepared_stays_until_it_is_used(folder: Path, url: str, passfile: Path, admin: str) -> None:
    """Servers may have copies."""
    assert prepare_rotation(admin, passfile) == [f"wrote {next_passfile(passfile)}"]
    prepared = next_passfile(passfile).read_bytes()

    again = migrate(folder, url, passfile, "--prepare-rotation")

    assert (again.returncode, again.stdout) == (0, "")
    assert "Nothing to do" in again.stderr
    assert next_passfile(passfile).read_bytes() == prepared
    assert can_log_in(url, passfile, psycopg.connect)
    migrate_with_passfile(admin, passfile)
    assert next_passfile(passfile).read_bytes() == prepared
    migrate_with_passfile(admin, passfile, rotate=True)
    assert passfile.read_bytes() == prepared


def test_coming_passwords_of_a_role_that_came_later_are_added(passfile: Path, admin: str) -> None:
    prepare_rotation(admin, passfile)
    complete = next_passfile(passfile)
    lines = complete.read_text().splitlines()
    complete.write_text("\n".join(lines[1:]) + "\n")

    assert prepare_rotation(admin, passfile) == [f"wrote {complete}"]

    completed = complete.read_text().splitlines()
    assert completed[1:] == lines[1:]
    assert completed[0].split(":")[:4] == lines[0].split(":")[:4]


def test_the_passwords_of_a_line_for_every_role_are_rotated_too(
    folder: Path, url: str, passfile: Path, admin: str
) -> None:
    """The first line that matches counts. What it is for stays."""
    passfile.write_text("*:*:*:*:other\n" + passfile.read_text())

    migrate_with_passfile(admin, passfile, rotate=True)

    assert can_log_in(url, passfile, psycopg.connect)
    assert passfile.read_text().splitlines()[-1] == "*:*:*:*:other"
    passfile.write_text(passfile.read_text().replace("*:*:*:*:other\n", ""))


def test_two_rotations_at_once_leave_a_passfile_that_is_right(url: str, passfile: Path, admin: str) -> None:
    for _ in range(3):
        with ThreadPoolExecutor(4) as threads:
            act = [
                lambda: migrate_with_passfile(admin, passfile, rotate=True),
                lambda: prepare_rotation(admin, passfile),
            ]
            for done in [threads.submit(each) for each in act * 2]:
                done.result()

        assert can_log_in(url, passfile, psycopg.connect)
        next_passfile(passfile).unlink(missing_ok=True)


def test_a_passfile_may_be_a_symbolic_link(folder: Path, url: str, passfile: Path, admin: str, far: Path) -> None:
    """It stays one. The coming passwords are beside the file that it names, where servers look for them."""
    here, there = folder / "here", folder / "there"
    here.symlink_to(passfile)
    there.symlink_to(far)

    assert prepare_rotation(admin, here) == [f"wrote {passfile}.next"]
    distribute(passfile, far)
    assert migrate_with_passfile(admin, here, rotate=True)[-1] == f"wrote {passfile}"

    assert here.is_symlink()
    assert can_log_in(url, here, psycopg.connect)
    assert can_log_in(url, there)
    assert sorted(folder.iterdir()) == [far, folder / "far.next", here, there]


def test_a_refused_password_is_logged_once(
    url: str, passfile: Path, admin: str, far: Path, caplog: pytest.LogCaptureFixture
) -> None:
    migrate_with_passfile(admin, passfile, rotate=True)
    for _ in range(2):
        for role in (roles.CONTROL, roles.ERASER):
            with pytest.raises(psycopg.OperationalError):
                RoleConnection.connect(libpq.make_conninfo(url, user=role, passfile=str(far)))

    assert [record.getMessage() for record in caplog.records] == [
        f"the database refused the password of {role} in {far}: use the passfile that `muniment migrate` wrote last"
        for role in (roles.CONTROL, roles.ERASER)
    ]


def test_a_rotation_is_prepared_for_the_passfile_of_the_servers(folder: Path, admin: str) -> None:
    with pytest.raises(PassfileError, match="name the server's passfile"):
        prepare_rotation(admin, folder / "elsewhere")

    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--prepare-rotation", *EMBEDDED), "--prepare-rotation requires --database-url and --passfile"),
        (("--rotate", *EMBEDDED), "--rotate requires --database-url and --passfile"),
        (("--rotate", "--prepare-rotation", *EMBEDDED), "exclude each other"),
    ],
)
def test_options_that_make_no_sense_are_refused(folder: Path, options: tuple[str, ...], says: str) -> None:
    assert says in run(folder, "migrate", *options).stderr
    assert list(folder.iterdir()) == []
