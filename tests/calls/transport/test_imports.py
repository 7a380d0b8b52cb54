"""ImportPassages: a stream that is stored in its order, in batches, at one taint, or says how far it came."""

from __future__ import annotations

import queue
import random
import threading
import time
import uuid
from types import SimpleNamespace

import grpc
import pytest

from muniment.v1 import passage_pb2, passage_service_pb2
from muniment_server.domain.errors import Conflict
from muniment_server.items import item_store
from muniment_server.passages import repository
from muniment_server.transport import dispatch
from muniment_server.transport.admission import cutoff
from muniment_server.transport.admission.calls import AdmittedStream
from tests.support.answers import (
    INTERNAL,
    LEVELS,
    PUBLIC,
    RESTRICTED,
    UP,
    detail,
    events,
    fields_of,
    heavy,
    in_future,
    pages,
)
from tests.support.commands import wait_until
from tests.support.concurrency import locked, together, wait_until_blocked
from tests.support.services import Caller, failure_of, in_flight, reason_of, set_gate

PATH = "/muniment.v1.PassageService/ImportPassages"


class Stream:
    """A stream of ImportPassages that is sent bit by bit."""

    def __init__(self, caller, timeout=30.0):
        self._messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        stub = caller.channel.stream_unary(
            PATH, response_deserializer=passage_service_pb2.ImportPassagesResponse.FromString
        )
        self.call = stub.future(iter(self._messages.get, None), metadata=caller.metadata, timeout=timeout)

    def send(self, *passages):
        """Send these: fields of a passage, or bytes as they are."""
        for passage in passages:
            if not isinstance(passage, bytes):
                passage = passage_service_pb2.ImportPassagesRequest(passage=passage).SerializeToString()
            self._messages.put(passage)

    def end(self):
        """Send no more; return how many were stored and how many were there."""
        self._messages.put(None)
        answer = self.call.result()
        return answer.stored_count, answer.existing_count

    def failure(self):
        """What is observed of its end, which must be a failure."""
        outcome = failure_of(self.call.result)
        self._messages.put(None)  # lets the thread go that sends
        return outcome

    def close(self):
        self.call.cancel()
        self._messages.put(None)


@pytest.fixture
def stream():
    """Opens streams of a caller, and ends them all after the test."""
    opened = []

    def open_stream(caller, *passages, **named):
        opened.append(Stream(caller, **named))
        opened[-1].send(*passages)
        return opened[-1]

    yield open_stream
    for each in opened:
        each.close()


def some(count, **fields):
    """Passages with the contents 0, 1, …"""
    return [{"content": str(number), **fields} for number in range(count)]


def with_ids(count, content="text"):
    return [{"content": content, "passage_id": str(uuid.uuid4())} for _ in range(count)]


def stored(session):
    """The passages that a session sees, in the order in which they were stored."""
    found = [passage for page in pages(session.list_passages, page_size=250) for passage in page.passages]
    return sorted(found, key=lambda passage: passage.create_time.ToNanoseconds())


def contents(session):
    return [passage.content for passage in stored(session)]


def progress(outcome):
    """(stored, existing) in the detail of a failure; None when there is none."""
    counted = detail(outcome, passage_pb2.ImportProgress)
    return (counted.stored_count, counted.existing_count)


def has_progress(outcome):
    return any(b"ImportProgress" in value for name, value in outcome.trailers if name.endswith("-bin"))


def counts(answer):
    return answer.stored_count, answer.existing_count


def wait_for(session, count):
    """Until so many passages are stored; asks the server, which says when."""
    end = time.monotonic() + 60
    while len(stored(session)) < count:
        assert time.monotonic() < end


MAX_PAGES_AFTER_A_SAVE = 128 // 8 + 1
"""As many pages of entries as a save lets wait: it merges them when it finds more than that."""


def wordy(number):
    """A text with many n-grams, other ones for each *number*."""
    return " ".join(f"{chr(97 + number % 26)}{number * 31 + place:x}quartz" for place in range(30))


def merge_waiting(admin):
    """Merge the index entries that wait; return how many pages there were."""
    (pages,) = admin.execute("SELECT gin_clean_pending_list('muniment_public.chunk_grams')").fetchone()
    return pages


