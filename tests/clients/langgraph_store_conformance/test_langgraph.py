"""LangGraph's own stores, and in what each of them deviates from LangGraph's documentation."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import psycopg
import pytest
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, IndexConfig
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.postgres.base import PostgresIndexConfig

from langgraph_store_conformance import (
    Asynchronous,
    ChoosesFields,
    Contract,
    Deviation,
    Expires,
    FiltersNested,
    IgnoresFields,
    IgnoresQueries,
    Order,
    Ranks,
    RefusesNestedFilters,
    RefusesTTL,
)

pytestmark = pytest.mark.proof

DIMS = 512


def embed(texts: Sequence[str]) -> list[list[float]]:
    """How often each word is in each text: an embedding that needs no model."""
    vectors = []
    for text in texts:
        vector = [0.0] * DIMS
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % DIMS] += 1.0
        vectors.append(vector)
    return vectors


INDEX: IndexConfig = {"dims": DIMS, "embed": embed, "fields": ["text"]}
POSTGRES_INDEX: PostgresIndexConfig = {"dims": DIMS, "embed": embed, "fields": ["text"]}


@pytest.fixture(scope="session")
def tables(store_database: str) -> str:
    """The database with the tables of PostgresStore."""
    with PostgresStore.from_conn_string(store_database, index=POSTGRES_INDEX) as store:
        store.setup()
    return store_database


_ONE_MEMORY = {
    "test_a_boolean_is_no_number": Deviation("compares as Python does: True == 1"),
    "test_a_boolean_in_a_list_is_no_number": Deviation("the same"),
    "test_a_change_deep_in_what_was_put_changes_nothing": Deviation("keeps a shallow copy of the value"),
    "test_a_change_of_what_was_read_changes_nothing": Deviation("returns the value that it keeps"),
    "test_a_history_of_namespaces": Deviation("lists namespaces without items, as the two tests of it show"),
    "test_a_namespace_without_items_is_not_listed": Deviation("lists it as long as the process runs"),
    "test_a_page_before_the_first_is_refused": Deviation("counts from the end, as a slice does"),
    "test_a_page_of_namespaces_before_the_first_is_refused": Deviation("the same"),
    "test_a_replaced_item_keeps_its_first_time": Deviation("every put sets both times"),
    "test_a_ttl_in_a_batch_is_refused": Deviation("ignores it, which is documented; only `put` refuses"),
    "test_an_item_without_the_field_does_not_compare": Deviation(
        "converts to float what is not there, so that one such item makes the search fail", raises=TypeError
    ),
    "test_an_unknown_operator_is_refused_without_items": Deviation(
        "looks at a filter when it compares an item", raises=pytest.fail.Exception
    ),
    "test_reading_makes_no_namespace": Deviation("a get of an item that is not there makes its namespace"),
}


class TestInMemoryStore(Contract, RefusesTTL, IgnoresQueries, IgnoresFields, FiltersNested, Asynchronous):
    """Without an index."""

    search_order = Order.FIRST_PUT
    missing_is_null = True
    deviations = _ONE_MEMORY

    @pytest.fixture
    def store(self) -> BaseStore:
        return InMemoryStore()


_OLD_VECTORS = {
    "test_a_put_without_index_ends_it": Deviation("keeps the embedding of the value before"),
    "test_a_removed_text_is_not_found": Deviation("the same"),
}
_ONE_VECTOR = {
    "test_items_of_a_batch_may_have_the_same_text": Deviation(
        "embeds each text once, and takes that for too few embeddings", raises=ValueError
    )
}


class TestInMemoryStoreWithIndex(Contract, RefusesTTL, Ranks, ChoosesFields, FiltersNested, Asynchronous):
    """With embeddings of the field `text`."""

    search_order = Order.FIRST_PUT
    missing_is_null = True
    deviations = _ONE_MEMORY | _OLD_VECTORS | _ONE_VECTOR

    @pytest.fixture
    def store(self) -> BaseStore:
        return InMemoryStore(index=INDEX)


_AS_SQL = {
    "test_a_large_float_stays_a_float": Deviation("jsonb writes a number without its exponent: a float becomes an int"),
    "test_a_name_that_is_no_text_is_kept_or_refused": Deviation("writes it as text, and of two that are equal one"),
    "test_a_page_of_what_one_batch_put_is_a_part_of_the_whole": Deviation(
        "orders by `updated_at` alone, which all items of a batch share: pages repeat some and leave out others"
    ),
    "test_a_part_of_a_minute_is_a_ttl": Deviation("keeps the minutes as an integer, from which a read renews the ttl"),
    "test_a_text_may_have_a_nul": Deviation("refused by jsonb", raises=psycopg.errors.UntranslatableCharacter),
    "test_a_text_may_have_half_of_a_surrogate_pair": Deviation(
        "refused by jsonb", raises=psycopg.errors.InvalidTextRepresentation
    ),
    "test_an_unknown_kind_of_condition_is_refused": Deviation("logs a warning, and lists what it does not match"),
    "test_negative_numbers_compare_by_size": Deviation("compares numbers as texts, in the collation of the database"),
    "test_numbers_compare_by_size": Deviation("compares numbers as texts: 10 is less than 4.99"),
    "test_what_is_no_operation_is_refused": Deviation("ignores it, and returns None"),
}
_FEW_VECTORS = {"test_a_page_of_matches_is_a_part_of_all": Deviation("reads so few vectors that later pages are empty")}


class Postgres(Expires):
    """What both configurations of PostgresStore share."""

    search_order = Order.LAST_PUT
    missing_is_null = False
    refusals = (ValueError, TypeError, psycopg.Error)
    numbers = st.integers(0, 9)  # those that compare alike as numbers and as texts
    index: ClassVar[PostgresIndexConfig | None] = None

    @pytest.fixture
    def store(self, tables: str) -> Iterator[BaseStore]:
        with PostgresStore.from_conn_string(tables, ttl={"omit_expired": True}, index=self.index) as store:
            yield store
            with store._cursor() as cursor:
                cursor.execute("DELETE FROM store")

    def pass_time(self, store: Any, minutes: float) -> None:
        with store._cursor() as cursor:
            cursor.execute("UPDATE store SET expires_at = expires_at - make_interval(secs => %s)", [minutes * 60])


class TestPostgresStore(Postgres, Contract, IgnoresQueries, IgnoresFields, RefusesNestedFilters, Asynchronous):
    """Without an index."""

    deviations = _AS_SQL


class TestPostgresStoreWithIndex(Postgres, Contract, Ranks, ChoosesFields, RefusesNestedFilters, Asynchronous):
    """With embeddings of the field `text`."""

    index = POSTGRES_INDEX
    deviations = _AS_SQL | _OLD_VECTORS | _FEW_VECTORS
