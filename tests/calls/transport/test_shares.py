"""What each caller may have under way, and whose call runs next."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment_server.transport.admission import shares as module
from muniment_server.transport.admission.shares import ANSWERS, RUNNING, Claim, Shares, room

ADA, BOB = ("acme", "ada", 1), ("acme", "bob", 2)
STRANGER = ("beta", "eve", 3)


class Call(Claim):
    """A call that is not made."""

    def start(self):
        pass

    run = finish = start


class Clock:
    """A time that is set by hand."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def shares(*, turns=4, turns_of_tenant=3, max_calls=480, max_bytes=1200, max_answer=0, clock=time.monotonic, **more):
    return Shares(
        turns=turns,
        turns_of_tenant=turns_of_tenant,
        max_calls=max_calls,
        max_bytes=max_bytes,
        max_answer=max_answer,
        clock=clock,
        **more,
    )


def arriving(some, keys, *, writes=False):
    """A call that is let in; None if it was refused."""
    claim = Call(writes=writes)
    return claim if some.admit(claim, keys) else None


def received(some, keys, *, writes=False, size=0):
    """A call whose message has arrived; None if it was refused."""
    claim = arriving(some, keys, writes=writes)
    if claim is None:
        return None
    if some.receive(claim, size):
        return claim
    give_up(some, claim)
    return None


def admitted(some, keys, *, writes=False, size=0):
    claim = received(some, keys, writes=writes, size=size)
    assert claim is not None
    return claim


def give_up(some, claim):
    """Its work ends, and its RPC; returns whose turn it is then."""
    return [*some.finish(claim), *some.finish(claim)]


def queue(some, claim):
    """It waits to run; returns whose turn it is then."""
    return some.take_turn(claim, RUNNING)


def end(some, claim):
    """The call ends; returns whose turn it is then."""
    return [*some.end_turn(claim, RUNNING), *give_up(some, claim)]


def count(claims):
    return sum(claim is not None for claim in claims)


def fill_calls(some, keys):
    """Have calls under way until one is refused; return how many."""
    return count(iter(lambda: received(some, keys), None))


def fill_arriving(some, keys):
    """The same for calls whose message does not arrive."""
    return count(iter(lambda: arriving(some, keys), None))


def fill_requests(some, keys):
    """The same for large messages."""
    return count(iter(lambda: received(some, keys, size=10), None))


def leave_unread(some, keys):
    """The same for answers that are not read: of 10 bytes, each in a turn of its own."""
    answered = 0
    while (claim := received(some, keys)) is not None and claim in queue(some, claim):
        some.hold_answer(claim, 10)
        some.end_turn(claim, RUNNING)
        some.finish(claim)
        answered += 1
    return answered


FILL = [fill_calls, fill_arriving, fill_requests, leave_unread]
EIGHT_ELSEWHERE = [(tenant, agent, n) for tenant in "xy" for agent in "pq" for n in range(2)]


def filled(fill, keys, *, after=(), max_answer=10):
    """How much *keys* get after others have filled what they may have."""
    some = shares(max_answer=max_answer)
    for other in after:
        fill(some, other)
    return fill(some, keys)


@pytest.mark.parametrize("fill", FILL)
@pytest.mark.parametrize(
    "others",
    [
        [("acme", ("ada", level), level) for level in ("INTERNAL", "CONFIDENTIAL", "RESTRICTED")],
        [("acme", ("bob", "PUBLIC"), n) for n in range(2)],
        EIGHT_ELSEWHERE[:4],
    ],
    ids=["other levels", "another agent", "another tenant"],
)
def test_room_tells_nothing_of_others_until_the_server_is_nearly_full(fill, others):
    keys = ("acme", ("ada", "PUBLIC"), "mine")

    assert filled(fill, keys, after=others) == filled(fill, keys)


@pytest.mark.parametrize("fill", FILL)
def test_room_that_shrinks_with_what_is_left_would_tell(fill, monkeypatch):
    """The test above can fail."""
    monkeypatch.setattr(module, "room", lambda most, held: most - held)
    keys = ("acme", ("ada", "PUBLIC"), "mine")

    assert filled(fill, keys, after=EIGHT_ELSEWHERE[:4]) < filled(fill, keys)


def test_one_session_gets_a_twelfth_and_one_agent_at_one_level_a_sixth():
    some = shares()

    assert [fill_calls(some, ("acme", "ada", session)) for session in range(3)] == [40, 40, 0]


def test_one_host_key_gets_a_sixth():
    assert fill_calls(shares(), ("acme", "key")) == 80


@pytest.mark.parametrize("fill", FILL)
def test_one_agent_alone_never_makes_the_server_nearly_full(fill):
    some = shares(max_answer=10)
    for level in range(4):
        for session in range(4):
            fill(some, ("acme", ("ada", level), (level, session)))

    assert not some.was_nearly_full


def test_a_server_that_was_nearly_full_says_so():
    some = shares()
    for agent in range(5):
        for session in range(2):
            fill_calls(some, ("acme", agent, session))

    assert some.was_nearly_full


