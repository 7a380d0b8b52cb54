"""Runs programs in two worlds that differ only above an observer, and compares what is observed below.

In the *purge* form what happens above the observer happens in world A only; in the *paired* form it happens in both,
with different data. In the *alone* form what the sessions of other agents and tenants do happens in world A only, and
all sessions of one agent are compared, at every level. The models say at which level an operation takes place, world
by world.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import grpc
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from muniment_server.domain.classification import Label
from tests.proof.noninterference.model import Learned, Model
from tests.proof.noninterference.model.desk import APPROVALS, MEMORY, Release
from tests.proof.noninterference.programs.alphabets import CANARY, LEVELS
from tests.proof.noninterference.programs.operations import Operation, Seen
from tests.proof.noninterference.programs.writer import Writer
from tests.proof.noninterference.replay import BEGINNING
from tests.proof.noninterference.server_process import Noticed
from tests.proof.noninterference.values import (
    LABELS,
    METHODS,
    Disagreement,
    Refusal,
    details_of,
    flows,
    joined,
    label_from,
    level_of,
)
from tests.proof.noninterference.worlds import World
from tests.support.services import Outcome, reason_of

Form = Literal["purge", "paired", "alone"]
Oracle = Literal["worlds", "model", "both"]
LENGTH = 130
_BESIDE = 4
"""How many calls of sessions above the observer run beside those that are compared, at most."""
_REPEATS = 2
"""How often each of them is made."""
_OF_DESK = {"RequestRelease", "ApproveRelease", "RejectRelease", "GetRelease", "ListReleases"}
_ALONE_ONCE_IN = 6
_ALONE = ("first", "alice")
"""The tenant and the agent that are compared in the *alone* form."""


class Leak(AssertionError):
    """The observer can tell the worlds apart."""

    def __init__(self, message: str, *, failed: bool) -> None:
        super().__init__(message)
        self.failed = failed
        """Whether all that the observer sees is that a call fails in one world: INTERNAL, and nothing of an answer."""


class Fault(AssertionError):
    """INTERNAL, or something said that must not be: a guard is broken even if nothing leaked."""


class Skip(Exception):
    """World B cannot follow here. Nothing is done in either."""


@dataclass
class Report:
    """What was compared."""

    programs: int = 0
    calls: int = 0
    pairs: int = 0
    """Calls of which all that is observed was compared, byte by byte, between two worlds."""
    hidden: int = 0
    """Operations above the observer."""
    not_compared: int = 0
    """Hosts' reads that show what is above the observer."""
    beside: int = 0
    """Calls above the observer that ran beside those below."""
    searches: int = 0
    """Pairs of searches that found something, or could have."""
    semantic: int = 0
    """Those of them in which both worlds compared embeddings."""
    releases: int = 0
    """Releases of what is above the observer to what it sees, which both worlds wrote."""
    reranked: int = 0
    """Those that were reranked in both worlds."""
    coverage: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Compared pairs by RPC, level of the caller (or HOST) and status."""


class Program:
    """One program, in both worlds."""

    def __init__(
        self,
        worlds: tuple[World, World],
        seed: str,
        *,
        observer: int,
        form: Form,
        oracle: Oracle,
        report: Report,
        about: str = "",
        beside: Executor | None = None,
        releases: bool = False,
    ) -> None:
        """With *beside*, sessions above the observer call from its threads while those below are compared.

        With *releases*, hosts release items.
        """
        self._worlds = worlds
        self._seed = seed
        self._observer = observer
        self._form = form
        self._oracle = oracle
        self._report = report
        self._beside = beside
        self._running: list[Future[Outcome]] = []
        learned = Learned()
        self._models = (Model(learned), Model(learned))
        self._seen = (Seen(), Seen())
        self._trail: list[str] = []
        self._untrue_audits: set[str] = set()
        self._hosts = self._make_hosts(seed)
        self._writer = Writer(
            f"{seed}/{observer}/{form}", self._hosts, self._models[0], self._seen[0], observer=observer, about=about
        )
        if releases:
            self._writer.release_with({tenant: self._make_desk(tenant) for tenant in ("first", "second")})

    def run(self, length: int = LENGTH) -> None:
        """Run it. Raises Leak, Fault or Disagreement, with the last operations."""
        time = BEGINNING
        self._report.programs += 1
        try:
            self._models[0].now = time
            for token, rpc, fields in self._writer.beginning(time):
                self._step(self._writer.operation(token, rpc, fields))
            for _ in range(length):
                self._step(self._writer.next())
            for token, rpc, fields in self._writer.ending():
                self._step(self._writer.operation(token, rpc, fields))
            self._wait(0)
        except AssertionError as error:
            error.add_note("\n".join((f"program {self._seed}", *self._trail[-25:])))
            error.egress = self._noticed().egress  # type: ignore[attr-defined]
            raise
        finally:
            wait(self._running)
        if self._noticed().canaries:
            raise Fault("content in the log")

    def _noticed(self) -> Noticed:
        """What the servers have logged since the last program."""
        return Noticed(*map(sum, zip(*(world.process.noticed() for world in self._worlds), strict=True)))

    def _make_hosts(self, seed: str) -> dict[tuple[str, int], str]:
        hosts = {}
        for tenant in ("first", "second"):
            for ceiling in sorted({1, level_of(self._observer), 4}):
                keys = [
                    world.add_host(f"{seed}/{self._observer}/{self._form}/{tenant}", ceiling) for world in self._worlds
                ]
                assert keys[0] == keys[1]
                hosts[tenant, ceiling] = keys[0]
                for model in self._models:
                    model.hosts[keys[0]] = (tenant, ceiling)
        return hosts

    def _make_desk(self, name: str) -> list[str]:
        tenant = f"{self._seed}/{self._observer}/{self._form}/{name}"
        keys = []
        for number in range(APPROVALS + 1):
            (key, key_id), other = (world.add_desk_key(tenant, number) for world in self._worlds)
            assert other == (key, key_id)
            keys.append(key)
            for model in self._models:
                model.hosts[key] = (name, max(LEVELS))
                model.desk_keys[key] = key_id
        return keys

    # One step: what world B does, both calls, the comparison.

    def _step(self, operation: Operation) -> None:
        for model in self._models:
            model.now = operation.time
        try:
            other = self._in_b(operation)
        except Skip:
            return
        level = self._models[0].level(operation.token)
        self._trail.append(
            f"{'both ' if other == operation else 'A' + 'B' * (other is not None):5}{level or 'H'} {operation}"
        )
        is_hosts = operation.token in self._models[0].hosts
        if other is None and self._beside is not None and not is_hosts and operation.rpc != "CloseSession":
            self._call_beside(operation, self._beside)
            return
        expected, outcome = self._call(0, operation)
        self._trail[-1] += f"-> {reason_of(outcome) or outcome.code.name}"
        if other is None:
            self._report.hidden += 1
            self._check(0, expected, operation, outcome)
            return
        expected_b, outcome_b = self._call(1, other)
        if other.rpc == operation.rpc and self._visible(operation, other, level, expected, expected_b):
            self._compare(operation, outcome, outcome_b, level)
        else:
            self._report.hidden += 1
        self._check(0, expected, operation, outcome)
        self._check(1, expected_b, other, outcome_b)

    def _call(self, which: int, operation: Operation) -> tuple[Any, Outcome]:
        if operation.rpc.startswith("Search"):
            for world in self._worlds:  # in both: law 2 leaves out whether an embedding was made in time
                world.embed(self._models[which].level(operation.token) or 0, operation.name)
        expected = self._models[which].expect(operation.name, operation.token, operation.rpc, operation.requests)
        outcome = self._worlds[which].call(
            operation.name, operation.time, operation.path, operation.requests, operation.metadata
        )
        self._report.calls += 1
        return expected, outcome

    def _call_beside(self, operation: Operation, beside: Executor) -> None:
        """Call from other threads, while what follows is compared."""
        self._report.hidden += 1
        self._models[0].expect(operation.name, operation.token, operation.rpc, operation.requests)
        call = partial(self._worlds[0].call, time=None, path=operation.path, requests=operation.requests)
        for number in range(_REPEATS):
            name = f"{operation.name}/{number}"
            self._running.append(beside.submit(call, name, metadata=operation.metadata))
        self._wait(_BESIDE)

    def _wait(self, most: int) -> None:
        """Wait until at most *most* calls run beside. None of them may fail for a reason that is not its own."""
        while len(self._running) > most:
            outcome = self._running.pop(0).result()
            self._report.beside += 1
            if outcome.code.name in {"INTERNAL", "UNKNOWN", "UNAVAILABLE", "DEADLINE_EXCEEDED"}:
                raise Fault(f"a call beside others: {outcome.code.name}")

    def _visible(
        self, operation: Operation, other: Operation, level: int | None, expected: Any, expected_b: Any
    ) -> bool:
        """Whether the law covers the answer: sessions' always; hosts' as far as they show nothing above.

        The bearer of an ended session that was never in world B knows more than the observer. What runs beside has no
        order that a model could predict: then hosts' answers are not compared.
        """
        if operation.token not in self._models[0].hosts:
            return bool(expected == expected_b) if level is None else flows(level, self._observer)
        tenant, ceiling = self._models[0].hosts[operation.token]
        if self._beside is not None:
            same = False
        elif self._form != "alone" and self._sees_all_of(ceiling) and self._observer < max(LABELS):
            same = True  # for its key, nothing that is above the observer exists
        elif self._form == "alone" and operation.rpc in {"ListAuditEvents", "GetAgent"}:
            same = expected == expected_b and self._is_alone(operation, tenant)
        elif operation.rpc in {"ListAuditEvents", "GetAgent"} and not isinstance(expected, Refusal):
            same = self._sees_all_of(ceiling) and tenant not in self._untrue_audits
        else:
            same = bool(expected == expected_b)
        self._report.not_compared += not same
        return same

    def _sees_all_of(self, ceiling: int) -> bool:
        """Whether all that a host key of this ceiling may see flows to the observer."""
        return flows(label_from(ceiling, 0), self._observer)

    def _compare(self, operation: Operation, a: Outcome, b: Outcome, level: int | None) -> None:
        self._report.pairs += 1
        caller = "HOST" if operation.token in self._models[0].hosts else Label(level).name if level else "NOBODY"
        self._report.coverage[operation.rpc, caller, reason_of(a) or a.code.name] += 1
        if operation.rpc.startswith("Search") and a.code is b.code is grpc.StatusCode.OK:
            output = GetMessageClass(METHODS[operation.rpc].output_type)
            answers: Any = [output.FromString(one.response) for one in (a, b)]
            self._report.searches += 1
            self._report.semantic += all(answer.semantic for answer in answers)
            self._report.reranked += all(answer.reranked for answer in answers)
        both_broken = a.code is b.code is grpc.StatusCode.INTERNAL  # each with an incident of its own: a fault
        if a != b and self._oracle != "model" and not both_broken:
            raise Leak(
                f"{Label(self._observer).name} sees different worlds:\n"
                f"A {_shown(operation, a)}\nB {_shown(operation, b)}",
                failed=grpc.StatusCode.INTERNAL in {a.code, b.code},
            )

    def _check(self, which: int, expected: Any, operation: Operation, outcome: Outcome) -> None:
        if self._oracle != "worlds":
            if outcome.code.name in {"INTERNAL", "UNKNOWN"}:
                raise Fault(f"{operation.rpc}: {outcome.code.name}")
            if _repeats(outcome):
                raise Fault(f"{operation.rpc}: the refusal repeats what was sent")
        try:
            self._models[which].learn(expected, operation.rpc, outcome)
        except Disagreement:
            if self._oracle != "worlds":
                raise
        if outcome.code.name == "OK":
            answer = GetMessageClass(METHODS[operation.rpc].output_type).FromString(outcome.response)
            self._seen[which].learn(operation, answer)

    # What world B does.

    def _in_b(self, operation: Operation) -> Operation | None:
        """What happens in world B in the place of *operation*; None: nothing."""
        if self._form == "alone":
            return self._alone_in_b(operation)
        if operation.token in self._models[0].hosts:
            return self._host_in_b(operation)
        a, b = (model.level(operation.token) for model in self._models)
        if a is None:
            return operation if b is None else None
        if flows(a, self._observer):
            return operation
        if self._form == "purge":
            return None
        ends = operation.rpc in {"CloseSession", "GetSession", "Nothing"}
        return operation if ends else self._writer.instead(operation, self._models[1], self._seen[1])

    def _alone_in_b(self, operation: Operation) -> Operation | None:
        model = self._models[0]
        if operation.rpc in _OF_DESK and operation.token in model.desk_keys:
            return self._release_alone_in_b(operation)
        if (session := model.sessions.get(model.tokens.get(operation.token, ""))) is not None:
            return operation if (session.tenant, session.agent.shown.agent_id) == _ALONE else None
        if operation.token not in model.hosts or operation.rpc not in {"AttachBlock", "UndeleteItem"}:
            return operation
        is_alone = self._is_alone(operation, model.hosts[operation.token][0])
        if operation.rpc == "AttachBlock" and is_alone:
            raise Skip  # what is shared with the agent is not of others alone
        return operation if is_alone or operation.rpc == "AttachBlock" else None

    def _release_alone_in_b(self, operation: Operation) -> Operation | None:
        """Releases of others happen in world A only."""
        try:
            request = operation.parsed()
        except DecodeError:
            return operation
        if operation.rpc == "ListReleases":
            return operation
        if operation.rpc == "RequestRelease":
            return operation if self._is_alone(operation, self._models[0].hosts[operation.token][0]) else None
        release = self._models[0].releases.get(request.release_id)
        is_alone = release is None or (release.tenant, release.agent.shown.agent_id) == _ALONE
        return operation if is_alone else None

    @staticmethod
    def _is_alone(operation: Operation, tenant: str) -> bool:
        """Whether a host asks for the agent that is compared in the *alone* form."""
        return (tenant, getattr(operation.parsed(), "agent_id", "")) == _ALONE

    def _host_in_b(self, operation: Operation) -> Operation | None:
        if operation.rpc in _OF_DESK and operation.token in self._models[0].desk_keys:
            return self._release_in_b(operation)
        if self._form == "paired":
            return operation
        match operation.rpc:
            case "OpenSession":
                return operation if flows(self._reached_by_opening(operation), self._observer) else None
            case "UndeleteItem":
                return operation if flows(self._reached_by_undeleting(operation), self._observer) else None
            case "RenewSession":
                return self._renewed_in_b(operation)
            case "RaiseTaint" | "CloseSession" | "ResetSession":
                return self._session_changed_in_b(operation)
        return operation

    def _release_in_b(self, operation: Operation) -> Operation | None:
        """Releases are inputs of the target's label: what is written there is written in both worlds.

        What else happens at the desk to an item that is above the observer happens in world A only. An approval that
        writes follows all that it needs in world B: an item with the same text, the request, the other approvals.
        """
        try:
            request = operation.parsed()
        except DecodeError:
            return operation
        release = self._models[0].releases.get(getattr(request, "release_id", ""))
        if operation.rpc == "RequestRelease":
            source = label_from(request.source_classification, request.source_integrity)
        elif release is None:
            return operation
        else:
            source = release.source
        if flows(source, self._observer):
            return operation
        if operation.rpc != "ApproveRelease" or release is None or not flows(release.target, self._observer):
            return None
        if self._models[0].may_write(operation.token, request.release_id, request.content_sha256) is None:
            return None
        self._prepare_in_b(operation, release, request)
        self._report.releases += 1
        return operation

    def _prepare_in_b(self, operation: Operation, release: Release, approval: Any) -> None:
        """Do in world B what a release of world A needs before its last approval."""
        agent_id, item = release.agent.shown.agent_id, release.item
        opening = {"agent_id": agent_id, "taint": level_of(release.source), "integrity": release.source % 2}
        opened = self._do_in_b(operation, "source", self._hosts[release.tenant, max(LEVELS)], "OpenSession", opening)
        written: dict[str, Any] = {"content": item.content}
        if release.kind == MEMORY:
            written |= {"key": release.name, "tags": item.tags}
            written |= {"expire_time": item.expires} if item.expires else {}
        else:
            written["label"] = release.name
        self._do_in_b(
            operation, "item", opened.token, "SaveMemory" if release.kind == MEMORY else "UpdateBlock", written
        )
        wanted = {
            "agent_id": agent_id, "kind": release.kind, "name": release.name, "content_sha256": approval.content_sha256,
            "source_classification": level_of(release.source), "source_integrity": release.source % 2,
            "classification": level_of(release.target), "integrity": release.target % 2, "reason": release.reason,
        }  # fmt: skip
        self._do_in_b(replace(operation, name=release.asked), "", release.requester, "RequestRelease", wanted)
        for number, approver in enumerate(release.approvers):
            if approver != operation.token:
                self._do_in_b(operation, f"approval {number}", approver, "ApproveRelease", operation.requests[0])

    def _do_in_b(self, like: Operation, suffix: str, token: str, rpc: str, fields: Any) -> Any:
        """Call in world B alone, at the time of *like*; return what is answered."""
        name = f"{like.name}/{suffix}" if suffix else like.name
        metadata = (("authorization", f"Bearer {token}"),)
        operation = replace(like, name=name, token=token, metadata=metadata).asking(rpc, fields)
        self._trail.append(f"B     {operation}")
        expected, outcome = self._call(1, operation)
        self._check(1, expected, operation, outcome)
        if outcome.code is not grpc.StatusCode.OK:
            raise Fault(f"world B cannot follow: {rpc} is answered {reason_of(outcome)}")
        return GetMessageClass(METHODS[rpc].output_type).FromString(outcome.response)

    def _reached_by_opening(self, operation: Operation) -> int:
        """The label of an OpenSession: its own with that of the conversation. Refused earlier: the lowest."""
        tenant, ceiling = self._models[0].hosts[operation.token]
        request = operation.parsed()
        agent = self._models[0].agents.get((tenant, request.agent_id))
        if agent is None or agent.shown.known_from > ceiling or request.taint > ceiling:
            return min(LABELS)
        own = self._models[0].ceiling_of(agent, ceiling, request.conversation_id)
        conversation = agent.conversations.get((request.conversation_id, own))
        if request.taint > own:
            return min(LABELS)
        asked = label_from(request.taint or 1, request.integrity)
        return joined(asked, conversation.taint) if conversation else asked

    def _reached_by_undeleting(self, operation: Operation) -> int:
        """The label of an UndeleteItem. Refused earlier: the lowest."""
        tenant, ceiling = self._models[0].hosts[operation.token]
        request = operation.parsed()
        agent = self._models[0].agents.get((tenant, request.agent_id))
        if agent is None or agent.shown.ceiling > ceiling or request.classification > agent.shown.ceiling:
            return min(LABELS)
        return label_from(request.classification, request.integrity)

    def _renewed_in_b(self, operation: Operation) -> Operation | None:
        """World B knows no sessions above the observer. One that it knows at a lower label is renewed in neither."""
        session_id = operation.parsed().session_id
        level, known = (model.unclosed_level(session_id) for model in self._models)
        if level is None or flows(level, self._observer):
            if (level is None) != (known is None):
                raise Skip
            return operation
        if known is not None:
            raise Skip
        return None

    def _session_changed_in_b(self, operation: Operation) -> Operation | None:
        tenant, ceiling = self._models[0].hosts[operation.token]
        request = operation.parsed()
        session = self._models[0].sessions.get(request.session_id)
        closes = operation.rpc == "CloseSession"  # also one that has expired
        level, known = (
            (model.unclosed_level if closes else model.open_level)(request.session_id) for model in self._models
        )
        if level is None or session is None or session.tenant != tenant:
            return operation if known is None or level is not None else None
        if not self._models[0].is_known(session, ceiling):
            return operation
        reached = level
        if operation.rpc == "RaiseTaint" and request.taint <= session.ceiling and request.taint <= ceiling:
            reached = joined(level, label_from(request.taint, request.integrity))
        if flows(reached, self._observer):
            return operation
        if operation.rpc != "ResetSession" or not flows(label_from(1, request.integrity), self._observer):
            return None
        return self._reset_in_b(operation, tenant, session, request.integrity)

    def _reset_in_b(self, operation: Operation, tenant: str, session: Any, integrity: int) -> Operation:
        """A close above the observer, which world B knows nothing of, and an open at PUBLIC, which both see.

        World B resets what it has of the conversation, or opens it. Its audit then tells another story.
        """
        model = self._models[1]
        agent_id = session.agent.shown.agent_id
        agent = model.agents[tenant, agent_id]
        key = self._models[0].hosts[operation.token][1]
        if model.ceiling_of(agent, key, session.conversation_id) != session.ceiling:
            raise Skip  # by this name, world B would find another conversation
        known = agent.conversations.get((session.conversation_id, session.ceiling))
        self._untrue_audits.add(tenant)
        for session_id, one in model.sessions.items():
            same = (one.conversation_id, one.ceiling) == (session.conversation_id, session.ceiling)
            if one.agent is agent and same and model.open_level(session_id):
                return operation.asking("ResetSession", {"session_id": session_id, "integrity": integrity})
        if known is not None and not flows(known.taint, label_from(1, integrity)):
            raise Skip
        fields = {
            "agent_id": agent_id, "conversation_id": session.conversation_id, "taint": 1,
            "integrity": integrity,
            "ttl": session.expires - session.created,
        }  # fmt: skip
        return operation.asking("OpenSession", fields)


def _repeats(outcome: Outcome) -> bool:
    """Whether a refusal says what was remembered or sent. BudgetExceeded shows the session's own notes."""
    details = [one for one in details_of(outcome) if not one.TypeName().endswith(".BudgetExceeded")]
    trailers = [value for name, value in outcome.trailers if name != "grpc-status-details-bin"]
    return any(CANARY in str(said) for said in (outcome.message, *trailers, *details))


