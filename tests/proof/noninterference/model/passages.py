"""Archival passages, as they must be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from google.protobuf.message import Message

from muniment.v1 import passage_pb2
from muniment.v1 import passage_service_pb2 as pb
from tests.proof.noninterference.model.ground import Ground, newer_below
from tests.proof.noninterference.model.memories import tagged
from tests.proof.noninterference.rules import key_of, tags_of, time_of, words_of
from tests.proof.noninterference.values import Found, Levels, Refused, Session, Version, join, labeled, page_size, stamp

_BATCH = 100
Named = tuple[str, int, Version]


class Passages(Ground):
    """PassageService. A passage is written once."""

    def _StorePassage(self, session: Session, taint: int, request: pb.StorePassageRequest) -> Message:
        _check(request)
        passage, _ = self._store(session, taint, request, 0)
        return pb.StorePassageResponse(passage=passage)

    def _ImportPassages(
        self, session: Session, taint: int, requests: Iterable[pb.ImportPassagesRequest | None]
    ) -> Message:
        """*requests* end with None where a message is none of this method, or breaks a rule."""
        count = Counter[bool]()
        reason = ""
        for batch, broken in _batches(requests):
            stored = Counter[bool]()
            for position, request in enumerate(batch):
                try:
                    stored[self._store(session, taint, request, position)[1]] += 1
                except Refused as refused:
                    reason = refused.reason
                    break
            count += stored
            reason = reason or ("FIELD_INVALID" if broken else "")
            if reason:
                progress = passage_pb2.ImportProgress(stored_count=count[True], existing_count=count[False])
                raise Refused(reason, progress)
        return pb.ImportPassagesResponse(stored_count=count[True], existing_count=count[False])

    def _store(
        self, session: Session, taint: int, request: pb.StorePassageRequest, position: int
    ) -> tuple[passage_pb2.Passage, bool]:
        """The passage as it is stored, and whether it was not there before."""
        passages = session.agent.passages
        seen = self.seen(passages, request.passage_id, taint)
        if seen:
            top = seen[max(seen)]
            if top.content != request.content:
                raise Refused("PASSAGE_EXISTS")
            return _shown(request.passage_id, {max(seen): top}), False
        expires = time_of(request, "expire_time")
        if expires is not None and expires <= self.now:
            raise Refused("FIELD_INVALID")
        version = self._new(
            request.content,
            position,
            tags=tags_of(request.tags),
            expires=expires,
            thread=_thread(request.thread),
            author=request.author,
            event_time=time_of(request, "event_time") or self.now + timedelta(microseconds=position),
        )
        version.updated = self.now
        name = request.passage_id or self._new_name()
        if expired := passages.setdefault(name, {}).get(taint):
            session.agent.deleted[4].setdefault((name, taint), []).append(expired)
        passages[name][taint] = version
        return _shown(name, {taint: version}), True

    def _GetPassage(self, session: Session, taint: int, request: pb.GetPassageRequest) -> Message:
        seen = self.seen(session.agent.passages, request.passage_id, taint)
        if not seen:
            raise Refused("PASSAGE_NOT_FOUND")
        return pb.GetPassageResponse(passage=_shown(request.passage_id, seen))

    def _DeletePassage(self, session: Session, taint: int, request: pb.DeletePassageRequest) -> Message:
        passages = session.agent.passages
        revealed = self._delete(
            passages, request.passage_id, taint, "", not_found="PASSAGE_NOT_FOUND", deleted=session.agent.deleted[4]
        )
        return pb.DeletePassageResponse(**revealed)

    def _DeletePassages(self, session: Session, taint: int, request: pb.DeletePassagesRequest) -> Message:
        if not (request.tag or request.thread):
            raise Refused("FIELD_INVALID")
        tags, thread = tags_of([request.tag] if request.tag else []), _thread(request.thread)
        count = self._delete_all(
            session.agent.passages,
            taint,
            lambda one: tagged(one, tags, any_tag=False) and thread in ("", one.thread),
            deleted=session.agent.deleted[4],
        )
        return pb.DeletePassagesResponse(deleted_count=count)

    def _ListPassages(self, session: Session, taint: int, request: pb.ListPassagesRequest) -> Message:
        filters = _filters(request)
        last = self._last("ListPassages", request.page_token, filters, taint)
        passages = self._wanted(session, taint, request)
        wanted = sorted((one for one in passages if last is None or _place(one) < last), key=_place, reverse=True)
        page = wanted[: page_size(request.page_size)]
        more = self._more(page != wanted, filters, taint, page and _place(page[-1]))
        shown = [_shown(name, self.seen(session.agent.passages, name, taint)) for name, _, _ in page]
        return pb.ListPassagesResponse(passages=shown, next_page_token=more, classification=join(shown))

    def _SearchPassages(self, session: Session, taint: int, request: pb.SearchPassagesRequest) -> Found:
        words_of(request.query)
        wanted = self._wanted(session, taint, request)
        texts = {name: version.content for name, _, version in wanted}
        shown = {name: _shown(name, self.seen(session.agent.passages, name, taint)) for name, _, _ in wanted}
        return self._found(session.agent, request.query, texts, shown, request.max_results, least=request.min_relevance)

    def _wanted(
        self, session: Session, taint: int, request: pb.ListPassagesRequest | pb.SearchPassagesRequest
    ) -> list[Named]:
        """What is visible and passes the filters: after the shadow."""
        tags, any_tag, thread, start, end = _filters(request)
        return [
            (name, level, version)
            for name, level, version in self.all_seen(session.agent.passages, taint)
            if tagged(version, list(tags), any_tag=any_tag)
            and thread in ("", version.thread)
            and (start is None or start <= _event_time(version))
            and (end is None or _event_time(version) < end)
        ]


def _batches(
    requests: Iterable[pb.ImportPassagesRequest | None],
) -> Iterator[tuple[list[pb.StorePassageRequest], bool]]:
    """What is stored at once: no id twice. With the last one, whether a message that breaks a rule ended the stream."""
    batch: list[pb.StorePassageRequest] = []
    for request in requests:
        if request is None or not _keeps_the_form(request.passage):
            yield batch, True
            return
        named = request.passage.passage_id
        if len(batch) == _BATCH or (named and named in [one.passage_id for one in batch]):
            yield batch, False
            batch = []
        batch.append(request.passage)
    yield batch, False


def _keeps_the_form(request: pb.StorePassageRequest) -> bool:
    try:
        _check(request)
    except Refused:
        return False
    return True


def _check(request: pb.StorePassageRequest) -> None:
    """What of a passage is checked before it is looked for."""
    tags_of(request.tags)
    _thread(request.thread)
    if "\n" in request.author:
        raise Refused("FIELD_INVALID")


def _thread(thread: str) -> str:
    return key_of(thread) if thread else ""


def _filters(
    request: pb.ListPassagesRequest | pb.SearchPassagesRequest,
) -> tuple[tuple[str, ...], bool, str, datetime | None, datetime | None]:
    times = time_of(request, "start_time"), time_of(request, "end_time")
    return (tuple(tags_of(request.tags)), request.tag_match == 2, _thread(request.thread), *times)


def _event_time(version: Version) -> datetime:
    assert version.event_time is not None
    return version.event_time


def _place(passage: Named) -> tuple[datetime, datetime, str]:
    name, _, version = passage
    return _event_time(version), version.created, name


def _shown(passage_id: str, seen: Levels) -> passage_pb2.Passage:
    version = seen[max(seen)]
    return passage_pb2.Passage(
        passage_id=passage_id,
        content=version.content,
        tags=version.tags,
        thread=version.thread,
        author=version.author,
        event_time=stamp(version.event_time),
        **labeled(max(seen)),
        create_time=stamp(version.created),
        expire_time=stamp(version.expires),
        newer_below=newer_below(seen),
    )
