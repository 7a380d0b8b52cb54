"""Whose directory it is, and where the socket goes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from muniment_server.embedded_postgres import DirectoryInUse, UnusableDirectory, conninfo_of_running
from muniment_server.embedded_postgres.account import account_for
from muniment_server.embedded_postgres.directory import socket_directory
from tests.support.embedded import as_root, query


def test_a_second_server_in_this_process_is_refused(embedded, directory):
    with embedded(), pytest.raises(DirectoryInUse, match=f"{directory} is in use by process {os.getpid()}"):
        embedded().start()


def test_a_second_server_is_refused_and_hears_by_whom(embedded, supervisor, directory):
    process = supervisor(directory)

    with pytest.raises(DirectoryInUse, match=f"process {process.process.pid}: if that is a server, stop it first"):
        embedded().start()

    assert query(conninfo_of_running(directory, user="postgres") or "", "SELECT 1") == 1


def test_a_stop_gives_the_directory_up(embedded):
    with embedded():
        pass
    with embedded() as second:
        assert second.running


def test_only_data_and_run_change_hands(embedded, parent, directory):
    """And nothing is opened but what we made."""
    above = rights_of(parent)
    with embedded(fresh=True):
        private = [(directory / name).stat() for name in ("data", "run")]
        ours = [directory, *(path for path in directory.iterdir() if path.name not in {"data", "run"})]

        assert [oct(status.st_mode & 0o777) for status in private] == ["0o700", "0o700"]
        assert {path.stat().st_uid for path in ours} == {os.geteuid()}
    assert rights_of(parent) == above


@as_root
def test_an_empty_directory_of_roots_is_let_through_and_no_more(embedded, directory):
    directory.mkdir(mode=0o700)

    with embedded():
        assert oct(directory.stat().st_mode & 0o777) == "0o711"


@as_root
def test_a_directory_that_roots_account_cannot_reach_is_named_and_left_alone(embedded, parent):
    closed = parent / "closed"
    closed.mkdir(mode=0o700)

    with pytest.raises(UnusableDirectory, match=rf"may not enter {closed}: choose .*\(chmod o\+x {closed}\)"):
        embedded(closed / "pg", fresh=True).start()

    assert oct(closed.stat().st_mode & 0o777) == "0o700"


def test_a_file_in_the_way_is_named(embedded, directory):
    directory.write_text("in the way")

    with pytest.raises(UnusableDirectory, match=f"cannot use {directory}"):
        embedded().start()


@pytest.mark.parametrize("name", ["long" * 40, "a, comma"], ids=["long", "comma"])
def test_a_path_that_cannot_hold_a_socket_just_works(embedded, parent, name):
    with embedded(parent / name) as server:
        conninfo = conninfo_of_running(parent / name, user="postgres")
        sockets = short_directory(parent / name)

        assert conninfo is not None
        assert conninfo == server.conninfo(user="postgres")
        assert query(conninfo, "SELECT current_database()") == "muniment"
        assert oct(sockets.stat().st_mode & 0o777) == "0o700"
    assert not sockets.exists()


@pytest.mark.parametrize("name", ["it's", 'a "quoted" name', "back\\slash", "ünï cödé"])
def test_a_path_with_odd_characters_just_works(embedded, parent, name):
    with embedded(parent / name) as server:
        assert query(server.conninfo(user="postgres"), "SELECT 1") == 1


@as_root
@pytest.mark.parametrize("trap", ["directory", "link"])
def test_a_socket_directory_that_somebody_else_made_is_refused(embedded, parent, trap):
    target, mine = parent / ("long" * 40), parent / "mine"
    sockets = short_directory(target)
    mine.mkdir(mode=0o755)
    if trap == "directory":
        sockets.mkdir()
    else:
        sockets.symlink_to(mine)
    os.chown(sockets, 4321, 4321, follow_symlinks=False)
    try:
        with pytest.raises(UnusableDirectory, match="belongs to another user"):
            embedded(target).start()
        assert oct(mine.stat().st_mode & 0o777) == "0o755"
    finally:
        sockets.unlink() if trap == "link" else sockets.rmdir()


def test_a_temporary_directory_that_is_too_long_as_well_is_named(embedded, parent, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(parent / ("tmp" * 40)))

    with pytest.raises(UnusableDirectory, match="107 bytes"):
        embedded(parent / ("long" * 40)).start()


def rights_of(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_mode, status.st_uid, status.st_gid


def short_directory(directory: Path) -> Path:
    """Where the socket of *directory* goes when its own path cannot hold it."""
    sockets = socket_directory(directory, account_for(directory / "data"))
    assert sockets.parent == Path(tempfile.gettempdir())
    return sockets