def test_when_nearly_full_the_room_shrinks_in_coarse_steps():
    assert [room(2048, held) for held in (0, 1535, 1536, 1700, 1792, 1793, 2047, 2048, 3000)] == [
        2048, 2048, 512, 256, 256, 128, 1, 0, 0
    ]  # fmt: skip


def test_one_tenant_gets_about_half_of_a_full_server_and_a_stranger_still_finds_room():
    """And a second tenant that does the same leaves room, too."""
    some = shares(max_calls=2048)

    def flood(tenant):
        return sum(fill_calls(some, (tenant, agent, (agent, session))) for agent in range(60) for session in range(60))

    assert 2048 * 3 / 4 <= flood("acme") <= 2048 * 4 / 5
    flood("gamma")
    assert fill_calls(some, STRANGER) >= 1


def test_a_refused_call_leaves_nothing_behind():
    some = shares(max_calls=0)
    arriving(some, ADA)

    assert some._root.parts == {}


def test_the_calls_of_one_tenant_are_counted_apart_from_those_of_others():
    """Agents and sessions of two tenants may have the same numbers."""
    some = shares()
    fill_calls(some, ("acme", 1, 1))
    fill_calls(some, ("acme", 1, 2))

    assert fill_calls(some, ("beta", 1, 1)) == 40


def test_a_call_is_counted_until_its_work_and_its_rpc_have_ended():
    some = shares(max_calls=12)
    claim = admitted(some, ADA)
    queue(some, claim)
    some.end_turn(claim, RUNNING)
    some.finish(claim)
    still_counted = received(some, ADA)
    some.finish(claim)

    assert still_counted is None
    assert received(some, ADA) is not None


def test_calls_without_their_message_take_no_room_of_those_with_one():
    some = shares()
    fill_arriving(some, ADA)

    assert some.load.in_flight == 40
    assert arriving(some, ADA) is None
    assert fill_calls(some, ("acme", "ada", 7)) == 40


def test_a_call_whose_message_has_arrived_makes_room_for_the_next_one():
    some = shares()
    first = arriving(some, ADA)
    fill_arriving(some, ADA)
    assert some.receive(first, 0)

    assert arriving(some, ADA) is not None


def test_a_message_that_is_too_much_is_refused_when_it_arrives():
    """Its size is not known before. One session that sends many at once must not fill the room of the others."""
    some = shares(max_bytes=1200)
    claims = [arriving(some, ADA) for _ in range(40)]
    held = [some.receive(claim, 50) for claim in claims]

    assert held.count(True) == 2
    assert received(some, STRANGER, size=900) is not None


def unread(some, keys, size):
    """A call whose answer of so many bytes is left unread."""
    claim = admitted(some, keys)
    assert claim in queue(some, claim)
    some.hold_answer(claim, size)
    some.end_turn(claim, RUNNING)
    some.finish(claim)
    return claim


def test_whoever_holds_nothing_is_served_however_much_others_leave_unread():
    some = shares(turns=4, max_answer=100)
    for tenant in range(40):
        unread(some, (tenant, 1, 1), 100)
    stranger = admitted(some, STRANGER)

    assert list(queue(some, stranger)) == [stranger]


def test_answers_that_have_no_size_to_speak_of_are_not_counted():
    """An unread answer of an import, of two bytes, once stopped the imports of all others."""
    some = shares(max_answer=0)
    for _ in range(9):
        unread(some, ADA, 2)

    assert some._root.held[ANSWERS] == 0
    assert not some.was_nearly_full


def test_a_call_that_runs_counts_as_the_longest_answer_until_its_size_is_known():
    some = shares(turns=4, max_answer=300)
    first, second, third = (admitted(some, ADA) for _ in range(3))
    queue(some, first)
    some.hold_answer(first, 200)
    some.end_turn(first, RUNNING)
    running = [claim for each in (second, third) for claim in queue(some, each)]

    assert running == [second]
    assert some._root.held[ANSWERS] == 500


def test_who_leaves_answers_unread_gets_no_turn_until_they_are_read():
    some = shares(max_answer=100)
    first, _ = unread(some, ADA, 100), unread(some, ADA, 100)
    third = admitted(some, ADA)
    waiting = queue(some, third)

    assert list(waiting) == []
    assert list(some.finish(first)) == [third]


def test_calls_that_wait_for_their_own_caller_do_not_make_a_server_stuck(clock):
    """Turns are free: others are served."""
    some = shares(max_answer=100, clock=clock)
    for _ in range(2):
        unread(some, ADA, 100)
    queue(some, admitted(some, ADA))
    clock.now += 60

    assert some.load.queued == 1
    assert some.seconds_without_progress == 0


def test_a_server_of_one_tenant_is_stuck_although_it_may_not_take_all_turns(clock):
    some = shares(turns=4, turns_of_tenant=3, clock=clock)
    for keys in (ADA, BOB, ADA, BOB):
        queue(some, admitted(some, keys))
    clock.now += 60

    assert (some.load.running, some.load.queued) == (3, 1)
    assert some.seconds_without_progress == 60