def batches(service):
    """How many passages each transaction stored, in order."""
    with service.database.as_owner() as owner:
        return [
            count
            for (count,) in owner.execute(
                "SELECT count(*) FROM muniment_public.audit WHERE method = 'ImportPassages'"
                " GROUP BY written_by ORDER BY written_by"
            ).fetchall()
        ]


# --- What is stored


@pytest.mark.parametrize("level", LEVELS)
def test_a_stream_is_stored_at_the_taint(at, level):
    assert counts(at(level).import_passages(*some(3))) == (3, 0)
    assert [(passage.content, passage.classification) for passage in stored(at(level))] == [
        ("0", level), ("1", level), ("2", level),
    ]  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
def test_an_empty_stream_stores_nothing(at, level):
    assert counts(at(level).import_passages()) == (0, 0)
    assert stored(at(level)) == []


def test_what_is_streamed_is_as_what_is_stored_one_by_one(at):
    fields = {
        "content": "e\u0301 \\u0000 {\"a\": 'b'} நினைவு \U0010ffff\n",
        "tags": [" b", "a", "b", 'x"\\,{}'],
        "thread": "t 1",
        "author": 'Ann "Ä" \\',
        "event_time": {"seconds": -62135596800, "nanos": 123_456_789},
        "expire_time": in_future(days=1),
    }
    one = at(PUBLIC).store_passage(**fields).passage
    at(PUBLIC).import_passages(fields)
    (other,) = [passage for passage in stored(at(PUBLIC)) if passage.passage_id != one.passage_id]

    assert other.create_time.ToDatetime() > one.create_time.ToDatetime()
    for passage in (one, other):
        passage.ClearField("passage_id")
        passage.ClearField("create_time")
    assert other == one


def test_the_order_of_the_stream_is_kept(at):
    """Over three batches: each create time is later than the one before, and so is each event."""
    at(PUBLIC).import_passages(*some(250))
    found = stored(at(PUBLIC))
    times = [passage.create_time.ToNanoseconds() for passage in found]

    assert [passage.content for passage in found] == [str(number) for number in range(250)]
    assert times == sorted(set(times))
    assert all(passage.event_time == passage.create_time for passage in found)


@pytest.mark.parametrize(
    ("count", "size", "wanted"),
    [
        (1, 1, [1]), (100, 1, [100]), (101, 1, [100, 1]), (250, 1, [100, 100, 50]), (9, 65536, [4, 4, 1]),
        (11, 100_000, [3, 3, 3, 2]), (2, 262_144, [1, 1]),
    ],
)  # fmt: skip
def test_each_batch_of_100_or_of_256_kib_commits(service, count, size, wanted):
    service.session(PUBLIC).import_passages(*({"content": heavy(size)} for _ in range(count)))

    assert batches(service) == wanted


@pytest.mark.plain_postgres("asks for the statistics of an index, which the nodes have")
def test_an_import_into_a_new_database_reads_no_index_that_finds_all_chunks_of_the_agent(service):
    """Without statistics it looks as good as the primary key: each chunk would cost more than the one before."""
    with service.database.as_owner() as owner, service.database.as_admin() as admin:
        owner.execute("ALTER TABLE muniment_public.chunk SET (autovacuum_enabled = off)")
        session = service.session(PUBLIC)
        session.import_passages(*some(300))

        def are_counted():
            session.import_passages(*some(1))  # a backend reports its scans after a transaction, once a second
            return scans(admin, "chunk_pkey") > 300

        wait_until(are_counted, "the scans are counted")

        assert scans(admin, "chunk_sample") == 0


def scans(admin, index):
    """How often an index was read."""
    (count,) = admin.execute(
        "SELECT idx_scan FROM pg_stat_all_indexes WHERE (schemaname, indexrelname) = ('muniment_public', %s)", [index]
    ).fetchone()
    return count


@pytest.mark.plain_postgres("looks at an index where it is: on a node")
def test_more_index_entries_wait_while_an_import_is_under_way_than_at_its_end(service, stream):
    """Merging them rewrites common words: an import does so for more passages at once. But a search reads them all."""
    with service.database.as_owner() as owner, service.database.as_admin() as admin:
        owner.execute("ALTER TABLE muniment_public.chunk SET (autovacuum_enabled = off)")  # it would merge them
        session = service.session(PUBLIC)
        running = stream(session, *({"content": wordy(number)} for number in range(101)))
        wait_for(session, 100)
        under_way = merge_waiting(admin)
        running.send(*({"content": wordy(number)} for number in range(101, 203)))
        running.end()

        assert under_way > MAX_PAGES_AFTER_A_SAVE
        assert merge_waiting(admin) <= MAX_PAGES_AFTER_A_SAVE


