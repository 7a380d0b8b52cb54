"""What the service must answer, in pure Python: no SQL, no grants, no transport, no cache.

One model follows one world. `expect` says what an operation must be answered; `learn` holds the answer
against it, and takes from it what cannot be predicted: ids, tokens, etags. Etags are checked all the same:
equal versions have equal etags, different versions have different ones. So do rendered texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC
from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from muniment.v1 import agent_pb2
from muniment_server.monitor.policy import Flow
from tests.proof.noninterference.model.agents import Agents
from tests.proof.noninterference.model.blocks import Sharing
from tests.proof.noninterference.model.desk import Desk
from tests.proof.noninterference.model.ground import Learned as Learned
from tests.proof.noninterference.model.memories import Memories
from tests.proof.noninterference.model.notes import hold_against
from tests.proof.noninterference.model.passages import Passages
from tests.proof.noninterference.model.prompts import Prompts
from tests.proof.noninterference.model.sessions import Sessions
from tests.proof.noninterference.model.versions import Versions
from tests.proof.noninterference.rules import keeps_the_rules
from tests.proof.noninterference.values import (
    METHODS,
    NAMES,
    Agent,
    ByName,
    Conversation,
    Disagreement,
    Found,
    Page,
    Refusal,
    Refused,
    Session,
    Untold,
    agree,
    details_of,
    integrity_of,
    items_in,
    join,
    label_from,
    random_id,
)
from tests.support.methods import FOR_BOTH, FOR_SESSIONS, POLICIES
from tests.support.services import Outcome, reason_of
from tests.support.statuses import CODES


class Model(Memories, Passages, Prompts, Versions, Sharing, Sessions, Agents, Desk):
    """One world as it must be. Both worlds may share *learned*."""

    def __init__(self, learned: Learned) -> None:
        super().__init__(learned)
        self._unnamed: dict[str, str] = {}
        self._taint = 0

    def expect(self, operation: str, token: str, rpc: str, requests: Sequence[bytes]) -> Any:
        """The answer that must come: a message, a Refusal, Found or Untold. Its effect has taken place."""
        self._operation, self._token, self._made = operation, token, 0
        self._unnamed = {}
        try:
            self._admit(token, rpc)
            answer = getattr(self, f"_{rpc}")(*self._caller(token, rpc), self._parse(rpc, requests))
            if token not in self.hosts and hasattr(answer, "integrity"):  # that of the session, whatever is in it
                answer.integrity = integrity_of(self._taint)
            return answer
        except Refused as refused:
            return Refusal(refused.reason, refused.detail)

    def learn(self, expected: Any, rpc: str, outcome: Outcome) -> None:
        """Hold *outcome* against what was expected. Raises Disagreement."""
        actual = reason_of(outcome) or outcome.code.name
        wanted = expected.reason if isinstance(expected, Refusal) else "OK"
        code = CODES.get(wanted, wanted)
        if (outcome.code.name, actual) != (code, wanted):
            raise Disagreement(f"{rpc}: {wanted} expected, but got {outcome.code.name} {actual}")
        if wanted == "OK":
            answer = GetMessageClass(METHODS[rpc].output_type).FromString(outcome.response)
            self._learn(expected, rpc, answer)
        elif expected.detail is not None:
            _hold_detail_against(expected.detail, outcome)

    # What comes before any method.

    def _admit(self, token: str, rpc: str) -> None:
        if token not in self.hosts and self.level(token) is None:
            raise Refused("CREDENTIAL_EXPIRED" if self.has_expired(token) else "CREDENTIAL_INVALID")
        if rpc not in METHODS:
            raise Refused("METHOD_UNKNOWN")
        if rpc not in FOR_BOTH and (rpc in FOR_SESSIONS) == (token in self.hosts):
            raise Refused("PRINCIPAL_NOT_ALLOWED")
        if POLICIES[rpc].flow is Flow.WRITE and self.sessions[self.tokens[token]].read_only:
            raise Refused("SESSION_READ_ONLY")

    def _caller(self, token: str, rpc: str) -> Sequence[Any]:
        if token in self.hosts:
            return self.hosts[token]
        self._taint = self.level(token) or 0
        return self.sessions[self.tokens[token]], self._taint

    @classmethod
    def _parse(cls, rpc: str, requests: Sequence[bytes]) -> Any:
        """The request. A stream is checked message by message, when it comes to each."""
        if rpc == "ImportPassages":
            return map(cls._parse_one, requests)
        request = cls._parse_one(requests[0], rpc)
        if request is None:
            raise Refused("FIELD_INVALID")
        return request

    @staticmethod
    def _parse_one(request: bytes, rpc: str = "ImportPassages") -> Any:
        try:
            message: Any = GetMessageClass(METHODS[rpc].input_type).FromString(request)
        except DecodeError:
            return None
        return message if keeps_the_rules(message) else None

    # What an answer teaches.

    def _learn(self, expected: Any, rpc: str, answer: Any) -> None:
        if hasattr(answer, "next_page_token") and answer.next_page_token:
            filters, (taint, last) = self._page[0], self._page[1][-2:]
            self._learned.pages[answer.next_page_token] = Page(self._token, rpc, filters, taint or 0, last)
        if isinstance(expected, Untold):
            levels = [event.classification for event in answer.audit_events]
            agree(rpc, all(0 < level <= expected.ceiling for level in levels), "an event above the ceiling")
        elif isinstance(expected, Found):
            self._learn_found(expected, rpc, answer)
        else:
            known: Any = type(answer)()
            known.CopyFrom(expected)
            self._fill(rpc, known, answer)
            agree(rpc, known == answer, f"expected {known}but got {answer}")
            self._adopt(rpc, answer)

    def _fill(self, rpc: str, known: Any, answer: Any) -> None:
        """Copy into *known* what could not be predicted, if it agrees with the earlier answers."""
        if getattr(known, "next_page_token", "") and answer.next_page_token:
            known.next_page_token = answer.next_page_token
        if rpc == "ListPassages":
            _order(known.passages, answer.passages)
        for one, other in zip(list(items_in(known)), items_in(answer), strict=False):
            self._name(one, other)
            self._bind(rpc, one, other)
        for one, other in zip(getattr(known, "versions", ()), getattr(answer, "versions", ()), strict=False):
            self._bind(rpc, one, other)
        if getattr(known, "token", "") and re.fullmatch("mun_s_[0-9]+_[A-Za-z0-9_-]{43}_[0-9a-f]{8}", answer.token):
            known.token = answer.token
        if hasattr(known, "session"):
            known.session.session_id = random_id(known.session.session_id, answer.session.session_id)
            known.session.conversation_id = random_id(known.session.conversation_id, answer.session.conversation_id)
        if hasattr(known, "agent"):
            known.agent.agent_id = random_id(known.agent.agent_id, answer.agent.agent_id)
        for one, other in zip(getattr(known, "sessions", ()), getattr(answer, "sessions", ()), strict=False):
            self._close_expired(one, other)
        if rpc == "GetSession":
            self._close_expired(known.session, answer.session)
        if rpc == "GetAgent":  # what is stored, which the worlds compare
            known.storage.extend(answer.storage)
        if hasattr(known, "release"):
            self._fill_release(rpc, known.release, answer.release)
        for one, other in zip(getattr(known, "releases", ()), getattr(answer, "releases", ()), strict=False):
            self._fill_release(rpc, one, other)
        if rpc == "RenderPrompt":
            same = self._learned.texts.setdefault(answer.etag, self._rendered) == self._rendered
            only = self._text_etags.setdefault(self._rendered, answer.etag) == answer.etag
            agree(rpc, same and only and bool(answer.etag), "the etag is not the text's")
            known.etag = answer.etag

    def _close_expired(self, known: Any, actual: Any) -> None:
        """An expired session is closed when its token is used again, unless a worker still remembers the token."""
        if known.expire_time.ToDatetime(tzinfo=UTC) <= self.now and actual.close_time == known.expire_time:
            known.close_time.CopyFrom(actual.close_time)

    def _name(self, known: Any, actual: Any) -> None:
        """Give an item the id that the server made for it."""
        name = NAMES[known.DESCRIPTOR.name]
        placeholder = getattr(known, name)
        if type(known) is type(actual) and (made := random_id(placeholder, getattr(actual, name))) != placeholder:
            self._unnamed[placeholder] = made
            setattr(known, name, made)

    def _bind(self, rpc: str, known: Any, actual: Any) -> None:
        """One version, one etag, and the other way round."""
        if not hasattr(known, "etag") or not hasattr(actual, "etag"):
            return
        same = self._versions.setdefault(known.etag, actual.etag) == actual.etag
        only = self._etags.setdefault(actual.etag, known.etag) == known.etag
        agree(rpc, same and only, f"the etag of {known} is not its version's")
        self._learned.etags.setdefault(actual.etag, known.etag)
        known.etag = actual.etag

    def _adopt(self, rpc: str, answer: Any) -> None:
        if self._unnamed:
            agent = self.sessions[self.tokens[self._token]].agent
            _rename(agent.notes, self._unnamed)
            _rename(agent.passages, self._unnamed)
            self._unnamed = {}
        if rpc == "RequestRelease":
            self._adopt_release(answer.release.release_id)
        if rpc == "CreateAgent":
            tenant = self.hosts[self._token][0]
            shown = agent_pb2.Agent.FromString(answer.agent.SerializeToString())
            self.agents[tenant, answer.agent.agent_id] = Agent(shown, blocks=self._first_blocks)
        if rpc in {"OpenSession", "ResetSession"}:
            shown = answer.session
            tenant = self.hosts[self._token][0]
            agent = self.agents[tenant, shown.agent_id]
            name = (shown.conversation_id, shown.ceiling)
            agent.conversations.setdefault(name, Conversation(1)).taint = label_from(shown.taint, shown.integrity)
            times = (shown.create_time.ToDatetime(tzinfo=UTC), shown.expire_time.ToDatetime(tzinfo=UTC))
            self.sessions[shown.session_id] = Session(tenant, agent, *name, *times, shown.read_only)
            self.tokens[answer.token] = shown.session_id

    def _learn_found(self, expected: Found, rpc: str, answer: Any) -> None:
        items = list(items_in(answer))
        scored = [
            (getattr(item, NAMES[item.DESCRIPTOR.name]), result.score)
            for item, result in zip(items, answer.results, strict=True)
        ]
        names = [name for name, _ in scored]
        agree(rpc, set(names) <= set(expected.items), f"{names} are found, not only {list(expected.items)}")
        agree(rpc, len(set(names)) == len(names) <= expected.limit, "too many")
        agree(rpc, expected.matching <= set(names) or len(names) == expected.limit, f"not all of {expected.matching}")
        # Of equal scores, the more exact or more relevant come first, which is not predicted; then the ids decide.
        scores = [score for _, score in scored]
        agree(rpc, scores == sorted(scores, reverse=True), "not in order")
        agree(rpc, all(score > 0 for _, score in scored), "a match that is none")
        agree(rpc, all(expected.least <= one.relevance <= 1 for one in answer.results), "a relevance out of range")
        for name, item in zip(names, items, strict=True):
            known = type(item).FromString(expected.items[name].SerializeToString())
            self._bind(rpc, known, item)
            agree(rpc, known == item, f"expected {known}but got {item}")
        agree(rpc, answer.classification == join(items), "the level is wrong")
        agree(rpc, answer.integrity == integrity_of(self._taint), "the integrity is not that of the session")
        agree(rpc, answer.semantic == expected.semantic, f"semantic is {expected.semantic}")
        agree(rpc, expected.usage is None or expected.usage == answer.usage, f"the usage is {expected.usage}")


def _rename(items: ByName, names: dict[str, str]) -> None:
    for placeholder in names.keys() & items.keys():
        items[names[placeholder]] = items.pop(placeholder)


def _order(known: Any, actual: Any) -> None:
    """Order passages of one time by id, the highest first. Ids that the server made are found by the texts."""
    ids = sorted((passage.passage_id for passage in actual), reverse=True)
    unnamed = [passage for passage in actual if passage.passage_id not in {one.passage_id for one in known}]

    def place(passage: Any) -> tuple[int, int, int]:
        alike = [one for one in unnamed if (one.content, one.thread) == (passage.content, passage.thread)]
        found = passage.passage_id if passage.passage_id in ids else alike[0].passage_id if alike else ""
        times = (-passage.event_time.ToNanoseconds(), -passage.create_time.ToNanoseconds())
        return (*times, ids.index(found) if found else len(ids))

    known.sort(key=place)


def _hold_detail_against(expected: Any, outcome: Outcome) -> None:
    """The detail must be there once, and as it was expected."""
    details = [type(expected).FromString(one.value) for one in details_of(outcome) if one.Is(expected.DESCRIPTOR)]
    if len(details) != 1:
        raise Disagreement(f"{len(details)} details {expected.DESCRIPTOR.name}")
    if hasattr(expected, "over_by_chars"):
        hold_against(expected, details[0])
    elif details[0] != expected:
        raise Disagreement(f"expected {expected}but got {details[0]}")
