"""Which server has which tenant, and which of them may be used."""

from __future__ import annotations

import pytest

from muniment_server.domain.errors import Unavailable
from muniment_server.domain.ids import TenantNumber
from muniment_server.postgres.placement import Databases, Placement
from muniment_server.postgres.pool import SINGLE, Database

SEVEN, EIGHT = TenantNumber(7), TenantNumber(8)


@pytest.fixture
def pools():
    """Databases of which nothing is asked."""
    made = {name: Database(lambda _: "", pool_sizes=SINGLE) for name in "ab"}
    yield made
    for database in made.values():
        database.close()


@pytest.fixture
def databases(pools):
    return Databases(Placement({"a": "", "b": ""}, {SEVEN: "b"}), pools)


def test_a_tenant_that_is_not_named_is_at_the_first_server(databases, pools):
    assert (databases.of(SEVEN), databases.of(EIGHT)) == (pools["b"], pools["a"])


@pytest.mark.parametrize("trouble", ["is_verified", "answers"])
def test_the_tenants_of_a_server_in_trouble_are_refused_at_once_and_no_others(databases, pools, trouble):
    """A thread that waited for it would be missing to the others."""
    for placed in databases:
        setattr(placed, trouble, placed.name == "a")

    with pytest.raises(Unavailable):
        databases.of(SEVEN)
    assert databases.of(EIGHT) is pools["a"]


def test_calls_wait_for_the_only_server(pools):
    alone = Databases.of_one(pools["a"])
    for placed in alone:
        placed.answers = False

    assert alone.of(SEVEN) is pools["a"]


def test_a_tenant_that_is_refused_delays_no_other_of_its_server(databases, pools):
    for placed in databases:
        placed.tenants = {SEVEN}
    assert databases.refuse_claimed_twice() == {SEVEN: ("a", "b")}

    with pytest.raises(Unavailable):
        databases.of(SEVEN)
    assert databases.holding(SEVEN) is pools["b"]
    next(iter(databases)).tenants = ()
    assert databases.refuse_claimed_twice() == {}
    assert databases.of(SEVEN) is pools["b"]