@pytest.mark.plain_postgres("looks at an index where it is: on a node")
def test_a_short_import_lets_no_more_index_entries_wait_than_a_save(service):
    with service.database.as_owner() as owner, service.database.as_admin() as admin:
        owner.execute("ALTER TABLE muniment_public.chunk SET (autovacuum_enabled = off)")
        service.session(PUBLIC).import_passages(*({"content": wordy(number)} for number in range(100)))

        assert merge_waiting(admin) <= MAX_PAGES_AFTER_A_SAVE


def test_a_batch_of_the_longest_passages_of_many_bytes_a_character_is_stored(at):
    at(PUBLIC).import_passages(*({"content": "€" * 87381} for _ in range(6)))

    assert {len(content) for content in contents(at(PUBLIC))} == {87381}


def test_every_stored_passage_is_one_event_and_an_existing_one_is_none(at, host):
    given = with_ids(120)
    at(INTERNAL).import_passages(*given[:60])
    at(INTERNAL).import_passages(*given)
    found = [event for event in events(host) if event.method == "ImportPassages"]

    assert {(event.classification, event.outcome, event.kind, event.revision) for event in found} == {
        (INTERNAL, "OK", 4, 1)
    }
    assert len(found) == len({event.item_id for event in found}) == 120


# --- The same ids again


def test_a_stream_may_be_repeated(at):
    given = with_ids(230)
    first = counts(at(PUBLIC).import_passages(*given))
    before = stored(at(PUBLIC))
    again = counts(at(PUBLIC).import_passages(*given))

    assert (first, again) == ((230, 0), (0, 230))
    assert stored(at(PUBLIC)) == before


def test_a_stream_that_came_half_way_may_be_repeated(at):
    given = with_ids(230)
    at(PUBLIC).import_passages(*given[:130])

    assert counts(at(PUBLIC).import_passages(*given)) == (100, 130)


def test_an_id_that_is_in_the_stream_twice_is_stored_once(at):
    one, two = with_ids(2)

    assert counts(at(PUBLIC).import_passages(one, two, one, one, two)) == (2, 3)
    assert len(stored(at(PUBLIC))) == 2


def test_an_id_that_is_in_the_stream_in_two_spellings_is_one(at):
    (one,) = with_ids(1)

    assert counts(at(PUBLIC).import_passages(one, {**one, "passage_id": one["passage_id"].upper()})) == (1, 1)


def test_an_id_that_is_in_the_stream_with_two_contents_is_a_conflict(at):
    (one,) = with_ids(1)
    outcome = at(PUBLIC).observe_import(one, {**one, "content": "other"}, {"content": "after"})

    assert (outcome.code.name, reason_of(outcome), progress(outcome)) == ("ALREADY_EXISTS", "PASSAGE_EXISTS", (1, 0))
    assert contents(at(PUBLIC)) == ["text"]


@pytest.mark.parametrize(("low", "high"), UP)
def test_an_id_that_is_visible_from_below_exists_and_one_above_is_free(at, low, high):
    given = with_ids(3)
    at(low).import_passages(given[0])
    at(high).import_passages(given[2])

    assert counts(at(high).import_passages(*given)) == (1, 2)
    assert counts(at(low).import_passages(*given)) == (2, 1)


@pytest.mark.parametrize(("low", "high"), UP)
def test_c12_a_stream_is_answered_in_the_same_bytes_whatever_is_above(at, low, high):
    given = with_ids(4)
    at(high).import_passages(*({**each, "content": "other"} for each in given))
    conflict = {**given[0], "content": "third"}

    taken = [at(low).observe_import(*given), at(low).observe_import(given[1], conflict)]
    free = with_ids(4)
    assert [
        at(low).observe_import(*free), at(low).observe_import(free[1], {**free[0], "content": "third"}),
    ] == taken  # fmt: skip


def test_ids_of_another_agent_are_free(session):
    given = with_ids(3)
    session(PUBLIC).import_passages(*given)

    assert counts(session(PUBLIC, agent_id="bob").import_passages(*given)) == (3, 0)


