"""One run of the suite: every client plays every scenario, and all see the same."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from tests.clients.conformance import transcripts
from tests.clients.conformance.clients import Client
from tests.clients.conformance.scenarios import Scenario
from tests.clients.conformance.servers import OTHERS_KEYS, Target
from tests.clients.conformance.transcripts import Record


@dataclass(slots=True)
class Played:
    """What one client saw over one transport."""

    who: str
    seconds: float
    steps: int
    left_out: tuple[str, ...]
    """Scenarios for which the target lacks a host key."""
    failures: list[str] = field(default_factory=list)
    """What is not as the scenarios say."""
    differences: list[str] = field(default_factory=list)
    """How it differs from what the first client saw."""
    lines: list[str] = field(default_factory=list, repr=False)
    """The masked transcript."""

    @property
    def passed(self) -> bool:
        return not self.failures and not self.differences


class Suite:
    """Scenarios to be played by several clients. What the first one sees of each is what the others must see."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self._scenarios = scenarios
        self._first: dict[str, tuple[str, list[str]]] = {}

    def play(self, client: Client, target: Target) -> Played:
        """Let a client play what the target is for. Raises Broken when its runner does."""
        keys = target.keys()
        lacking = set(OTHERS_KEYS) - keys.others.keys()
        due = [scenario for scenario in self._scenarios if target.plays(scenario.file)]
        scenarios = [scenario for scenario in due if not scenario.callers & lacking]
        begun = time.monotonic()
        sent = json.dumps({"scenarios": [scenario.for_runner(keys.others) for scenario in scenarios]})
        seen = transcripts.read(client.play(sent, target.environment(keys)), scenarios)
        played = Played(
            who=f"{client.name} over {target.transport}",
            seconds=time.monotonic() - begun,
            steps=sum(map(len, seen)),
            left_out=tuple(scenario.title for scenario in due if scenario not in scenarios),
        )
        log = target.log_of(transcripts.request_ids(chain.from_iterable(seen)))
        for scenario, records in zip(scenarios, seen, strict=True):
            self._check(played, scenario, records)
            if log is not None:
                played.failures += transcripts.unlogged(scenario, records, log)
        return played

    def _check(self, played: Played, scenario: Scenario, records: Sequence[Record]) -> None:
        played.failures += transcripts.failures(scenario, records)
        lines = transcripts.rendered(scenario, transcripts.masked(scenario, records))
        played.lines += lines
        first = self._first.setdefault(scenario.file, (played.who, lines))
        if difference := transcripts.difference(first, (played.who, lines)):
            played.differences.append(f"{scenario.file}.yaml\n{difference}")
