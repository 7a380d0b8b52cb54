"""What each caller may have under way, and whose call runs next."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment_server.transport.shares import Claim, Shares

ADA, BOB = ("acme", "ada", 1), ("acme", "bob", 2)
STRANGER = ("beta", "eve", 3)


def shares(*, turns=4, turns_of_tenant=3, max_calls=512, max_bytes=1000, max_calls_of_one=512, max_answer=0):
    return Shares(
        turns=turns,
        turns_of_tenant=turns_of_tenant,
        max_calls=max_calls,
        max_calls_of_one=max_calls_of_one,
        max_bytes=max_bytes,
        max_answer=max_answer,
    )


def admitted(some, keys, *, writes=False):
    claim = some.admit(keys, writes=writes)
    assert claim is not None
    return claim


def end(some, claim, *, seconds=1.0):
    """The call ends; returns whose turn it is then."""
    ready = some.end_turn(claim, seconds)
    some.finish(claim)
    some.finish(claim)
    return list(ready)


def fill(some, keys):
    """Admit calls until one is refused."""
    number = 0
    while some.admit(keys, writes=False) is not None:
        number += 1
    return number


@pytest.mark.parametrize(("keys", "part"), [([ADA], 1 / 3), ([("acme", "ada", n) for n in range(9)], 2 / 3)])
def test_one_session_gets_a_third_and_one_agent_two_thirds(keys, part):
    some = shares()

    assert sum(fill(some, key) for key in keys) == pytest.approx(512 * part, abs=2)


def test_one_tenant_gets_four_fifths_and_a_stranger_still_finds_room():
    some = shares()
    taken = sum(fill(some, ("acme", agent, session)) for agent in range(20) for session in range(20))

    assert taken == pytest.approx(512 * 4 / 5, abs=4)
    assert fill(some, STRANGER) > 30


def test_a_refused_call_leaves_nothing_behind():
    some = shares(max_calls=0)
    some.admit(ADA, writes=False)

    assert some._root.parts == {}


def test_a_call_is_counted_until_its_work_and_its_rpc_have_ended():
    some = shares(max_calls_of_one=1)
    claim = admitted(some, ADA)
    some.take_turn(claim)
    some.end_turn(claim, 1.0)
    some.finish(claim)
    still_counted = some.admit(ADA, writes=False)
    some.finish(claim)

    assert still_counted is None
    assert some.admit(ADA, writes=False) is not None


def test_bytes_are_counted_like_calls():
    some = shares(max_bytes=1000)
    claim = admitted(some, ADA)
    assert some.hold_request(claim, 400)

    assert some.admit(ADA, writes=False) is None
    assert some.admit(BOB, writes=False) is not None


def test_a_message_that_is_too_much_is_refused_when_it_arrives():
    """Its size is not known before. One session that sends many at once must not fill the room of the others."""
    some = shares(max_bytes=1000)
    claims = [admitted(some, ADA) for _ in range(100)]
    held = [some.hold_request(claim, 100) for claim in claims]
    stranger = admitted(some, STRANGER)

    assert held.count(True) == 3
    assert some.hold_request(stranger, 900)


def test_whoever_holds_nothing_is_admitted_and_served_however_much_others_hold():
    some = shares(max_bytes=1000)
    for tenant in range(2):
        some.hold_request(admitted(some, (tenant, 1, 1)), 900)
    stranger = admitted(some, STRANGER)

    assert some._root.byte_count >= 1000
    assert list(some.take_turn(stranger)) == [stranger]


def test_a_call_that_runs_counts_as_the_longest_answer_until_its_size_is_known():
    some = shares(max_bytes=1000, max_answer=300)
    first, second = admitted(some, ADA), admitted(some, ADA)
    some.take_turn(first)
    reserved = some._root.unread
    waiting = list(some.take_turn(second))
    some.hold_answer(first, 10)

    assert (reserved, waiting, some._root.unread) == (300, [second], 310)


def test_what_a_call_held_is_let_go_at_its_end():
    """A cycle of references would keep its message until the collector runs."""
    some = shares()
    claim = admitted(some, ADA)
    claim.work = claim.finish = lambda: claim
    some.take_turn(claim)
    end(some, claim)

    assert claim.work() is None
    assert claim.finish() is None


def test_who_leaves_answers_unread_gets_no_turn_until_they_are_read():
    some = shares(max_bytes=1000)
    first, second = admitted(some, ADA), admitted(some, ADA)
    some.take_turn(first)
    some.hold_answer(first, 400)
    some.end_turn(first, 1.0)
    some.finish(first)
    waiting = some.take_turn(second)

    assert list(waiting) == []
    assert list(some.finish(first)) == [second]


@pytest.mark.parametrize(("turns", "running"), [(1, 1), (2, 1), (4, 2), (8, 4)])
def test_a_session_does_not_take_all_turns(turns, running):
    some = shares(turns=turns, turns_of_tenant=turns)

    assert sum(len(some.take_turn(admitted(some, ADA))) for _ in range(20)) == running


def test_a_tenant_leaves_a_turn_for_the_others():
    some = shares(turns=4)
    claims = [admitted(some, ("acme", agent, agent)) for agent in range(9)]
    running = sum(len(some.take_turn(claim)) for claim in claims)
    stranger = admitted(some, STRANGER)

    assert running == 3
    assert list(some.take_turn(stranger)) == [stranger]


def test_a_large_write_of_a_session_runs_alone():
    """A raise of the taint waits for the writes that run."""
    some = shares(turns=8)
    small, large, later = (admitted(some, ADA, writes=True) for _ in range(3))
    assert some.hold_request(large, 256 * 1024)
    started = [claim for write in (small, large, later) for claim in some.take_turn(write)]

    assert started == [small]
    assert end(some, small) == [large]
    assert end(some, large) == [later]


def test_a_session_that_has_its_answer_may_call_again():
    """Even if its last call has not quite ended here: it cannot know that."""
    some = shares(max_calls_of_one=1)
    first = admitted(some, ADA)
    assert some.admit(ADA, writes=False) is None
    some.answer(first)

    second = admitted(some, ADA)

    assert some.admit(ADA, writes=False) is None
    some.finish(first)
    some.finish(first)
    assert some.admit(ADA, writes=False) is None
    some.finish(second)
    some.finish(second)
    assert admitted(some, ADA)


def test_of_the_writes_of_one_session_two_run_at_once():
    """More would only wait for one another's row, each on a thread."""
    some = shares(turns=8)
    first, second, third = (admitted(some, ADA, writes=True) for _ in range(3))
    started = [claim for write in (first, second, third) for claim in some.take_turn(write)]

    assert started == [first, second]
    assert end(some, first) == [third]