def test_streams_of_the_same_ids_at_once_store_each_once(session):
    """In different orders: a deadlock would be run again, or not be at all."""
    given = with_ids(150)
    sessions, counted = [session(PUBLIC) for _ in range(4)], []

    def run(own, seed):
        counted.append(counts(own.import_passages(*random.Random(seed).sample(given, len(given)))))

    together(*(lambda own=own, seed=seed: run(own, seed) for seed, own in enumerate(sessions)))

    assert [sum(pair) for pair in counted] == [150] * 4
    assert sum(new for new, _ in counted) == 150 == len(stored(session(PUBLIC)))


# --- Conflicts and bad messages


@pytest.mark.parametrize("place", [0, 1, 50, 99, 100, 150, 249])
def test_before_a_conflict_all_is_stored_and_after_it_nothing(at, place):
    (taken,) = with_ids(1, "taken")
    at(PUBLIC).import_passages(taken)
    given = some(250)
    given[place]["passage_id"] = taken["passage_id"]
    outcome = at(PUBLIC).observe_import(*given)

    assert (outcome.code.name, reason_of(outcome)) == ("ALREADY_EXISTS", "PASSAGE_EXISTS")
    assert progress(outcome) == (place, 0)
    assert contents(at(PUBLIC)) == ["taken", *(str(number) for number in range(place))]


def test_the_counts_name_the_place_of_a_conflict(at):
    """Also where some are there already, before it and after it."""
    old, taken, new = with_ids(6), with_ids(1, "taken"), with_ids(4)
    at(PUBLIC).import_passages(*old, *taken)
    conflict = {**taken[0], "content": "other"}
    outcome = at(PUBLIC).observe_import(old[0], new[0], old[1], new[1], conflict, old[2], old[3], new[2])

    assert progress(outcome) == (2, 2)
    assert len(stored(at(PUBLIC))) == 7 + 2


def test_the_first_of_several_conflicts_is_reported(at):
    old = with_ids(3)
    at(PUBLIC).import_passages(*old)
    others = [{**each, "content": "other"} for each in old]

    assert progress(at(PUBLIC).observe_import(*some(2), *others, *some(2))) == (2, 0)
    assert len(stored(at(PUBLIC))) == 3 + 2


BAD = {
    "no passage": (b"", "passage"),
    "no content": ({}, "passage.content"),
    "too long": ({"content": "x" * 262145}, "passage.content"),
    "no id": ({"content": "x", "passage_id": "x"}, "passage.passage_id"),
    "many tags": ({"content": "x", "tags": ["t"] * 33}, "passage.tags"),
    "no message": (b"\xff", ""),
    "U+0000": ({"content": "a\0b"}, "passage.content"),
    "tag": ({"content": "x", "tags": ["a", "b\nc"]}, "passage.tags[1]"),
    "thread": ({"content": "x", "thread": " a"}, "passage.thread"),
    "author": ({"content": "x", "author": "a\n"}, "passage.author"),
    "event": ({"content": "x", "event_time": {"seconds": 2**60}}, "passage.event_time"),
}


@pytest.mark.parametrize("why", BAD)
@pytest.mark.parametrize("before", [0, 3, 100, 130])
def test_before_a_bad_message_all_is_stored_and_after_it_nothing(stream, at, why, before):
    outcome = stream(at(PUBLIC), *some(before), BAD[why][0], *some(3, tags=["after"])).failure()

    assert (outcome.code.name, reason_of(outcome)) == ("INVALID_ARGUMENT", "FIELD_INVALID")
    assert progress(outcome) == (before, 0)
    assert contents(at(PUBLIC)) == [str(number) for number in range(before)]


@pytest.mark.parametrize("why", BAD)
def test_the_field_of_a_bad_message_is_named_by_its_path(stream, at, why):
    """As every other rule names it."""
    bad, field = BAD[why]

    assert fields_of(stream(at(PUBLIC), bad).failure()) == [field]


@pytest.mark.parametrize("before", [0, 3, 100, 130])
def test_an_expiry_in_the_past_loses_nothing_that_came_before_it(at, before):
    """It is found in the statement, where the clock is."""
    outcome = at(PUBLIC).observe_import(*some(before), {"content": "x", "expire_time": in_future(hours=-1)})

    assert reason_of(outcome) == "FIELD_INVALID"
    assert fields_of(outcome) == ["passage.expire_time"]
    assert progress(outcome) == (len(stored(at(PUBLIC))), 0) == (before, 0)


