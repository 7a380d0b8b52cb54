"""The store does what LangGraph documents, as LangGraph's own stores do: tests/clients/langgraph_store_conformance."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import muniment
from langgraph_store_conformance import (
    Asynchronous,
    Contract,
    Deviation,
    Expires,
    FiltersNested,
    Order,
    Ranks,
    RefusesFields,
)
from muniment import Classification, HostClient
from muniment.langgraph import MunimentStore
from muniment_server.embedded_postgres import EmbeddedPostgres
from tests.support.databases import cloned
from tests.support.services import Service, serving

_DEVIATIONS = {
    "test_a_filter_applies_before_the_limit_of_a_query": Deviation("a filter sees the 100 best matches"),
    "test_all_matches_can_be_read": Deviation("a query returns the 100 best matches at most"),
    "test_a_get_renews_the_ttl": Deviation("an item expires its ttl after the last put: a read writes nothing"),
    "test_a_search_renews_the_ttl": Deviation("the same"),
    "test_a_put_of_the_same_value_is_an_update": Deviation("a put that changes nothing writes nothing"),
}
_EARLIER = (
    """UPDATE muniment_internal.item
          SET create_time = create_time - %(by)s, update_time = update_time - %(by)s, expire_time = expire_time - %(by)s
        WHERE expire_time IS NOT NULL""",
    "UPDATE muniment_internal.chunk SET expire_time = expire_time - %(by)s WHERE expire_time IS NOT NULL",
)


@pytest.fixture(scope="module")
def served(postgres: EmbeddedPostgres) -> Iterator[Service]:
    """One server for all tests: each has an agent of its own."""
    with cloned(postgres) as database, serving(database) as service:
        yield service


@pytest.fixture(scope="module")
def hosting(served: Service) -> Iterator[HostClient]:
    with muniment.connect(served.address, host_key=served.host().token) as host:
        yield host


class TestMunimentStore(Contract, Expires, Ranks, RefusesFields, FiltersNested, Asynchronous):
    """Of a session at INTERNAL."""

    search_order = Order.NAMES
    missing_is_null = True
    refusals = (ValueError, TypeError, muniment.InvalidArgument)
    deviations = _DEVIATIONS

    @pytest.fixture
    def store(self, hosting: HostClient) -> Iterator[MunimentStore]:
        agent = hosting.create_agent()
        with hosting.open_session(agent.agent_id, Classification.INTERNAL) as session:
            yield MunimentStore(session)

    @pytest.fixture(autouse=True)
    def _owner(self, served: Service) -> Iterator[None]:
        with served.database.as_owner() as self.owner:
            yield

    def pass_time(self, store: Any, minutes: float) -> None:
        """Everything that may expire was written earlier: the client reckons by a clock of its own."""
        for statement in _EARLIER:
            self.owner.execute(statement, {"by": timedelta(minutes=minutes)})
