"""Which commands refuse a database server that was overtaken by a failover: all that use the database."""

from __future__ import annotations

import json

import click
import pytest

from tests.support.commands import run, run_process
from tests.support.options import COMMANDS, option_names

TENANT = ("--tenant", "development")
ANY_ID = "5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77"
REFUSED = {
    "migrate": (),
    "distribute": (),
    "backup": ("late.dump",),
    "restore": ("early.dump",),
    "host-key create": (*TENANT, "--ceiling", "public"),
    "host-key list": (),
    "host-key revoke": (ANY_ID, "--keep-sessions"),
    "tenant freeze": ("development",),
    "tenant thaw": ("development",),
    "tenant close-sessions": ("development",),
    "tenant limits": ("development",),
    "journal": ("late.journal",),
    "history": (*TENANT, "--agent", "alice", "plan"),
    "audit list": TENANT,
    "audit export": (*TENANT, "--ceiling", "public"),
    "identity list": (),
    "identity remove": (ANY_ID,),
    "identity add": (
        *TENANT,
        "--ceiling",
        "public",
        "--issuer",
        "https://a",
        "--audience",
        "a",
        "--subject",
        "s",
        "--keys",
        "https://a/k",
    ),
    "agent endorse": ("alice", "-", *TENANT, "--reason", "case 12"),
    "hold add": ("alice", *TENANT, "--reason", "case 12"),
    "hold remove": ("alice", *TENANT),
    "hold list": (),
    "audit checkpoint": TENANT,
    "audit verify": TENANT,
    "audit purge": (*TENANT, "--older-than", "400d", "--yes"),
    "reindex": (),
    "purge": ("--older-than", "90d", "--yes"),
}
"""The commands that refuse it, with arguments."""
OTHERS = {"serve", "doctor", "database adopt"}
"""The server has tests of its own, the doctor reports the refusal, and `adopt` lifts it."""


@pytest.fixture
def overtaken(dev, tmp_path):
    """The options that name the database of the server in development, as if another server had overtaken it."""
    seen = json.loads((dev.folder / ".muniment" / "state" / "epoch.json").read_text())
    (tmp_path / "epoch.json").write_text(json.dumps(seen | {"timeline": seen["timeline"] + 1}))
    return ("--data-dir", ".muniment", "--state-dir", str(tmp_path))


def test_every_command_that_takes_a_database_is_known_here():
    taking = {
        name.removeprefix("muniment ")
        for name, command in COMMANDS.items()
        if not isinstance(command, click.Group) and "--database-url" in option_names(command)
    }

    assert taking == REFUSED.keys() | OTHERS


@pytest.mark.parametrize("command", REFUSED)
def test_a_command_refuses_a_server_that_was_overtaken(dev, overtaken, command):
    if command == "restore":  # it reads the backup first
        run(dev.folder, "backup", "early.dump", "--data-dir", ".muniment")
    done = run(dev.folder, *command.split(), *REFUSED[command], *overtaken)

    assert done.returncode == 1
    assert done.stdout == ""
    assert "the database server is refused: it is on timeline 1, and timeline 2 was seen" in done.stderr


def test_a_refused_command_changes_nothing(dev, overtaken):
    run(dev.folder, "host-key", "create", "--tenant", "late", "--ceiling", "public", *overtaken)

    assert "late" not in run(dev.folder, "host-key", "list", "--data-dir", ".muniment").stdout


def test_the_doctor_reports_it(dev, overtaken):
    done = run_process(dev.folder, "doctor", *overtaken)

    assert done.returncode == 1
    assert "✗ the database server is refused: it is on timeline 1, and timeline 2 was seen" in done.stdout


def test_the_doctor_says_that_nothing_was_seen_yet(dev, tmp_path):
    done = run_process(dev.folder, "doctor", "--data-dir", ".muniment", "--state-dir", str(tmp_path))

    assert f"! {tmp_path} has no timeline, so an old primary would be accepted" in done.stdout