def test_a_batch_that_the_database_undoes_is_not_reported_as_stored(service, monkeypatch):
    """A stream is not run again: the second run had only the rest of the messages, and said OK."""
    session = service.session(PUBLIC)
    sound = repository.store_batch

    def store_batch(scope, batch, so_far):
        if so_far.stored_count:
            raise Conflict
        return sound(scope, batch, so_far)

    monkeypatch.setattr(repository, "store_batch", store_batch)
    outcome = session.observe_import(*some(250))

    assert (outcome.code.name, reason_of(outcome), progress(outcome)) == ("UNAVAILABLE", "UNAVAILABLE", (100, 0))
    assert len(stored(session)) == 100


def test_a_stream_ends_however_busy_its_sender_is(stream, service, monkeypatch):
    """It holds a thread that others wait for."""
    monkeypatch.setattr(dispatch, "_MAX_STREAM_SECONDS", 0.5)
    session = service.session(PUBLIC)
    running = stream(session)
    threading.Thread(target=trickle, args=[running], daemon=True).start()

    assert running.failure().code is grpc.StatusCode.DEADLINE_EXCEEDED


def trickle(running):
    """A message now and then, each sooner than a stream may rest."""
    while not running.call.done():
        running.send({"content": "x"})
        time.sleep(0.1)


@pytest.mark.parametrize("call", ["StorePassage", "ImportPassages"])
def test_an_undecided_batch_is_not_retried_for_ever(service, monkeypatch, call):
    session = service.session(PUBLIC)
    monkeypatch.setattr(
        item_store, "store_passages", lambda _, batch, **__: [SimpleNamespace(outcome=None) for _ in batch]
    )
    outcome = session.observe_import(*some(1)) if call == "ImportPassages" else session.observe(call, content="x")

    assert (outcome.code.name, reason_of(outcome)) == ("UNAVAILABLE", "UNAVAILABLE")


def test_a_message_over_1_mib_ends_the_stream(stream, at):
    """What was committed stays, and the server serves on."""
    outcome = stream(at(PUBLIC), *some(150), b"\0" * (1024 * 1024 + 1)).failure()

    assert outcome.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(stored(at(PUBLIC))) in (0, 100, 150)
    assert at(PUBLIC).observe_import(*some(2)).code is grpc.StatusCode.OK


@pytest.mark.parametrize("failing", ["conflict", "bad"])
def test_an_error_that_is_found_in_the_stream_says_how_far_it_came(service, failing):
    session = service.session(PUBLIC)
    (one,) = with_ids(1)
    given = [*some(100), one, {"conflict": {**one, "content": "other"}, "bad": {"content": ""}}[failing]]
    outcome = session.observe_import(*given)

    assert has_progress(outcome)
    assert sum(progress(outcome)) == len(stored(session))


# --- The taint, and the end of the session


@pytest.mark.parametrize(("low", "high"), UP)
def test_c04_a_raise_during_a_stream_ends_it(stream, session, host, low, high):
    """With the number stored; and nothing is stored at the old level afterwards, nor at the new one."""
    own, reader = session(low), session(RESTRICTED)
    running = stream(own, *some(150))
    wait_for(reader, 100)
    host.raise_taint(session_id=own.session_id, taint=high)
    running.send(*some(60))
    outcome = running.failure()

    assert (outcome.code.name, reason_of(outcome), progress(outcome)) == ("ABORTED", "TAINT_CHANGED", (100, 0))
    assert {(passage.classification) for passage in stored(reader)} == {low}
    assert contents(reader) == [str(number) for number in range(100)]


def test_c04_a_raise_before_the_last_batch_ends_it_too(stream, session, host):
    own = session(PUBLIC)
    running = stream(own, *some(101))
    wait_for(session(PUBLIC), 100)
    host.raise_taint(session_id=own.session_id, taint=INTERNAL)

    with pytest.raises(grpc.RpcError) as caught:
        running.end()
    assert caught.value.code() is grpc.StatusCode.ABORTED
    assert len(stored(session(RESTRICTED))) == 100


def test_c04_a_raise_after_the_first_look_ends_a_stream_that_has_stored_nothing(stream, service):
    """It began at the old taint: it is stored at it, or not at all."""
    own, low, high = service.session(PUBLIC), service.session(PUBLIC), service.session(RESTRICTED)
    running = stream(own, *some(1))
    wait_until_waiting(service, 1)
    service.host().raise_taint(session_id=own.session_id, taint=INTERNAL)

    with pytest.raises(grpc.RpcError) as caught:
        running.end()
    assert caught.value.code() is grpc.StatusCode.ABORTED
    assert stored(low) == stored(high) == []


