"""A kind of item is known wherever the code names kinds one by one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import muniment_server
from muniment.v1 import audit_pb2
from muniment_server.domain.items import ItemKind
from muniment_server.items.item_store import NOT_FOUND
from muniment_server.items.wire import NAME_OF

_SERVER = Path(muniment_server.__file__).parent
_SCHEMA = (_SERVER / "postgres" / "schema.sql").read_text("utf-8")
_SEARCHED = re.compile(r"CONSTRAINT blocks_are_not_searched CHECK \(\(kind = ANY \(ARRAY\[([\d, ]+)\]\)\)\)")


def test_the_contract_has_every_kind():
    names = {name.removeprefix("ITEM_KIND_"): number for name, number in audit_pb2.ItemKind.items() if number}

    assert names == {kind.name: kind.value for kind in ItemKind}, "ItemKind in audit.proto differs from domain/items.py"


@pytest.mark.parametrize("kind", ItemKind)
def test_every_kind_can_be_missed_and_has_a_history(kind: ItemKind):
    assert kind in NOT_FOUND, f"add its error to NOT_FOUND in items/item_store.py: {kind!r}"
    assert kind in NAME_OF, f"add its name to NAME_OF in items/wire.py: {kind!r}"


def test_every_table_of_items_takes_every_kind():
    ranges = re.findall(r"CONSTRAINT kind_is_known CHECK \(\(\(kind >= (\d+)\) AND \(kind <= (\d+)\)\)\)", _SCHEMA)

    assert set(ranges) == {(str(min(ItemKind)), str(max(ItemKind)))}, "change kind_is_known of item by a migration"


@pytest.mark.parametrize(("file", "times"), [("admin/inspection.sql", 1), ("search/reindex.sql", 2)])
def test_operators_queries_name_the_kinds_that_are_searched(file: str, times: int):
    searched = set(_SEARCHED.findall(_SCHEMA))
    named = re.findall(r"kind IN \(([\d, ]+)\)", (_SERVER / file).read_text("utf-8"))

    assert len(searched) == 1
    assert named == [*searched] * times, f"{file} and the CHECK of chunk name different kinds"