def _shown(operation: Operation, outcome: Outcome) -> str:
    answer: Any = ""
    if outcome.response:
        answer = GetMessageClass(METHODS[operation.rpc].output_type).FromString(outcome.response)
    return f"{outcome.code.name} {outcome.message} {reason_of(outcome)} {outcome.trailers} {answer}"


def run_programs(
    worlds: tuple[World, World],
    seed: int,
    programs: int,
    *,
    oracle: Oracle = "both",
    only: int | None = None,
    progress: Callable[[Report], None] = lambda _: None,
) -> Report:
    """Run *programs* programs: every observer, both forms. Raises Leak, Fault or Disagreement."""
    report = Report()
    for number in range(programs) if only is None else (only,):
        rng = random.Random(f"{seed}.{number}")
        # RESTRICTED has nothing above it: its two worlds are equal, and what is held against it is the model.
        observer = rng.choices(LABELS, (1, 3, 1, 3, 2, 4, 2, 4))[0]
        form: Form = rng.choice(("purge", "paired"))
        if number % _ALONE_ONCE_IN == _ALONE_ONCE_IN - 1:
            observer, form = max(LABELS), "alone"
        Program(
            worlds,
            f"{seed}.{number}",
            observer=observer,
            form=form,
            oracle=oracle,
            report=report,
            releases=number % 2 == 0,
        ).run()
        progress(report)
    return report
