"""The limits of a tenant: what its hosts may give to its agents together."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from muniment_server.monitor.host_scope import HostScope
from tests.support.answers import refusal
from tests.support.services import reason_of, serving

_PIB = 1 << 50


def bound(service, **limits) -> None:
    """Limit the tenant, as `muniment tenant limits` does."""
    with service.database.as_owner() as owner:
        for name, limit in limits.items():
            assert owner.execute(f"UPDATE vault.tenant SET {name} = %s".encode(), [limit]).rowcount == 1


@pytest.fixture
def at_once(service, monkeypatch):
    """Two hosts create an agent each. Neither call goes on before the other has read the limits, or for a second."""
    both_have_read = threading.Barrier(2)
    rows = HostScope.rows

    def read(scope, name, row, /, **parameters):
        found = rows(scope, name, row, **parameters)
        if name == "given_limits":
            with contextlib.suppress(threading.BrokenBarrierError):
                both_have_read.wait(1)
        return found

    def create() -> list[str]:
        with ThreadPoolExecutor(2) as pool:
            outcomes = pool.map(lambda host, agent: host.observe("CreateAgent", agent_id=agent), hosts, ("amy", "ben"))
            return sorted(reason_of(outcome) or outcome.code.name for outcome in outcomes)

    with serving(service.database) as other:  # in one server, the calls of a tenant's hosts take turns
        hosts = service.host(), other.host()
        bound(service, max_agents=1)
        monkeypatch.setattr(HostScope, "rows", read)
        yield create


def test_a_taken_id_is_reported_even_if_the_tenant_is_full(service):
    """Hosts that create an agent again, such as `muniment agent apply`, must learn that it is there."""
    host = service.host()
    host.create_agent(agent_id="amy")
    bound(service, max_agents=0)

    assert refusal(host.create_agent, agent_id="amy") == "ALREADY_EXISTS AGENT_EXISTS"
    assert refusal(host.create_agent, agent_id="ben") == "RESOURCE_EXHAUSTED QUOTA_EXCEEDED"


def test_hosts_that_create_agents_at_once_do_not_exceed_a_limit(at_once):
    assert at_once() == ["OK", "QUOTA_EXCEEDED"]


@pytest.mark.proof
def test_without_the_lock_of_the_tenant_they_would(at_once, monkeypatch):
    execute = HostScope.execute
    unlocked = lambda scope, name, /, **given: name == "lock_tenant" or execute(scope, name, **given)  # noqa: E731
    monkeypatch.setattr(HostScope, "execute", unlocked)

    assert at_once() == ["OK", "OK"]


def test_a_sum_may_be_larger_than_any_limit(service):
    host = service.host()
    bound(service, max_agents=100_000)
    with service.database.as_owner() as owner:
        owner.execute(
            "INSERT INTO vault.agent (tenant, agent, agent_id, display_name, language, memory_enabled,"
            " user_profile_enabled, memory_char_limit, user_char_limit, max_bytes)"
            " SELECT tenant, number, 'n' || number, '', '', true, true, 1, 1, %s"
            " FROM vault.tenant, generate_series(1, 9000) AS number",
            [_PIB],
        )
    host.create_agent(agent_id="one", limits={"max_bytes": _PIB})

    bound(service, max_bytes=2**63 - 1)

    assert refusal(host.create_agent, agent_id="two", limits={"max_bytes": _PIB}) == "RESOURCE_EXHAUSTED QUOTA_EXCEEDED"
