"""The release desk: who may ask for a release, approve it, and know of it."""

from __future__ import annotations

import pytest

from muniment_server.domain import tokens
from muniment_server.domain.classification import Classification, Label
from tests.support.answers import refusal
from tests.support.releases import (
    DENIED,
    NOT_FOUND,
    OPEN,
    RELEASED,
    TEXT,
    TRUSTED,
    UNTRUSTED,
    approval,
    approved,
    events,
    fields,
    requested,
)
from tests.support.services import reason_of


@pytest.mark.parametrize(("source", "target"), [(one, other) for one in Label for other in Label])
def test_each_direction_needs_its_right(at, key, source, target):
    """And what may flow by itself is not released."""
    at(source).save_memory(key="plan", content=TEXT)
    needed = {"declassify"} if not source.level.can_flow_to(target.level) else set()
    needed |= {"endorse"} if not source.integrity.can_flow_to(target.integrity) else set()
    for rights in ((), ("declassify",), ("endorse",)):
        outcome = key(rights=rights).observe("RequestRelease", **fields(source, target))
        allowed = "" if needed <= set(rights) else "RELEASE_RIGHT_MISSING"
        assert reason_of(outcome) == (allowed if needed else "FIELD_INVALID")


def test_the_rights_are_those_of_who_approves_too(plan, key):
    release = requested(key("endorse"))

    assert refusal(key("declassify").approve_release, **approval(release)) == f"{DENIED} RELEASE_RIGHT_MISSING"
    assert refusal(key("declassify").reject_release, release_id=release.release_id) == f"{DENIED} RELEASE_RIGHT_MISSING"
    assert approved(key("endorse"), release).state == RELEASED


def test_who_asks_does_not_approve(plan, key):
    asks = key()
    release = requested(asks)

    assert refusal(asks.approve_release, **approval(release)) == f"{DENIED} RELEASE_OWN_REQUEST"
    assert asks.get_release(release_id=release.release_id).release.approver_host_key_ids == []


def test_the_tenant_says_how_many_approve_and_a_key_counts_once(shared, tenant, plan, at, key):
    with shared.database.as_owner() as owner:
        owner.execute("UPDATE vault.tenant SET release_approvals = 3 WHERE name = %s", [tenant])
    release, first = requested(key()), key()
    for _ in range(3):
        assert approved(first, release).state == OPEN
    assert approved(key(), release).state == OPEN
    assert refusal(at(TRUSTED).get_memory, key="plan") == "NOT_FOUND MEMORY_NOT_FOUND"

    done = approved(key(), release)

    assert (done.state, done.required_approvals, len(done.approver_host_key_ids)) == (RELEASED, 3, 3)
    assert at(TRUSTED).get_memory(key="plan").memory.content == TEXT


def test_the_identities_of_one_subject_are_one_who_asks_or_approves(shared, tenant, plan, at, key):
    """A workload with a certificate and a token, or tokens for two audiences, is still one."""
    of_ada, of_bob, carol = (key(), key()), (key(), key()), key()
    with shared.database.as_owner() as owner:
        owner.execute("UPDATE vault.tenant SET release_approvals = 2 WHERE name = %s", [tenant])
        for subject, keys in (("ada", of_ada), ("bob", of_bob)):
            owner.execute(
                "UPDATE vault.host_key SET issuer = 'https://a.example', audience = 'x', subject = %s, keys = 'k'"
                " WHERE key_hash = ANY(%s)",
                [subject, [tokens.digest(each.token) for each in keys]],
            )
    release = requested(of_ada[0])

    assert refusal(of_ada[1].approve_release, **approval(release)) == f"{DENIED} RELEASE_OWN_REQUEST"
    for each in of_bob:
        found = approved(each, release)
        assert (found.state, len(found.approver_host_key_ids)) == (OPEN, 1)
    assert at(TRUSTED).list_memories().memories == []
    assert approved(carol, release).state == RELEASED


@pytest.mark.parametrize("number", [0, -1, 17])
def test_no_tenant_releases_without_approval(shared, host, tenant, number):
    with shared.database.as_owner() as owner, pytest.raises(Exception, match="a_release_needs_approval"):
        owner.execute("UPDATE vault.tenant SET release_approvals = %s WHERE name = %s", [number, tenant])


