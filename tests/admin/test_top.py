"""`muniment top`: what it shows of a running server, and that it leaves the terminal as it was."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from rich.console import Console

import muniment
from muniment_server.admin import top_view
from muniment_server.admin.readings import Change, Reading
from tests.support.commands import COMMAND, environment_in, line_of, run, run_process

_HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202e[/red][bold]\\n\r\nx"
_SECONDS = 60
INTERNAL = muniment.Classification.INTERNAL


@pytest.fixture
def called(dev):
    """Call the server in development all the time: more often than processes could be started."""
    ended = threading.Event()
    key = json.loads((dev.folder / ".muniment" / "development.json").read_text())["host_key"]
    with muniment.connect(dev.address, host_key=key) as host, host.open_session("alice", INTERNAL) as session:

        def call() -> None:
            while not ended.wait(0.05):
                with suppress(muniment.MemoryNotFound):
                    session.get_memory("none")

        thread = threading.Thread(target=call)
        thread.start()
        yield
        ended.set()
        thread.join()


class Screen:
    """`muniment top` on a terminal of 80 columns and 24 lines."""

    def __init__(self, folder, *arguments):
        self.master, self._end = pty.openpty()
        fcntl.ioctl(self._end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self._end)
        self.shown = ""
        environment = environment_in(folder, TERM="xterm-256color")
        self.process = subprocess.Popen(
            [*COMMAND, "top", *arguments],
            cwd=folder,
            env=environment,
            stdin=self._end,
            stdout=self._end,
            stderr=self._end,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def wait_for(self, words: str) -> None:
        """Read until it shows *words*."""
        end = time.monotonic() + _SECONDS
        while words not in self.shown:
            assert time.monotonic() < end, self.shown
            self._read()

    def ends_well(self) -> bool:
        """Whether it ends, with the terminal as before."""
        end = time.monotonic() + _SECONDS
        while self.process.poll() is None and time.monotonic() < end:
            self._read()
        self._read()
        return (
            self.process.poll() == 0
            and self.shown.rstrip().endswith("\x1b[?1049l")
            and termios.tcgetattr(self._end) == self.before
        )

    def close(self) -> None:
        """End it, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self._end)

    def _read(self) -> None:
        if select.select([self.master], [], [], 0.1)[0]:
            self.shown += os.read(self.master, 65536).decode(errors="replace")


@pytest.fixture
def screen(dev):
    """Start `muniment top` in the folder of the server in development."""
    made: list[Screen] = []

    def start(*arguments: str, folder=dev.folder) -> Screen:
        made.append(Screen(folder, *arguments))
        return made[-1]

    yield start
    for each in made:
        each.close()


def rows_of(text: str, first: str) -> list[list[str]]:
    """The cells of the lines that begin with *first*."""
    return [line.split() for line in text.splitlines() if line.startswith(first)]


def test_once_shows_what_is_called_and_how_long_it_takes(dev, called):
    shown = run_process(dev.folder, "top", "--once", "--interval", "5")

    assert (shown.returncode, shown.stderr) == (0, "")
    assert "\x1b" not in shown.stdout
    ((_, rate, total, median, slowest),) = rows_of(shown.stdout, "GetMemory")
    assert float(rate) > 0
    assert int(total) >= 1
    assert 0 < float(median) <= float(slowest)
    assert float(rows_of(shown.stdout, "MEMORY_NOT_FOUND")[0][1]) > 0
    assert "development" in shown.stdout, "the tenant that calls, by name"
    assert re.search(r"tenant +/min", shown.stdout), "the one rate that is not that of the interval"
    for words in ("ready", "gate open", "database up", "disk ", "calls ", "hosts ", "PUBLIC ", "RESTRICTED "):
        assert words in shown.stdout


def test_without_a_terminal_it_shows_one_interval(dev):
    done = run_process(dev.folder, "top", "--interval", "0.1")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("database up") == 1


@pytest.mark.parametrize("key", [b"q", b"Q", b"\x03"])
def test_a_key_ends_it_and_the_terminal_is_as_before(screen, key):
    top = screen("--interval", "0.5")
    top.wait_for("q ends")
    os.write(top.master, b"x")
    assert top.process.poll() is None
    os.write(top.master, key)

    assert top.ends_well()
    assert "\x1b[?1049h" in top.shown, "it used a screen of its own"


def test_a_signal_leaves_the_terminal_as_before(screen):
    top = screen()
    top.wait_for("q ends")
    top.process.send_signal(signal.SIGTERM)
    top.ends_well()

    assert top.process.returncode == 128 + signal.SIGTERM
    assert top.shown.rstrip().endswith("\x1b[?1049l")
    assert termios.tcgetattr(top._end) == top.before


