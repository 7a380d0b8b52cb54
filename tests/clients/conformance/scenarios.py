"""Scenarios, and the steps that a runner plays.

What is written in a file is short; what a runner gets is plain: agents and sessions become calls, named
placeholders become `save`, and a host key that is not the runner's own is put in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients.conformance import documents
from tests.clients.conformance.matching import PLACEHOLDER

JSON = Any

_SESSION = re.compile(r"(?P<agent>\S+) at (?P<level>[A-Z]+)(?: in (?P<conversation>\S+))?")
_MANY = re.compile(r"<(\d+) times (.+?)>")

_SCENARIO = {"title", "why", "laws", "agents", "sessions", "steps"}
_STEP = {"note", "name", "as", "call", "request", "requests", "times", "deadline_ms", "expect"}
_EXPECT = {"status", "reason", "response", "details", "same_as"}


class Malformed(ValueError):
    """A scenario file does not say what one has to say."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What must come of a step. None: that is not looked at."""

    status: str = "OK"
    reason: str | None = None
    response: JSON = None
    details: JSON = None
    same_as: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One call."""

    label: str
    """Where it stands, for people."""
    sent: dict[str, JSON]
    """What the runner gets."""
    expected: Expected
    name: str | None = None
    """What a later `same_as` calls it."""

    @property
    def caller(self) -> str:
        return str(self.sent["as"])

    @property
    def call(self) -> str:
        """Service and method."""
        return str(self.sent["call"])


@dataclass(frozen=True, slots=True)
class Scenario:
    """One file, ready to be played."""

    file: str
    title: str
    why: str
    laws: tuple[int, ...]
    steps: tuple[Step, ...]

    @property
    def callers(self) -> set[str]:
        """Who calls: `host`, `none`, a credential, or the name of one that was saved or is put in."""
        return {step.caller.removeprefix("${").removesuffix("}") for step in self.steps}

    def for_runner(self, keys: Mapping[str, str]) -> dict[str, JSON]:
        """The scenario as a runner reads it, with the host keys of others put in."""
        known = {f"${{{name}}}": key for name, key in keys.items()}
        return {
            "name": self.title,
            "steps": [{**step.sent, "as": known.get(step.caller, step.caller)} for step in self.steps],
        }

    def given(self) -> set[str]:
        """Every text that the scenario itself sends: what comes back of it is no surprise."""
        return {text for step in self.steps for text in _texts([step.sent.get("request"), step.sent.get("requests")])}


def load(folder: Path = documents.FOLDER) -> list[Scenario]:
    """All scenarios, by the names of their files."""
    return list(map(_from_file, documents.files(folder)))


def _from_file(file: Path) -> Scenario:
    with file.open(encoding="utf-8") as opened:
        return from_document(file.stem, documents.read(opened))


def from_document(file: str, document: JSON) -> Scenario:
    """The scenario that a file says. Raises Malformed."""
    _only(document, _SCENARIO, file)
    return Scenario(
        file=file,
        title=document["title"],
        why=document["why"],
        laws=tuple(document.get("laws", ())),
        steps=tuple(_Compiler(file, document).steps()),
    )


@dataclass
class _Compiler:
    file: str
    document: dict[str, JSON]
    saved: set[str] = field(default_factory=set)

    def steps(self) -> Iterator[Step]:
        agents = self.document.get("agents", [])
        for agent in agents:
            yield _made(f"agent {agent}", "AgentService.CreateAgent", {"agentId": agent})
        for name, described in self.document.get("sessions", {}).items():
            yield self._session(name, described)
        for number, step in enumerate(self.document["steps"], 1):
            yield from self._written(number, step)
        for agent in agents:
            yield _made(f"agent {agent} goes", "AgentService.DeleteAgent", {"agentId": agent})

    def _session(self, name: str, described: str) -> Step:
        match = _SESSION.fullmatch(described)
        if match is None:
            raise Malformed(
                f"{self.file}: a session is `AGENT at LEVEL`, or `AGENT at LEVEL in CONVERSATION`: {described}"
            )
        request = {"agentId": match["agent"], "taint": f"CLASSIFICATION_{match['level']}"}
        if match["conversation"]:
            request["conversationId"] = match["conversation"]
        save = {name: "token", f"{name}_id": "session.sessionId", f"{name}_conversation": "session.conversationId"}
        self.saved.update(save)
        return _made(f"session {name}", "SessionService.OpenSession", request, save)

    def _written(self, number: int, step: dict[str, JSON]) -> Iterator[Step]:
        _only(step, _STEP, f"{self.file}, step {number}")
        _only(step.get("expect", {}), _EXPECT, f"{self.file}, step {number}, expect")
        expected = Expected(**{name: _written_out(each) for name, each in step.get("expect", {}).items()})
        sent: dict[str, JSON] = {"as": _credential(step["as"]), "call": step["call"]}
        sent |= {name: step[name] for name in ("requests", "deadline_ms") if name in step}
        if "requests" not in step:
            sent["request"] = step.get("request", {})
        if save := dict(self._saves(expected.response, "")):
            sent["save"] = save
        label = f"step {number}, {step['as']}"
        for count in range(1, step.get("times", 1) + 1):
            yield Step(label, _numbered(_written_out(sent), count), expected, step.get("name"))

    def _saves(self, expected: JSON, path: str) -> Iterator[tuple[str, str]]:
        """Where each placeholder stands that has a name and stands there for the first time."""
        if isinstance(expected, dict | list):
            items = expected.items() if isinstance(expected, dict) else enumerate(expected)
            for key, value in items:
                yield from self._saves(value, f"{path}.{key}" if path else str(key))
        elif isinstance(expected, str) and (match := PLACEHOLDER.fullmatch(expected)):
            name = match["name"]
            if name and name not in self.saved:
                self.saved.add(name)
                yield name, path


def _made(label: str, call: str, request: JSON, save: dict[str, str] | None = None) -> Step:
    """A call of the host that must be OK and is not what the scenario is about."""
    sent = {"as": "host", "call": call, "request": request}
    return Step(label, {**sent, "save": save} if save else sent, Expected())


def _credential(caller: str) -> str:
    """Who calls, as a runner reads it: all but `host`, `none` and a literal credential is something saved."""
    return caller if caller in ("host", "none") or caller.startswith("mun_") else f"${{{caller}}}"


def _written_out(value: JSON) -> JSON:
    """The value, with each `<1000 times x>` in it written out."""
    return _mapped(value, lambda text: _MANY.sub(lambda match: match[2] * int(match[1]), text))


def _numbered(value: JSON, number: int) -> JSON:
    return _mapped(value, lambda text: text.replace("${number}", str(number)))


def _mapped(value: JSON, change: Any) -> JSON:
    """The value, with each text in it changed."""
    match value:
        case dict():
            return {name: _mapped(each, change) for name, each in value.items()}
        case list():
            return [_mapped(each, change) for each in value]
        case str():
            return change(value)
    return value


def _texts(value: JSON) -> Iterator[str]:
    match value:
        case dict():
            yield from _texts(list(value.values()))
        case list():
            for each in value:
                yield from _texts(each)
        case str():
            yield value


def _only(mapping: dict[str, JSON], known: set[str], place: str) -> None:
    if unknown := mapping.keys() - known:
        raise Malformed(f"{place}: {', '.join(sorted(unknown))} is none of {', '.join(sorted(known))}")
