"""Which connect_operator-system user Postgres runs as."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from muniment_server.embedded_postgres import UnusableDirectory, conninfo_of_running
from tests.support.embedded import SYSTEM_15, as_root, query

pytestmark = pytest.mark.proof

UNPRIVILEGED = 65534
UNKNOWN = 54321


def owner_of(pid: int) -> str:
    return pwd.getpwuid(Path(f"/proc/{pid}").stat().st_uid).pw_name


@as_root
def test_root_drops_to_an_account_without_rights(embedded):
    with embedded() as server:
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{server.pid}/status").read_text().splitlines())
        account = owner_of(server.pid)

    assert account in {"postgres", "nobody"}
    assert status["Groups"].strip() == ""
    assert status["CapEff"] == "0000000000000000"


@as_root
def test_root_stays_with_the_account_that_owns_the_data(embedded, directory):
    with embedded():
        pass
    for path in [directory / "data", *(directory / "data").rglob("*"), directory / "run"]:
        os.chown(path, UNPRIVILEGED, UNPRIVILEGED, follow_symlinks=False)

    with embedded() as server:
        assert owner_of(server.pid) == "nobody"
        assert query(server.conninfo(user="postgres"), "SELECT 1") == 1


@as_root
@pytest.mark.parametrize("bindir", [None, pytest.param(SYSTEM_15, id="system-15")])
def test_an_ordinary_user_runs_it_as_itself(supervisor, parent, bindir):
    if bindir is not None and not bindir.exists():
        pytest.skip(f"no system Postgres 15 in {bindir}")
    os.chown(parent, UNPRIVILEGED, UNPRIVILEGED)
    options = {} if bindir is None else {"bindir": str(bindir)}

    process = supervisor(parent / "pg", uid=UNPRIVILEGED, **options)

    assert process.report.get("greeting") == "muniment é", process.report
    assert owner_of(process.report["pid"]) == "nobody"
    assert oct((parent / "pg").stat().st_mode & 0o777) == "0o700"
    assert process.finish() == 0


@as_root
def test_an_ordinary_user_is_taken_over_from_like_root(supervisor, parent):
    os.chown(parent, UNPRIVILEGED, UNPRIVILEGED)
    first = supervisor(parent / "pg", uid=UNPRIVILEGED)
    first.kill()

    second = supervisor(parent / "pg", uid=UNPRIVILEGED)

    assert second.report.get("greeting") == "muniment é", second.report


@as_root
def test_a_user_without_a_passwd_entry_hears_what_is_missing(supervisor, parent):
    os.chown(parent, UNKNOWN, UNKNOWN)

    process = supervisor(parent / "pg", uid=UNKNOWN)

    assert process.report["error"] == "UnusableAccount"
    assert f"uid {UNKNOWN} has no passwd entry" in process.report["message"]


@as_root
def test_an_ordinary_user_in_anothers_directory_is_refused(supervisor, embedded, directory):
    with embedded():
        pass

    process = supervisor(directory, uid=UNPRIVILEGED)

    assert process.report["error"] == "UnusableDirectory"
    assert "run as its owner" in process.report["message"]


@as_root
def test_a_command_of_a_user_who_may_not_look_is_refused(embedded, directory):
    """Not that nothing runs."""
    with embedded():
        os.seteuid(4321)
        try:
            with pytest.raises(UnusableDirectory, match="run as the server's user"):
                conninfo_of_running(directory, user="postgres")
        finally:
            os.seteuid(0)