def test_a_stream_that_only_checks_ends_with_a_raise_too(stream, service):
    """It must not answer that all of it could be stored."""
    own = service.session(PUBLIC)
    checked = [
        passage_service_pb2.ImportPassagesRequest(passage=passage, validate_only=True).SerializeToString()
        for passage in some(2)
    ]
    running = stream(own, checked[0])
    wait_until_waiting(service, 1)
    service.host().raise_taint(session_id=own.session_id, taint=INTERNAL)
    running.send(checked[1])

    with pytest.raises(grpc.RpcError) as caught:
        running.end()
    assert caught.value.code() is grpc.StatusCode.ABORTED


def wait_until_waiting(service, count):
    """Until the server waits for the next message of so many streams, and has looked at their sessions."""

    def waiting():
        """The streams among the calls that wait for their callers: others may wait until an answer has been read."""
        calls = list(service.server._admission._cutoff._waiting)
        return [call for call in calls if isinstance(getattr(call.next_message, "__self__", None), AdmittedStream)]

    wait_until(lambda: len(waiting()) >= count, "the streams wait")


def test_a_raise_does_not_wait_for_a_stream(stream, session, host):
    """Between two batches nothing is locked. A lock would be given up after 5 s, and a stream that rests after 10."""
    own = session(PUBLIC)
    stream(own, *some(150))
    wait_for(session(PUBLIC), 100)

    assert host.raise_taint(session_id=own.session_id, taint=INTERNAL, timeout=8).session.taint == INTERNAL


@pytest.mark.parametrize(("low", "high"), UP)
def test_c40_a_raise_before_the_stream_is_followed(session, host, low, high):
    """Also by a server that remembers the session as it was."""
    own = session(low)
    own.list_passages()
    host.raise_taint(session_id=own.session_id, taint=high)

    assert counts(own.import_passages(*some(120))) == (120, 0)
    assert {passage.classification for passage in stored(own)} == {high}
    assert stored(session(low)) == []


@pytest.mark.parametrize("how", ["close", "reset", "delete agent"])
def test_the_end_of_the_session_ends_the_stream(stream, session, host, how):
    """Like any call after it; but it says how far it came."""
    own = session(PUBLIC)
    running = stream(own, *some(150))
    wait_for(session(PUBLIC), 100)
    match how:
        case "close":
            own.close_session()
        case "reset":
            host.reset_session(session_id=own.session_id)
        case "delete agent":
            host.delete_agent(agent_id="alice")
    running.send(*some(60))
    outcome = running.failure()

    assert (outcome.code.name, reason_of(outcome)) == ("UNAUTHENTICATED", "CREDENTIAL_INVALID")
    assert (progress(outcome), outcome.message) == ((100, 0), failure_of(own.list_passages).message)
    assert len(stored(session(RESTRICTED))) == (0 if how == "delete agent" else 100)


def test_a_bad_message_after_the_end_of_the_session_is_unauthenticated(stream, session):
    """What is wrong with its messages is not revealed to one who is not let in any more."""
    own = session(PUBLIC)
    running = stream(own, *some(110))
    wait_for(session(PUBLIC), 100)
    own.close_session()
    running.send({"content": ""})

    assert running.failure().code is grpc.StatusCode.UNAUTHENTICATED


# --- Who may


def test_a_host_is_refused_before_a_message_is_read(stream, host):
    running = stream(host)  # sends nothing
    outcome = running.failure()

    assert (outcome.code.name, reason_of(outcome)) == ("PERMISSION_DENIED", "PRINCIPAL_NOT_ALLOWED")
    assert events(host)[-1].method == "ImportPassages"
    assert events(host)[-1].outcome == "PRINCIPAL_NOT_ALLOWED"


@pytest.mark.parametrize("token", ["", "x", "mun_s_1_" + "A" * 43])
def test_a_stranger_is_refused_before_a_message_is_read(stream, host, token):
    assert stream(Caller(host.channel, token)).failure().code is grpc.StatusCode.UNAUTHENTICATED


def test_a_closed_gate_refuses_before_a_message_is_read(stream, service):
    session = service.session(PUBLIC)
    set_gate(service.server, is_open=False)

    assert stream(session).failure().code is grpc.StatusCode.UNAVAILABLE


