"""A signal that comes while its handler's own thread waits for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from muniment_server.process.stop_signal import StopSignal
from muniment_server.runtime import child
from muniment_server.runtime.configuration import child_environment

_ROUNDS = """
import random, signal
from {module} import {name}

for _ in range(5_000):
    ending = {name}()
    signal.signal(signal.SIGALRM, lambda *_: ending.set())
    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00001, 0.0005))
    while not ending.wait(0.05):
        pass
"""


# Not shorter: in Python 3.11, a SimpleQueue whose timeout has passed before it begins to wait waits for ever.


def hangs(module: str, name: str, *, seconds: float) -> bool:
    """Whether a wait that is interrupted by the handler that ends it does not end."""
    try:
        script = _ROUNDS.format(module=module, name=name)
        subprocess.run([sys.executable, "-c", script], check=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def test_a_signal_that_interrupts_the_wait_ends_it():
    assert not hangs(StopSignal.__module__, StopSignal.__name__, seconds=60)  # takes 3


@pytest.mark.proof
def test_a_threading_event_would_wait_for_ever():
    """The test above can fail. Under load, 5,000 signals may all come at harmless moments: then it tries again."""
    assert any(hangs("threading", "Event", seconds=10) for _ in range(10))


def test_a_wait_may_time_out_and_a_signal_stays_set():
    ending = StopSignal()
    before = (ending.is_set(), ending.wait(0.01))
    ending.set()
    ending.set()

    assert before == (False, False)
    assert [ending.wait(60), ending.is_set(), ending.wait(60)] == [True, True, True]


_TERMINAL = """
import signal
from muniment_server.runtime.replacement import Replacements
from muniment_server.process.stop_signal import StopSignal
from muniment_server.runtime.supervisor import handle_signals

stop, replacements = StopSignal(), Replacements()
handle_signals(stop, replacements)
print("started", flush=True)
stopped = stop.wait(10)
if replacements.takes_request():
    print("reloads", flush=True)
print("stops" if stopped else "goes on", flush=True)
"""


def test_the_terminal_that_is_closed_stops_the_server():
    """As it did before SIGHUP meant a reload."""
    ours, theirs = os.openpty()
    with _started(stdin=theirs) as process:
        os.close(theirs)
        os.close(ours)
        process.send_signal(signal.SIGHUP)

        assert process.communicate()[0].split() == ["stops"]


def test_a_hangup_with_the_terminal_open_reloads():
    ours, theirs = os.openpty()
    with _started(stdin=theirs) as process:
        process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)

        assert process.communicate()[0].split() == ["reloads", "stops"]
    os.close(theirs)
    os.close(ours)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_that_ends_programs_stops_the_server(number):
    """Also if it was ignored before, as in what a script starts in the background."""
    with _started(stdin=subprocess.DEVNULL, ignores=number) as process:
        process.send_signal(number)

        assert process.communicate()[0].split() == ["stops"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_to_all_processes_of_a_server_ends_no_child(number):
    """Ctrl-C in a terminal, or an init system that reloads a service. Only the supervisor acts on it."""
    worker = child._start_process("muniment_server.runtime.worker", child_environment())
    worker.send_signal(number)
    worker.communicate("")

    assert worker.returncode == 0


def _started(stdin: int, ignores: int | None = None) -> subprocess.Popen[str]:
    before = None if ignores is None else signal.signal(ignores, signal.SIG_IGN)
    process = subprocess.Popen([sys.executable, "-c", _TERMINAL], stdin=stdin, stdout=subprocess.PIPE, text=True)
    if ignores is not None:
        signal.signal(ignores, before)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process