def test_it_waits_for_a_server_that_stops_meanwhile(serving, folder, data_dir, screen):
    server = serving("--dev", "--data-dir", ".muniment", "--workers", "1")
    server.read_to_the_last_line()
    top = screen("--interval", "0.2", folder=folder)
    top.wait_for("database up")
    server.stop()
    top.wait_for("no server serves metrics")
    top.shown = ""
    again = serving("--dev", "--data-dir", ".muniment", "--workers", "1")
    again.read_to_the_last_line()
    top.wait_for("database up")
    os.write(top.master, b"q")

    assert top.ends_well()


def test_without_a_server_it_says_so_and_ends(folder, screen):
    top = screen("--metrics", "unix:none.sock", folder=folder)
    top.wait_for("no server serves metrics")

    assert top.process.wait(_SECONDS) == 1
    assert "\x1b[?1049h" not in top.shown


@pytest.mark.usefixtures("data_dir")
def test_the_name_of_a_tenant_does_not_steer_the_terminal(serving, folder):
    """Tenants of any name are created by operators for their customers.

    The server is new, and this is the first that reads its metrics: they name tenants once a minute.
    """
    server = serving("--dev", "--data-dir", ".muniment")
    key = line_of(
        run(folder, "host-key", "create", "--tenant", _HOSTILE, "--ceiling", "public", "--quiet",
            "--data-dir", ".muniment")
    )  # fmt: skip
    reached = {"MUNIMENT_ADDRESS": server.address, "MUNIMENT_HOST_KEY": key}
    for _ in range(30):
        assert run(folder, "agent", "list", **reached).returncode == 0

    shown = run(folder, "top", "--once", "--interval", "0.1").stdout

    assert "\\x1b]0;owned" in shown, "the tenant is among those with most calls"
    assert set("\x1b\x07\r\u202e") & set(shown) == set()


def view(labels: str) -> tuple[str, str]:
    """What a terminal and a file get, for a server whose metrics have these labels in all places."""
    text = f'muniment_database_up{{role="muniment_control",sqlstate="{labels}"}} 0\n' + "".join(
        f'{name}{{{label}="{labels}"}} 1\n'
        for name, label in (
            ("grpc_server_handled_total", "grpc_method"),
            ("muniment_calls_refused_total", "reason"),
            ("muniment_calls_running", "pool"),
            ("muniment_sessions", "level"),
            ("muniment_tenant_calls_per_second", "name"),
        )
    )
    change = Change(Reading.parse(text, 0), Reading.parse(text, 1))
    now = datetime(2026, 11, 23, tzinfo=UTC)
    screen, page = (
        Console(file=io.StringIO(), force_terminal=True, width=80, height=24, color_system=None, highlight=False)
        for _ in range(2)
    )
    screen.print(top_view.screen(change, "unix:x", now, "gone"))
    screen.print(top_view.screen(change, "unix:x", now))
    page.print(top_view.page(change, "unix:x", now))
    return tuple(console.file.getvalue() for console in (screen, page))  # type: ignore[attr-defined]


def page_of(*metrics: str) -> str:
    """What `top --once` prints for these metrics beside those that every server has, in one line."""
    reading = Reading.parse("\n".join(("muniment_database_up 1", *metrics, "")), 0)
    console = Console(file=io.StringIO(), width=120, color_system=None, highlight=False)
    console.print(top_view.page(Change(reading, reading), "unix:x", datetime(2026, 11, 23, tzinfo=UTC)))
    return " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


_REMOTE = 'muniment_remote_embedder{address="127.0.0.1:9",ceiling="INTERNAL"} 1'


def test_the_queue_of_a_model_at_an_address_is_shown():
    queues = [f'muniment_remote_embedding_queue{{level="{level}"}} 700' for level in ("PUBLIC", "INTERNAL")]

    assert "1,400 chunks wait for 127.0.0.1:9" in page_of(_REMOTE, *queues)


def test_the_queue_of_a_model_that_never_answered_is_not_shown_as_empty():
    failures = 'muniment_remote_embedder_failures_total{address="127.0.0.1:9",level="PUBLIC",what="calibration"} 3'
    shown = page_of(_REMOTE, failures)

    assert "127.0.0.1:9 has not answered yet (failures: 3): its queue is not known" in shown
    assert "wait for" not in shown


def test_no_label_steers_the_terminal_or_is_taken_for_markup():
    escaped = _HOSTILE.replace("\\", "\\\\").replace("\n", "\\n")
    for shown in view(escaped):
        without_styles = re.sub(r"\x1b\[[0-9;]*m", "", shown)
        assert set("\x1b\x07\r\u202e") & set(without_styles) == set()
        assert "\\x1b]0;owned" in without_styles
    assert "[/red]" in view("[/red]")[0]


def test_it_fits_on_a_small_terminal():
    """Eighty columns and twenty-four lines: numbers and levels are whole."""
    shown = view("CONFIDENTIAL")[0].split("\n")

    assert all(len(line) <= 80 for line in shown)
    assert len(shown) == 2 * 24 + 1
    assert [line for line in shown if line.count("CONFIDENTIAL ") == 2], "of a level, and of a tenant"
