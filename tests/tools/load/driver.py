"""Runs load generators against one address, and gathers what they saw."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tests.tools.bench.usage import Usage
from tests.tools.load.calls import CALLS_PER_ARRIVAL, MIX, Call, Caller, from_csv
from tests.tools.load.generator import Job

_START_SECONDS = 0.2
"""From the order to begin until the first call is due."""
_NO_USAGE = Usage(0.0, 0.0, 0.0)


class Texts(NamedTuple):
    """What is stored and asked."""

    contents: Sequence[str]
    queries: Sequence[str]


@dataclass(frozen=True, slots=True)
class Target:
    """What is loaded, and by whom."""

    address: str
    callers: Sequence[Caller]
    host_key: str = ""
    usage: Callable[[], Usage] = lambda: _NO_USAGE


@dataclass(frozen=True, slots=True)
class Run:
    """What one load did."""

    calls: Sequence[Call]
    seconds: float
    """From its beginning to its last answer."""
    used: Usage
    """CPU seconds."""

    @property
    def answered(self) -> Sequence[Call]:
        """The calls that succeeded."""
        return [call for call in self.calls if call.status == "OK"]

    @property
    def per_second(self) -> float:
        """Successful calls."""
        return len(self.answered) / self.seconds


def drive(
    target: Target, texts: Texts, *, seconds: float, rate: float = 0.0, mix: Mapping[str, float] = MIX,
    processes: int = 2, seed: int = 1,
) -> Run:  # fmt: skip
    """Load *target* with *rate* calls a second from all its callers together.

    Without a rate, each caller sends its next call at once.
    """
    per_arrival = CALLS_PER_ARRIVAL if mix is MIX else 1.0
    generators = []
    for number in range(min(processes, len(target.callers))):
        callers = target.callers[number::processes]
        arrivals = rate / per_arrival / len(target.callers)
        generators.append(
            _started(
                Job(
                    address=target.address, host_key=target.host_key, callers=callers, mix=mix, rate=arrivals,
                    seconds=seconds, texts=texts.contents, queries=texts.queries, seed=seed + 1000 * number,
                )
            )
        )  # fmt: skip
    before, begin = target.usage(), time.monotonic() + _START_SECONDS
    for generator in generators:
        assert generator.stdin is not None
        generator.stdin.write(f"{begin}\n")
        generator.stdin.flush()
    calls = [call for generator in generators for call in from_csv(generator.communicate()[0])]
    took = max((call.start + call.latency for call in calls), default=seconds)
    return Run(calls, max(seconds, took), target.usage() - before)


def _started(job: Job) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.tools.load.generator"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    if not process.stdout.readline():
        raise RuntimeError(f"the load generator did not start: is a server at {job['address']}?")
    return process
