"""Which tenants each server has. Of several servers, each tenant is at one, and new tenants get different numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import psycopg
from psycopg import sql

from muniment_server.domain.ids import TenantNumber
from muniment_server.monitor.grants import served_tenants
from muniment_server.postgres import queries
from muniment_server.postgres.engine import engine_of
from muniment_server.postgres.placement import Placement, claimed_twice
from muniment_server.postgres.rows import rows_of, values_of

_QUERIES = queries.load(__package__, "claims.sql")
RANGE = 10**12
"""How many numbers each server has for its tenants."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers that a server gives to new tenants."""

    lowest: int
    highest: int

    @property
    def size(self) -> int:
        """How many there are."""
        return self.highest - self.lowest + 1

    def overlap(self, other: Numbers) -> bool:
        """Whether a new tenant of one may get a number of the other."""
        return self.lowest <= other.highest and other.lowest <= self.highest


@dataclass(frozen=True, slots=True)
class Claim:
    """What one server has."""

    tenants: frozenset[TenantNumber]
    numbers: Numbers


def claim_of(connection: psycopg.Connection[Any]) -> Claim:
    """What the server of *connection* has."""
    return Claim(served_tenants(connection), numbers_of(connection))


def tenants_of(connection: psycopg.Connection[Any]) -> frozenset[TenantNumber]:
    """All tenants of the server of *connection*, also those that are moving."""
    return frozenset(values_of(connection, _QUERIES, "known_tenants"))


def numbers_of(connection: psycopg.Connection[Any]) -> Numbers:
    """The numbers that the server of *connection* gives to new tenants."""
    return rows_of(connection, _QUERIES, "numbers", Numbers)[0]


def problems(claims: Mapping[str, Claim]) -> Iterator[str]:
    """Why the servers with these *claims* must not serve together."""
    for tenant, (one, other) in claimed_twice({name: claim.tenants for name, claim in claims.items()}).items():
        yield (
            f"the servers {one} and {other} both have the tenant {tenant}: find out which of them has its newest data, "
            "and take the other one out of the file of servers"
        )
    for one, other in combinations(claims, 2):
        if claims[one].numbers.overlap(claims[other].numbers):
            yield (
                f"the servers {one} and {other} would give new tenants the same numbers: "
                "run `muniment migrate --servers FILE`"
            )


def warnings(claims: Mapping[str, Claim], placement: Placement) -> Iterator[str]:
    """Which tenants are not where the *placement* says: no call reaches them."""
    for name, claim in claims.items():
        for tenant in sorted(claim.tenants):
            if (said := placement.server_of(tenant)) != name:
                yield (
                    f"the tenant {tenant} is at the server {name}, and its calls go to {said}: "
                    f'write {tenant} = "{name}" below [tenants] in the file of servers, and reload'
                )


def settle(connections: Mapping[str, psycopg.Connection[Any]]) -> Iterator[str]:
    """Give each server a range of numbers of its own, unless it has one; yield what was done.

    The *connections* are in the order of the file, and act as the owner. Tenants that exist keep their numbers.
    """
    found = {name: numbers_of(connection) for name, connection in connections.items()}
    tenants = {name: tenants_of(connection) for name, connection in connections.items()}
    settled: list[Numbers] = []
    for name, connection in connections.items():
        numbers = found.pop(name)
        if numbers.size <= RANGE and not any(numbers.overlap(other) for other in settled):
            settled.append(numbers)
            continue
        moved = [  # a tenant that has moved keeps its number, even once the server that gave it is gone
            Numbers(tenant, tenant)
            for other, numbered in tenants.items()
            for tenant in numbered
            if other != name or not numbers.lowest <= tenant < numbers.lowest + RANGE
        ]
        own = _free_numbers([*settled, *moved, *(other for other in found.values() if other.size <= RANGE)])
        _give_numbers(connection, own, goes_on=numbers.lowest == own.lowest)
        settled.append(own)
        yield f"new tenants at {name} get numbers from {own.lowest} to {own.highest}"


def _free_numbers(taken: list[Numbers]) -> Numbers:
    """The first range that overlaps none of those *taken*."""
    number = 0
    while any(Numbers(number * RANGE + 1, (number + 1) * RANGE).overlap(numbers) for numbers in taken):
        number += 1
    return Numbers(number * RANGE + 1, (number + 1) * RANGE)


def _give_numbers(connection: psycopg.Connection[Any], numbers: Numbers, *, goes_on: bool) -> None:
    """Have new tenants get *numbers*: from the first on, or if it *goes_on*, from the next one on."""
    bounds = sql.SQL(
        "ALTER TABLE vault.tenant ALTER COLUMN tenant SET MINVALUE {low} SET MAXVALUE {high} SET START {low}"
    )
    statement = bounds.format(low=sql.Literal(numbers.lowest), high=sql.Literal(numbers.highest))
    with connection.transaction():
        engine_of(connection).before_local_change(connection)
        connection.execute(statement if goes_on else statement + sql.SQL(" RESTART"))
