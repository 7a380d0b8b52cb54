"""One run of the suite: every client plays every scenario, and all see the same."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.conformance import transcripts
from tests.conformance.clients import Client
from tests.conformance.scenarios import Scenario
from tests.conformance.servers import OTHERS_KEYS, Target


@dataclass(frozen=True, slots=True)
class Played:
    """What one client saw over one transport."""

    who: str
    seconds: float
    steps: int
    failures: tuple[str, ...]
    """What is not as the scenarios say."""
    lines: list[str] = field(repr=False)
    """The masked transcript."""
    difference: str
    """How it differs from the transcript of who played first; empty when it does not."""
    left_out: tuple[str, ...]
    """Scenarios for which the target lacks a host key."""

    @property
    def passed(self) -> bool:
        return not self.failures and not self.difference


class Suite:
    """Scenarios to be played by several clients. The first transcript is what the others are compared with."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self.scenarios = scenarios
        self._first: tuple[str, list[str]] | None = None

    def play(self, client: Client, target: Target) -> Played:
        """Let a client play. Raises Broken when its runner does."""
        keys = target.keys()
        lacking = set(OTHERS_KEYS) - keys.others.keys()
        scenarios = [scenario for scenario in self.scenarios if not scenario.callers & lacking]
        begun = time.monotonic()
        sent = json.dumps({"scenarios": [scenario.for_runner(keys.others) for scenario in scenarios]})
        seen = transcripts.read(client.play(sent, target.environment(keys)), scenarios)
        seconds = time.monotonic() - begun
        failures, lines = [], []
        for scenario, records in zip(scenarios, seen, strict=True):
            failures += transcripts.failures(scenario, records)
            lines += transcripts.rendered(scenario, transcripts.masked(scenario, records))
        who = f"{client.name} over {target.transport}"
        self._first = self._first or (who, lines)
        steps = sum(map(len, seen))
        return Played(
            who=who,
            seconds=seconds,
            steps=steps,
            failures=tuple(failures),
            lines=lines,
            difference=transcripts.difference(self._first, (who, lines)),
            left_out=tuple(scenario.title for scenario in self.scenarios if scenario not in scenarios),
        )