def test_a_key_that_is_revoked_or_loses_its_right_approves_no_more(shared, tenant, plan, key):
    with shared.database.as_owner() as owner:
        owner.execute("UPDATE vault.tenant SET release_approvals = 2 WHERE name = %s", [tenant])
        release, others = requested(key()), [key(), key(), key(), key()]
        for ended, end in enumerate(("revoke_time = now()", "may_endorse = FALSE", "expire_time = now()")):
            approver = approved(others[ended], release).approver_host_key_ids[-1]
            owner.execute(f"UPDATE vault.host_key SET {end} WHERE host_key_id = %s".encode(), [approver])
            assert list(others[3].get_release(release_id=release.release_id).release.approver_host_key_ids) == []
    assert approved(others[3], release).state == OPEN


@pytest.mark.parametrize("lost", ["revoke_time = now()", "expire_time = now()", "may_endorse = FALSE"])
def test_a_key_that_asks_and_is_revoked_or_loses_its_right_counts_no_more(shared, tenant, plan, at, key, lost):
    """Otherwise, the one key that is left would release alone."""
    asks, first, second = key(), key(), key()
    release = requested(asks)
    with shared.database.as_owner() as owner:
        owner.execute(f"UPDATE vault.host_key SET {lost} WHERE host_key_id = %s", [release.requester_host_key_id])

    found = approved(first, release)
    assert (found.state, found.required_approvals, len(found.approver_host_key_ids)) == (OPEN, 2, 1)
    assert approved(first, release).state == OPEN
    assert at(TRUSTED).list_memories().memories == []
    found = approved(second, release)
    assert (found.state, found.required_approvals) == (RELEASED, 1)


@pytest.mark.parametrize(("source", "target"), [(Label.CONFIDENTIAL, TRUSTED), (UNTRUSTED, Label.CONFIDENTIAL_TRUSTED)])
def test_a_key_reaches_both_labels_or_none(host, at, key, source, target):
    at(source).save_memory(key="plan", content=TEXT)
    low = key(ceiling=Classification.INTERNAL)

    assert refusal(low.request_release, **fields(source, target)) == f"{DENIED} CEILING_EXCEEDED"
    assert events(host, "RequestRelease") == []  # the key does not know the agent
    release = requested(key(), source, target)
    for call in (low.get_release, low.reject_release):
        assert refusal(call, release_id=release.release_id) == NOT_FOUND
    assert refusal(low.approve_release, **approval(release)) == NOT_FOUND
    assert low.list_releases(include_closed=True).releases == []


def test_a_label_above_the_ceiling_of_the_agent_is_refused(host, key):
    host.create_agent(agent_id="bob", ceiling=Classification.INTERNAL)
    bob = host.session(host.open_session(agent_id="bob", taint=1))
    bob.save_memory(key="plan", content=TEXT)
    above = fields(UNTRUSTED, Label.CONFIDENTIAL_TRUSTED, agent_id="bob")

    assert refusal(key().request_release, **above) == f"{DENIED} AGENT_CEILING_EXCEEDED"


def test_another_tenant_has_no_release_of_this_one(shared, plan, key):
    release, stranger = requested(key()), shared.host("a stranger")

    assert refusal(stranger.get_release, release_id=release.release_id) == NOT_FOUND
    assert refusal(stranger.approve_release, **approval(release)) == NOT_FOUND
    assert stranger.list_releases(include_closed=True).releases == []


def test_a_session_has_no_desk(plan, at, key):
    release = requested(key())
    refused = f"{DENIED} PRINCIPAL_NOT_ALLOWED"

    assert refusal(at(UNTRUSTED).request_release, **fields()) == refused
    assert refusal(at(UNTRUSTED).approve_release, **approval(release)) == refused
    for call in (at(UNTRUSTED).get_release, at(UNTRUSTED).reject_release):
        assert refusal(call, release_id=release.release_id) == refused
    assert refusal(at(UNTRUSTED).list_releases) == refused
