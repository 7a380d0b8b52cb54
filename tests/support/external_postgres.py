"""A Postgres that is not ours: it wants passwords of everybody, over TCP."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.commands import SYSTEM_POSTGRES, Done, run_process, wait_until
from tests.support.ports import free_port

PASSWORD = "correct-horse"


@pytest.fixture(scope="package")
def other_postgres(root_folder: Path) -> Iterator[int]:
    """The port of a Postgres that wants passwords of everybody."""
    home = root_folder / "other"
    home.mkdir(mode=0o711)
    rights: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    if rights:
        subprocess.run(["chown", "postgres", home], check=True)
    password = home / "password"
    password.write_text(PASSWORD)
    bindir, data, port = SYSTEM_POSTGRES[-1], home / "data", free_port()
    init = [
        "--auth=scram-sha-256",
        f"--pwfile={password}",
        "--username=postgres",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
    ]
    subprocess.run([bindir / "initdb", *init, data], check=True, capture_output=True, cwd="/", **rights)
    settings = ["listen_addresses=127.0.0.1", f"port={port}", "unix_socket_directories="]
    flags = [word for setting in settings for word in ("-c", setting)]
    with (home / "log").open("wb") as log:
        server = subprocess.Popen([bindir / "postgres", "-D", data, *flags], stderr=log, cwd="/", **rights)
        try:
            wait_until(lambda: "ready to accept" in (home / "log").read_text(), "no Postgres")
            yield port
        finally:
            server.send_signal(signal.SIGINT)  # fast: it does not wait for its clients
            server.wait(20)


@pytest.fixture(scope="package")
def url(other_postgres: int) -> str:
    """The URL of an empty database, without a login."""
    with psycopg.connect(admin_url(f"postgresql://127.0.0.1:{other_postgres}/postgres"), autocommit=True) as admin:
        admin.execute("CREATE DATABASE kept")
    return f"postgresql://127.0.0.1:{other_postgres}/kept"


@pytest.fixture(scope="package")
def passfile(root_folder: Path, url: str) -> Path:
    """The passwords of the serving roles, made by the first migration."""
    made = root_folder / "passfile"
    done = migrate(root_folder, url, made)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"wrote {made}"
    return made


def admin_url(url: str) -> str:
    """*url* with the administrator's login."""
    return url.replace("postgresql://", f"postgresql://postgres:{PASSWORD}@")


def migrate(folder: Path, url: str, passfile: Path, *options: str) -> Done:
    """Run `muniment migrate` as the administrator."""
    environment = {"MUNIMENT_DATABASE_URL": admin_url(url)}
    return run_process(folder, "migrate", "--passfile", str(passfile), *options, **environment)
