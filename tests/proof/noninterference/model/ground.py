"""What all nouns of the model stand on: sessions and agents, versions at levels, pages, etags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from google.protobuf.message import Message

from muniment.v1 import version_pb2
from tests.proof.noninterference.rules import words_of
from tests.proof.noninterference.values import (
    LATER,
    Agent,
    ByName,
    Deleted,
    Found,
    Levels,
    Page,
    Refused,
    Session,
    Version,
    exact_words_of,
    flows,
    integrity_of,
    labeled,
    level_of,
    stamp,
    stems_of,
)

AnyMessage = TypeVar("AnyMessage", bound=Message)


@dataclass
class Learned:
    """What the responses of both worlds have shown: tokens and etags are valid in both."""

    pages: dict[str, Page] = field(default_factory=dict)
    etags: dict[str, str] = field(default_factory=dict)
    """The version that an etag names."""
    texts: dict[str, str] = field(default_factory=dict)
    """The text that an etag names."""


class Ground:
    """One world as it must be. Both worlds may share *learned*."""

    def __init__(self, learned: Learned) -> None:
        self.now = datetime.min.replace(tzinfo=UTC)
        self.hosts: dict[str, tuple[str, int]] = {}
        self.agents: dict[tuple[str, str], Agent] = {}
        self.sessions: dict[str, Session] = {}
        self.tokens: dict[str, str] = {}
        self._learned = learned
        self._etags: dict[str, str] = {}
        self._versions: dict[str, str] = {}
        self._operation = ""
        self._token = ""
        self._made = 0
        self._text_etags: dict[str, str] = {}
        self._rendered = ""
        self._first_blocks: ByName = {}
        self._page: tuple[tuple[object, ...], Any] = ((), None)

    def session(self, token: str) -> Session | None:
        """The open session that holds *token*."""
        session_id = self.tokens.get(token, "")
        return self.sessions[session_id] if self.open_level(session_id) is not None else None

    def level(self, token: str) -> int | None:
        """The taint of the open session that holds *token*."""
        return self.open_level(self.tokens.get(token, ""))

    def open_level(self, session_id: str) -> int | None:
        """The taint of an open session."""
        level = self.unclosed_level(session_id)
        return level if level is not None and self.sessions[session_id].expires > self.now else None

    def unclosed_level(self, session_id: str) -> int | None:
        """The taint of a session that is open or has only expired."""
        session = self.sessions.get(session_id)
        if session is None or session.closed:
            return None
        return session.conversation.taint

    def has_expired(self, token: str) -> bool:
        """Whether the session that held *token* has expired, and was not closed before. A reset closes it later."""
        session = self.sessions.get(self.tokens.get(token, ""))
        return session is not None and session.expires <= (session.closed or self.now)

    def outlived(self, token: str, page_token: str) -> bool:
        """Whether the session of *token* was raised since it was given *page_token*."""
        level = self.level(token)
        return (
            level is not None and page_token in self._learned.pages and self._learned.pages[page_token].taint != level
        )

    def _agent(self, tenant: str, ceiling: int, agent_id: str) -> Agent:
        """An agent that a host key of this ceiling knows."""
        found = self.agents.get((tenant, agent_id))
        if found is None or found.shown.known_from > ceiling:
            raise Refused("AGENT_NOT_FOUND")
        return found

    def _reached(self, tenant: str, ceiling: int, *agent_ids: str) -> list[Agent]:
        """Agents whose ceiling a host key reaches. The refusal is about those that it knows."""
        found = [self.agents.get((tenant, agent_id)) for agent_id in agent_ids]
        if any(one is not None and one.shown.known_from <= ceiling < one.shown.ceiling for one in found):
            raise Refused("AGENT_ABOVE_CEILING")
        return [self._agent(tenant, ceiling, agent_id) for agent_id in agent_ids]

    # Versions.

    def seen(self, items: ByName, name: str, taint: int) -> Levels:
        """The live versions of *name* at or below *taint*."""
        return {at: one for at, one in items.get(name, {}).items() if flows(at, taint) and self._lives(one)}

    def all_seen(self, items: ByName, taint: int) -> Iterator[tuple[str, int, Version]]:
        """The highest visible version of each name, with its level."""
        for name in sorted(items):
            if seen := self.seen(items, name, taint):
                yield name, max(seen), seen[max(seen)]

    def _lives(self, version: Version) -> bool:
        return version.expires is None or version.expires > self.now

    def _new(self, content: str, position: int = 0, **others: Any) -> Version:
        """The first version of a new item."""
        self._made += 1
        symbol = f"{self._operation}/{self._made}"
        time = self.now + timedelta(microseconds=position)
        return Version(symbol, 1, content, time, time, **others)

    def _overwrite(
        self, own: Version, content: str, tags: Sequence[str] = (), expires: datetime | None = None, position: int = 0
    ) -> None:
        """The next version of an item, unless it is the same."""
        if (own.content, own.tags, own.expires) != (content, list(tags), expires):
            own.revise(self.now + timedelta(microseconds=position))
            own.content, own.tags, own.expires = content, list(tags), expires

    def _new_name(self) -> str:
        """Stands for an id that the server makes."""
        return f"{LATER}{self._operation}/{self._made}"

    def _is_stale(self, etag: str, version: Version | None) -> bool:
        """Whether *etag* is given, and not that of *version*."""
        known = self._etags.get(etag) or self._learned.etags.get(etag)
        return bool(etag) and (version is None or version.etag != known)

    def _delete(
        self, items: ByName, name: str, taint: int, etag: str, *, not_found: str, deleted: Deleted | None = None
    ) -> Any:
        """Delete the own version, which goes to *deleted*; return the fields that say what is revealed."""
        seen = self.seen(items, name, taint)
        if taint not in seen:
            raise Refused("WRITE_LEVEL_MISMATCH" if seen else not_found)
        if self._is_stale(etag, seen[taint]):
            raise Refused("ETAG_STALE")
        version = items[name].pop(taint)
        if deleted is not None:
            deleted.setdefault((name, taint), []).append(version)
        return revealed(seen, taint)

    def _delete_all(self, items: ByName, taint: int, is_meant: Callable[[Version], bool], *, deleted: Deleted) -> int:
        """Delete the own-level versions that are meant; return how many."""
        meant = [name for name in items if taint in self.seen(items, name, taint) and is_meant(items[name][taint])]
        for name in meant:
            deleted.setdefault((name, taint), []).append(items[name].pop(taint))
        return len(meant)

    @staticmethod
    def _found(
        agent: Agent,
        query: str,
        texts: Mapping[str, str],
        items: Mapping[str, Message],
        most: int,
        *,
        least: float,
        **others: Any,
    ) -> Found:
        """What may be found: any of *items*, by parts of words. Those with a word of *query* must be, unless they must
        have a *least* relevance, which is not predicted.

        In another form only where the agent's language was never stated: another stemmer may not know the two as one.
        """
        stems = exact_words_of if agent.shown.language else stems_of
        asked = stems(words_of(query))
        matching = {name for name in items if not least and asked & stems(texts[name])}
        semantic = bool(items)  # what is visible has its vector
        return Found(matching, items, min(most or 10, 100), semantic, least, **others)

    # Pages.

    def _last(self, rpc: str, page_token: str, filters: tuple[object, ...], taint: int) -> Any:
        if not page_token:
            return None
        page = self._learned.pages.get(page_token)
        if page is None or (page.caller, page.rpc, page.filters) != (self._token, rpc, filters):
            raise Refused("PAGE_TOKEN_INVALID")
        if page.taint != taint:
            raise Refused("TAINT_CHANGED")
        return page.last

    def _more(self, more: bool, filters: tuple[object, ...], taint: int, last: Any) -> str:
        self._page = (filters, (taint, last))
        return LATER if more else ""


def newer_below(seen: Levels) -> version_pb2.NewerBelow | None:
    """What the highest of some versions says if a lower one is the newest."""
    newest = max(seen, key=lambda level: (seen[level].updated, level))
    if newest == max(seen):
        return None
    return version_pb2.NewerBelow(**labeled(newest), update_time=stamp(seen[newest].updated))


def revealed(seen: Levels, taint: int) -> dict[str, Any]:
    """What an answer says of the version that is seen once that of *taint* is gone."""
    label = max((at for at in seen if at != taint), default=0)
    return {"revealed": level_of(label), "revealed_integrity": integrity_of(label)}
