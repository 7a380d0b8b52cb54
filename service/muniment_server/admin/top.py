"""`muniment top`."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import click
from rich.console import Console
from rich.live import Live

from muniment.cli.failures import Failure
from muniment_server.admin import top_view
from muniment_server.admin.metrics_reader import MetricsReader, with_metrics
from muniment_server.admin.readings import Change

_END = frozenset(b"qQ\x03")
"""q and Ctrl-C."""
_WIDTH_OF_A_FILE = 120


@click.command
@with_metrics
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1, max=3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to read the metrics.",
)
@click.option("--once", is_flag=True, help="Show what happens in one interval, and exit.")
def top(metrics: MetricsReader, interval: float, once: bool) -> None:
    """Watch a running server, from its metrics. q or Ctrl-C ends.

    Shows the calls a second of each interval and how long they take, refusals and queues; and the tenants with most
    calls in the last minute. If the output is no terminal, it shows one interval, as with --once. Sessions are counted
    every half minute.

    \b
    Examples:
      muniment top
      muniment top --metrics unix:/run/muniment/metrics --interval 10
      muniment top --once > now.txt
    """
    if once or not (sys.stdin.isatty() and sys.stdout.isatty()):
        _show_once(metrics, interval)
        return
    with contextlib.suppress(KeyboardInterrupt):
        _watch(metrics, interval)


def _show_once(metrics: MetricsReader, interval: float) -> None:
    before = metrics.read()
    time.sleep(interval)
    console = Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=_WIDTH_OF_A_FILE)
    console.print(top_view.page(Change(before, metrics.read()), metrics.address, _now()))


def _watch(metrics: MetricsReader, interval: float) -> None:
    """Until a key ends it. A server that stops meanwhile may come back: the last view stays, and says so."""
    before = after = metrics.read()
    problem = ""
    with _keys(), Live(screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        while True:
            live.update(top_view.screen(Change(before, after), metrics.address, _now(), problem), refresh=True)
            if _is_ended(interval if after is not before or problem else min(interval, 1.0)):
                return
            try:
                before, after, problem = after, metrics.read(), ""
            except Failure as failure:
                problem = failure.message


def _is_ended(seconds: float) -> bool:
    """Whether a key that ends it is pressed within this time."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([sys.stdin], [], [], left)[0]:
            pressed = os.read(sys.stdin.fileno(), 64)
            if not _END.isdisjoint(pressed) or not pressed:  # nothing is read once the terminal is gone
                return True
    return False


@contextmanager
def _keys() -> Iterator[None]:
    """Read keys unbuffered and without echo. Restores the terminal afterwards, even if SIGTERM ends the process.

    No key sends a signal, neither Ctrl-C nor Ctrl-Z: KeyboardInterrupt could be lost, or skip the restoring.
    """
    before = termios.tcgetattr(sys.stdin)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        tty.setcbreak(sys.stdin)
        without_signals = termios.tcgetattr(sys.stdin)
        without_signals[tty.LFLAG] &= ~termios.ISIG
        termios.tcsetattr(sys.stdin, termios.TCSANOW, without_signals)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _now() -> datetime:
    return datetime.now(UTC)