def test_callers_who_give_up_do_not_hide_that_a_server_is_stuck(clock):
    """Each waits for less than the time after which it counts as stuck."""
    some = shares(turns=4, turns_of_tenant=3, clock=clock)
    for keys in (ADA, BOB, ADA):
        queue(some, admitted(some, keys))
    seconds = []
    for _ in range(12):
        claim = admitted(some, BOB)
        queue(some, claim)
        clock.now += 5
        seconds.append(some.seconds_without_progress)
        some.withdraw(claim)
        give_up(some, claim)

    assert seconds[-1] == 60


@pytest.mark.parametrize(("turns", "running"), [(1, 1), (2, 1), (4, 2), (8, 4)])
def test_a_session_does_not_take_all_turns(turns, running):
    some = shares(turns=turns, turns_of_tenant=turns)

    assert sum(len(queue(some, admitted(some, ADA))) for _ in range(20)) == running


def test_a_tenant_leaves_a_turn_for_the_others():
    some = shares(turns=4)
    claims = [admitted(some, ("acme", agent, agent)) for agent in range(9)]
    running = sum(len(queue(some, claim)) for claim in claims)
    stranger = admitted(some, STRANGER)

    assert running == 3
    assert list(queue(some, stranger)) == [stranger]


def test_a_large_write_of_a_session_runs_alone():
    """A raise of the taint waits for the writes that run."""
    some = shares(turns=8, max_bytes=12 * 2**20)
    small, large, later = (admitted(some, ADA, writes=True, size=size) for size in (0, 256 * 1024, 0))
    started = [claim for write in (small, large, later) for claim in queue(some, write)]

    assert started == [small]
    assert end(some, small) == [large]
    assert end(some, large) == [later]


def test_of_the_writes_of_one_session_two_run_at_once():
    """More would only wait for one another's row, each on a thread."""
    some = shares(turns=8)
    first, second, third = (admitted(some, ADA, writes=True) for _ in range(3))
    started = [claim for write in (first, second, third) for claim in queue(some, write)]

    assert started == [first, second]
    assert end(some, first) == [third]


def turns_taken(backlog, *, rounds, seconds, clock, **some):
    """Keep *backlog* calls of each waiting, of which one runs at once; count whose turn it was."""
    some = shares(turns=1, turns_of_tenant=1, clock=clock, **some)
    names = {keys: name for name, (keys, _) in backlog.items()}
    running = []
    for keys, number in backlog.values():
        for _ in range(number):
            running += queue(some, admitted(some, keys))
    counts: Counter[str] = Counter()
    for _ in range(rounds):
        claim = running.pop(0)
        keys = next(keys for keys in names if claim.shares[-1] is leaf(some, keys))
        counts[names[keys]] += 1
        again = admitted(some, keys)
        running += queue(some, again)
        clock.now += seconds[names[keys]]
        running += end(some, claim)
    return counts


def leaf(some, keys):
    share = some._root
    for key in keys:
        share = share.parts[key]
    return share


def test_whoever_sends_a_hundred_calls_gets_no_more_turns_than_who_sends_two(clock):
    counts = turns_taken(
        {"flood": (ADA, 100), "honest": (STRANGER, 2)},
        rounds=200,
        seconds={"flood": 1, "honest": 1},
        clock=clock,
        max_calls=1320,
    )

    assert counts["honest"] == pytest.approx(100, abs=5)


def test_turns_are_fair_by_time_and_not_by_number(clock):
    counts = turns_taken(
        {"slow": (ADA, 9), "quick": (STRANGER, 9)},
        rounds=220,
        seconds={"slow": 10, "quick": 1},
        clock=clock,
    )

    assert counts["quick"] == pytest.approx(200, abs=12)


def test_a_tenant_with_many_sessions_gets_what_one_with_a_single_session_gets(clock):
    backlog = {f"many {n}": (("acme", "ada", n), 5) for n in range(10)} | {"single": (STRANGER, 5)}
    counts = turns_taken(backlog, rounds=200, seconds=dict.fromkeys(backlog, 1), clock=clock)

    assert counts["single"] == pytest.approx(100, abs=5)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.booleans(), st.integers(0, 300)), max_size=60))
def test_whatever_happens_each_call_runs_once_and_nothing_is_left(calls):
    some = shares(turns=3, turns_of_tenant=2, max_calls=60, max_bytes=6000, max_answer=50)
    running: list[Claim] = []
    done: list[Claim] = []
    wanted = 0
    for tenant, session, writes, size in calls:
        claim = received(some, (tenant, 0, session), writes=writes, size=size)
        if claim is None:
            while running:
                one = running.pop()
                running += end(some, one)
                done.append(one)
            continue
        wanted += 1
        running += queue(some, claim)
    while running:
        one = running.pop()
        running += end(some, one)
        done.append(one)

    assert len(done) == len(set(map(id, done))) == wanted
    assert (some._root.parts, some._root.held, some._root.waiting) == ({}, [0, 0, 0, 0], [0, 0])