def turns_taken(some, backlog, *, rounds, seconds):
    """Keep *backlog* calls of each waiting; count whose turn it was."""
    names = {keys: name for name, (keys, _) in backlog.items()}
    running = []
    for keys, number in backlog.values():
        for _ in range(number):
            running += some.take_turn(admitted(some, keys))
    counts: Counter[str] = Counter()
    for _ in range(rounds):
        claim = running.pop(0)
        keys = next(keys for keys in names if claim.shares[-1] is leaf(some, keys))
        counts[names[keys]] += 1
        again = admitted(some, keys)
        running += some.take_turn(again)
        running += end(some, claim, seconds=seconds[names[keys]])
    return counts


def leaf(some, keys):
    share = some._root
    for key in keys:
        share = share.parts[key]
    return share


def test_whoever_sends_a_hundred_calls_gets_no_more_turns_than_who_sends_two():
    counts = turns_taken(
        shares(turns=1, turns_of_tenant=1),
        {"flood": (ADA, 100), "honest": (STRANGER, 2)},
        rounds=200,
        seconds={"flood": 1, "honest": 1},
    )

    assert counts["honest"] == pytest.approx(100, abs=5)


def test_turns_are_fair_by_time_and_not_by_number():
    counts = turns_taken(
        shares(turns=1, turns_of_tenant=1),
        {"slow": (ADA, 9), "quick": (STRANGER, 9)},
        rounds=220,
        seconds={"slow": 10, "quick": 1},
    )

    assert counts["quick"] == pytest.approx(200, abs=12)


def test_a_tenant_with_many_sessions_gets_what_one_with_a_single_session_gets():
    backlog = {f"many {n}": (("acme", "ada", n), 5) for n in range(10)} | {"single": (STRANGER, 5)}
    counts = turns_taken(shares(turns=1, turns_of_tenant=1), backlog, rounds=200, seconds=dict.fromkeys(backlog, 1))

    assert counts["single"] == pytest.approx(100, abs=5)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.booleans(), st.integers(0, 300)), max_size=60))
def test_whatever_happens_each_call_runs_once_and_nothing_is_left(calls):
    some = shares(turns=3, turns_of_tenant=2, max_calls=20, max_bytes=1000, max_answer=50)
    running: list[Claim] = []
    done: list[Claim] = []
    wanted = 0
    for tenant, session, writes, size in calls:
        claim = some.admit((tenant, 0, session), writes=writes)
        if claim is None:
            while running:
                one = running.pop()
                running += end(some, one)
                done.append(one)
            continue
        if not some.hold_request(claim, size):
            some.finish(claim)
            some.finish(claim)
            continue
        wanted += 1
        running += some.take_turn(claim)
    while running:
        one = running.pop()
        running += end(some, one)
        done.append(one)

    assert len(done) == len(set(map(id, done))) == wanted
    assert (some._root.parts, some._root.calls, some._root.byte_count, some._root.waiting) == ({}, 0, 0, 0)
