"""What a runner saw: read, checked, masked, compared."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from tests.clients.conformance.matching import KINDS, Match, shown
from tests.clients.conformance.scenarios import Scenario, Step

JSON = Any
Record = dict[str, JSON]

_MASKED = ("uuid", "time", "token")
"""Kinds that are known by their looks alone. Etags are known by the name of their field too."""
_MAX_SHOWN_CHARS = 160


class Broken(Exception):
    """A runner did not say what a runner has to say."""


def read(stdout: str, scenarios: Sequence[Scenario]) -> list[list[Record]]:
    """The records of each scenario. Raises Broken unless there is one for each step, in order, and each is whole."""
    try:
        records = [json.loads(line) for line in stdout.splitlines()]
    except ValueError as error:
        raise Broken(f"what it printed is not a JSON object a line: {error}") from None
    recorded = [
        (record.get("scenario"), record.get("step")) if isinstance(record, dict) else record for record in records
    ]
    due = [(scenario.title, number) for scenario in scenarios for number in range(len(scenario.steps))]
    for number, (one, other) in enumerate(zip_longest(recorded, due), 1):
        if one != other:
            raise Broken(f"line {number} is about {one}, and {other} is due")
    for number, record in enumerate(records, 1):
        if missing := sorted(_required(record.get("status")) - record.keys()):
            raise Broken(f"line {number} does not say {', '.join(missing)}")
    rest = iter(records)
    return [[next(rest) for _ in scenario.steps] for scenario in scenarios]


def _required(status: JSON) -> set[str]:
    """What a record says besides, and which step it is about."""
    match status:
        case "OK":
            return {"response"}
        case "UNRESOLVED":
            return set()
    return {"status", "reason", "message", "details", "request_id"}


def failures(scenario: Scenario, records: Sequence[Record]) -> Iterator[str]:
    """Each way in which what came is not what the scenario expects."""
    match = Match()
    named: dict[str, Record] = {}
    for step, record in zip(scenario.steps, records, strict=True):
        for name, path in step.sent.get("save", {}).items():
            match.remember(name, _at(path, record.get("response", {})))
        for difference in _differences(step, record, match, named):
            yield f"{scenario.file}.yaml, {step.label} {step.call}: {difference}"
        if step.name:
            named[step.name] = record


def request_ids(records: Iterable[Record]) -> set[str]:
    """The ids of failed calls that the client knows."""
    return {record["request_id"] for record in records if record.get("request_id")}


def unlogged(scenario: Scenario, records: Sequence[Record], log: Mapping[str, Record]) -> Iterator[str]:
    """Each failed call that the server's log, by request id, does not have as the client saw it.

    Without an answer of the service, as after a deadline that the client noticed first, there is no id.
    """
    for step, record in zip(scenario.steps, records, strict=True):
        request_id = record.get("request_id", "")
        if not (record.get("reason") or request_id):
            continue
        seen = {"method": step.call.partition(".")[2], "code": record["status"], "reason": record["reason"]}
        logged = {name: log.get(request_id, {}).get(name) for name in seen}
        if logged != seen:
            yield f"{scenario.file}.yaml, {step.label} {step.call}: the log has {logged} of {request_id!r}, not {seen}"


def _differences(step: Step, record: Record, match: Match, named: dict[str, Record]) -> Iterator[str]:
    expected = step.expected
    if expected.same_as is not None:
        if _answer(record) != _answer(named[expected.same_as]):
            yield f"{shown(_answer(record))} is not the same as {shown(_answer(named[expected.same_as]))}"
        return
    actual = (record["status"], record.get("reason", ""))
    if actual[0] != expected.status or expected.reason not in (None, actual[1]):
        due = " ".join(filter(None, (expected.status, expected.reason)))
        yield f"{' '.join(filter(None, actual))} ({record.get('message', '')}), not {due}"
        return
    if expected.response is not None:
        yield from match.differences(expected.response, record["response"], "response")
    if expected.details is not None:
        yield from match.differences(expected.details, record["details"], "details")


def _answer(record: Record) -> Record:
    """All that the service said, without where in the scenario it did, and without the id of that call alone."""
    return {name: value for name, value in record.items() if name not in ("scenario", "step", "request_id")}


def _at(path: str, response: JSON) -> JSON:
    for name in path.split("."):
        try:
            response = response[int(name) if isinstance(response, list) else name]
        except (LookupError, TypeError):
            return None
    return response


def masked(scenario: Scenario, records: Sequence[Record]) -> list[Record]:
    """The records without what no two runs have in common: ids, times, tokens, etags.

    The same value gets the same mask. What the scenario itself sent is not masked, nor is any other
    text: all that must agree.
    """
    mask = _Mask(scenario.given())
    return [mask(_of_the_service(record), "") for record in records]


def _of_the_service(record: Record) -> Record:
    """The record without what the client says of itself, and without the id of that call alone."""
    record = {name: value for name, value in record.items() if name != "request_id"}
    if record["status"] == "DEADLINE_EXCEEDED":
        # Which side notices first is a matter of time.
        return {name: record[name] for name in ("scenario", "step", "status")}
    if record["status"] != "OK" and not record.get("reason"):
        return {**record, "message": ""}
    return record


class _Mask:
    def __init__(self, given: set[str]) -> None:
        self._given = given
        self._masks: dict[str, str] = {}
        self._count = Counter[str]()

    def __call__(self, value: JSON, name: str) -> JSON:
        match value:
            case dict() if name == "checkpoint":  # events are sealed after a call, not by it
                return {"classification": value.get("classification")}
            case dict():
                return {key: self(value[key], key) for key in sorted(value)}
            case list():
                return [self(each, name) for each in value]
            case str() if value not in self._given and (kind := _kind(value, name)):
                return self._masks.get(value) or self._new(kind, value)
            case float() if value.is_integer():
                return int(value)  # JSON knows no difference
        return value

    def _new(self, kind: str, value: str) -> str:
        self._count[kind] += 1
        return self._masks.setdefault(value, f"<{kind} {self._count[kind]}>")


def _kind(value: str, name: str) -> str | None:
    if name == "nextPageToken":
        return "page"
    if name == "etag" and len(value) == 27:  # a version's, not a text's
        return "etag"
    return next((kind for kind in _MASKED if KINDS[kind].fullmatch(value)), None)


def rendered(scenario: Scenario, records: Sequence[Record]) -> list[str]:
    """Masked records as lines to read."""
    lines = [f"# {scenario.title}"]
    for step, record in zip(scenario.steps, records, strict=True):
        lines.append(f"## {step.label} {step.call}")
        answer = _shortened({name: each for name, each in record.items() if name not in ("scenario", "step")})
        lines += json.dumps(answer, indent=2, sort_keys=True, ensure_ascii=False).splitlines()
    return lines


def difference(one: tuple[str, list[str]], other: tuple[str, list[str]]) -> str:
    """How two named transcripts differ; empty when they do not."""
    (from_name, before), (to_name, after) = one, other
    return "\n".join(difflib.unified_diff(before, after, from_name, to_name, n=4, lineterm=""))


def _shortened(value: JSON) -> JSON:
    match value:
        case dict():
            return {name: _shortened(each) for name, each in value.items()}
        case list():
            return [_shortened(each) for each in value]
        case str() if len(value) > _MAX_SHOWN_CHARS:
            digest = hashlib.sha256(value.encode()).hexdigest()[:12]
            return f"{value[:40]}… ({len(value):,} characters, sha256 {digest}…)"
    return value
