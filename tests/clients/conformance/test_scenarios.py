"""The scenarios together: every RPC, every reason, every law that a client can see."""

from __future__ import annotations

import re
from pathlib import Path

from muniment.retries import METHODS
from muniment.v1 import error_pb2
from tests.clients.conformance import documents, scenarios
from tests.support.each import for_each

README = Path(__file__).with_name("README.md")
SCENARIOS = scenarios.load()
STEPS = [step for scenario in SCENARIOS for step in scenario.steps]

NOT_PROVOKED = {
    "OVERLOADED": "takes a server with more calls in flight than it may have: tests/proof/faults/test_overload.py",
    "RATE_LIMITED": "takes calls that come faster than time passes: tests/calls/transport/test_rates.py",
    "STORAGE_FULL": "takes a disk that is full: tests/calls/transport/test_full_disk.py",
    "UNAVAILABLE": "takes a database that is away: tests/proof/faults/test_database_away.py",
    "DEADLINE_EXCEEDED": "a client stops listening at its own deadline: the status is in deadlines.yaml",
    "METHOD_UNKNOWN": "stubs have the methods of the contract only: tests/calls/transport/test_reasons.py",
    "AGENT_HELD": "takes an operator: tests/calls/agents/test_retention.py",
    "RELEASE_EXPIRED": "takes a release that is seconds old: tests/calls/releases",
    "PROMPT_TOO_LARGE": "no longer sent",
    "INTERNAL": "takes a fault of the server: tests/calls/transport/test_faults.py",
}
"""Reasons that no client can provoke with certainty, and where they are tested."""

NOT_SEEN = {
    6: "who waits for whom is a matter of time: tests/proof/races/test_high_beside_low.py",
}
"""Laws that no client can see, and where they are tested."""


def test_every_rpc_succeeds_in_some_scenario():
    succeeding = {step.call for step in STEPS if step.expected.status == "OK" and step.expected.same_as is None}

    missing = {f"{method.containing_service.name}.{method.name}" for method in METHODS.values()} - succeeding

    assert missing == set(), f"add a step that succeeds to a scenario in tests/clients/conformance/scenarios: {missing}"


def test_every_call_is_of_the_contract():
    known = {f"{method.containing_service.name}.{method.name}" for method in METHODS.values()}

    assert {step.call for step in STEPS} - known == set()


def test_every_reason_is_provoked_or_cannot_be():
    reasons = {name.removeprefix("ERROR_REASON_") for name, number in error_pb2.ErrorReason.items() if number}
    provoked = {step.expected.reason for step in STEPS} - {None}

    missing = sorted(reasons - provoked - NOT_PROVOKED.keys())
    assert missing == [], f"add to tests/clients/conformance/scenarios a step that is refused with each: {missing}"
    assert NOT_PROVOKED.keys() == reasons - provoked
    assert provoked <= reasons


def test_every_law_is_seen_or_cannot_be():
    assert {law for scenario in SCENARIOS for law in scenario.laws} == set(range(1, 10)) - NOT_SEEN.keys()


@for_each("scenario", SCENARIOS)
def test_a_scenario_says_what_it_is_for_and_what_it_expects(scenario):
    assert scenario.title
    assert scenario.why.endswith(".")
    for step in scenario.steps:
        refused = step.expected.status not in ("OK", "DEADLINE_EXCEEDED")
        assert refused == (step.expected.reason is not None), step.label


@for_each("file", documents.files())
def test_a_scenario_is_narrow_enough_to_be_read(file):
    assert [line for line in file.read_text(encoding="utf-8").splitlines() if len(line) > 120] == []


def test_no_two_scenarios_share_a_title():
    assert len({scenario.title for scenario in SCENARIOS}) == len(SCENARIOS)


def test_the_example_of_the_readme_is_a_scenario():
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)

    scenario = scenarios.from_document("README", documents.read(example))

    assert [step.expected.same_as for step in scenario.steps if step.expected.same_as] == ["absent"]