# --- Callers who go away, or do not go on


def test_a_caller_who_goes_away_leaves_what_was_committed(stream, session, shared):
    """Of the rest, what had arrived may be stored."""
    own = session(PUBLIC)
    sent = some(150)
    running = stream(own, *sent)
    wait_for(own, 100)
    running.call.cancel()
    wait_until(lambda: in_flight(shared, "streams") == 0, "the stream has ended")

    assert counts(own.import_passages(*some(2))) == (2, 0)
    contents = {passage.content for passage in stored(own)}
    assert {one["content"] for one in sent[:100]} <= contents


def test_a_deadline_leaves_what_was_committed(stream, session, shared):
    """The deadline is two seconds, or longer if the machine is too busy to store a batch by then."""
    own = session(PUBLIC)
    for seconds in (2.0, 8.0, 32.0):
        outcome = stream(own, *some(150), timeout=seconds).failure()
        assert outcome.code is grpc.StatusCode.DEADLINE_EXCEEDED
        wait_until(lambda: in_flight(shared, "streams") == 0, "the stream has ended")
        if stored(own):
            break

    assert counts(own.import_passages(*some(2))) == (2, 0)
    assert len(stored(own)) in {102, 152}


def test_a_caller_who_disconnects_cancels_the_statement(stream, service):
    """The batch that waits for a lock is not stored when the lock is gone."""
    session = service.session(PUBLIC)
    running = stream(session)
    wait_until_waiting(service, 1)
    with locked(service, session):
        running.send(*some(101))
        wait_until_blocked(service)
        running.call.cancel()
        wait_until_blocked(service, blocked=False)

    assert stored(session) == []


@pytest.fixture
def impatient(monkeypatch):
    """Streams may rest for two seconds only: longer than a busy machine takes between two messages."""
    monkeypatch.setattr(cutoff, "RECEIVE_SECONDS_IN_STREAM", 2.0)
    monkeypatch.setattr(cutoff, "_CHECK_INTERVAL", 0.02)


@pytest.mark.parametrize("sent", [0, 1, 150])
def test_c87_a_stream_that_pauses_is_cut_off(impatient, stream, service, sent):
    """What was committed stays; what waited for the rest of its batch may be stored or not."""
    session = service.session(PUBLIC)
    outcome = stream(session, *some(sent)).failure()

    assert outcome.code is grpc.StatusCode.CANCELLED
    assert len(stored(session)) in (sent // 100 * 100, sent)


def test_c87_after_streams_that_rested_others_are_served(impatient, stream, service):
    """More than may store at once."""
    resting = [stream(service.session(PUBLIC)) for _ in range(5)]
    for each in resting:
        assert each.failure().code is grpc.StatusCode.CANCELLED

    assert counts(service.session(PUBLIC).import_passages(*some(120))) == (120, 0)


def test_c87_a_stream_that_rests_does_not_delay_another(stream, service):
    """It holds a thread, but no turn: one is all there is. It is cut off after 10 s, which would be too late."""
    stream(service.session(PUBLIC), *some(1))
    wait_until_waiting(service, 1)

    assert counts(service.session(PUBLIC).import_passages(*some(120), timeout=8)) == (120, 0)


def test_an_import_gives_way_to_others_after_each_batch(stream, service, monkeypatch):
    """Even while its caller keeps sending."""
    waited = []
    in_turn = AdmittedStream._in_turn

    def count(self, scope):
        waited.append(self)
        return in_turn(self, scope)

    monkeypatch.setattr(AdmittedStream, "_in_turn", count)

    assert counts(service.session(PUBLIC).import_passages(*some(350))) == (350, 0)
    assert len(waited) >= 4


def test_a_session_has_a_twelfth_of_the_streams(stream, service):
    session = service.session(PUBLIC)
    resting = [stream(session, *some(1)) for _ in range(10)]
    wait_until_waiting(service, 10)
    refused = stream(session, *some(1)).failure()

    assert (refused.code, reason_of(refused)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
    assert [each.end() for each in resting] == [(1, 0)] * 10


def test_a_stream_to_a_server_that_stops_ends(stream, service):
    """It does not hold the server for ever."""
    session = service.session(PUBLIC)
    running = stream(session, *some(150))
    wait_for(session, 100)
    service.server.stop(grace=0.1)

    assert running.failure().code in (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE)
