"""A session for the OpenAI Agents SDK: the history of one conversation.

`MunimentSession` is an `agents.memory.Session`, for `Runner.run(…, session=…)`. The extra `muniment[openai-agents]`
brings the SDK, of which this imports nothing. An item of the history is a passage with the item's JSON and the tag
`muniment:openai-agents`, in the thread of the session id. So the history can be searched together with the agent's
other passages. Those are never part of it, in its thread or not: a text that a tool stored must not come back as what
the system or the user said. So a tool of a model must not choose a tag that begins with `muniment:`.

Levels apply. Items above the taint do not exist, and new ones are stored at the taint. Items below the taint cannot be
deleted: `pop_item`, if the newest item is one, and `clear_session`, if there is any, raise `LowerItems` and change
nothing. An item has at most 256 KiB of JSON: `add_items` stores the others, and raises ValueError.
"""

from __future__ import annotations

import asyncio
import unicodedata
import uuid
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from muniment._blocking import require_blocking
from muniment._imports import import_all
from muniment._json import json_text, object_of
from muniment._listing import undisturbed
from muniment._reserved import RESERVED
from muniment.errors import PassageNotFound, WriteLevelMismatch
from muniment.session import SessionClient
from muniment.values import NewPassage, Passage

MAX_PAGE_SIZE = 250
MAX_ITEM_BYTES = 256 * 1024
TAG = f"{RESERVED}openai-agents"
"""The tag of an item of a history."""


class LowerItems(Exception):
    """Items were written at a lower classification than the conversation has now, so they cannot be deleted."""


class _Stored(NamedTuple):
    passage: Passage
    item: dict[str, Any]


class MunimentSession:
    """The history of a conversation, up to the taint of Muniment's session.

    *session_id* names the conversation among those of the agent. It must not be empty, and must be in Unicode's
    Normalization Form C. *session_settings* is a `SessionSettings`, whose limit is that of `get_items`. It does not
    close Muniment's session. Calls run in threads, so it may be used from any event loop.
    """

    def __init__(self, session_id: str, session: SessionClient, *, session_settings: Any = None) -> None:
        require_blocking(session)
        # An empty thread is no filter: the history would be that of every conversation, and could be cleared.
        if not session_id:
            raise ValueError("session_id must not be empty")
        # Threads are stored in NFC: two ids that differ only in that would be one conversation.
        if not unicodedata.is_normalized("NFC", session_id):
            raise ValueError("session_id must be in Unicode's Normalization Form C")
        self.session_id = session_id
        self.session_settings = session_settings
        self._session = session

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items in order; with a *limit*, the newest."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        newest = await asyncio.to_thread(self._newest, limit)
        return [stored.item for stored in reversed(newest)]

    async def add_items(self, items: Sequence[Any]) -> None:
        """Add items at the end. ValueError: some have more than 256 KiB of JSON; all others were added."""
        # All of them, or none: JSON that cannot be made is found before anything is stored.
        passages = [NewPassage(json_text(item), [TAG], self.session_id, passage_id=str(uuid.uuid4())) for item in items]
        fitting = [each for each in passages if len(each.content.encode()) <= MAX_ITEM_BYTES]
        if fitting:
            # They have ids: where the taint is raised meanwhile, those that are stored already are not stored again.
            await asyncio.to_thread(undisturbed, lambda: import_all(self._session, fitting))
        if len(fitting) < len(passages):
            left_out = len(passages) - len(fitting)
            raise ValueError(f"items with more than 256 KiB of JSON were not stored: {left_out}. All others were")

    async def pop_item(self) -> Any | None:
        """Delete and return the newest item. Returns None if there are no items. LowerItems: it is below the taint."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Delete all items. LowerItems: some are below the taint; then none was deleted."""
        await asyncio.to_thread(self._clear)

    def _newest(self, limit: int | None) -> list[_Stored]:
        if limit is not None and limit <= 0:
            return []
        size = min(limit or MAX_PAGE_SIZE, MAX_PAGE_SIZE)
        return undisturbed(lambda: list(islice(self._items(size), limit)))

    def _items(self, page_size: int) -> Iterator[_Stored]:
        """The items, newest first. A passage that is not a JSON object is skipped: another program wrote it."""
        for passage in self._session.list_passages(tags=[TAG], thread=self.session_id, page_size=page_size):
            if (item := object_of(passage.content)) is not None:
                yield _Stored(passage, item)

    def _pop(self) -> Any | None:
        while newest := self._newest(1):
            if self._delete(newest[0].passage):
                return newest[0].item
        return None

    def _clear(self) -> None:
        items = [stored.passage for stored in self._newest(None)]
        own = self._session.get_session()
        if any((item.classification, item.integrity) != (own.taint, own.integrity) for item in items):
            raise LowerItems("The conversation has items of a lower classification, so it cannot be cleared.")
        # At most 1,000 a call. What else is stored in the thread stays.
        while self._session.delete_passages(tag=TAG, thread=self.session_id).more:
            pass

    def _delete(self, item: Passage) -> bool:
        """Whether it was still there."""
        try:
            self._session.delete_passage(item.passage_id)
        except PassageNotFound:
            return False
        except WriteLevelMismatch:
            raise LowerItems("The item has a lower classification, so it cannot be deleted.") from None
        return True
