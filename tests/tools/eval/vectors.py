"""A service that is measured: its client, and when it has embedded all that it has."""

from __future__ import annotations

import time

import click
import psycopg

import muniment
from tests.tools.bench.processes import Service

_WAITING = """
SELECT FROM muniment_internal.meaning WHERE embedder IS NULL
 UNION ALL
SELECT FROM muniment_internal.remote_embedding WHERE signs IS NULL
 LIMIT 1"""
_SLOWEST_VECTORS = 600.0
"""Seconds for those of one corpus: some hundred chunks, a tenth of a second each on a quiet machine."""


def host_of(service: Service) -> muniment.HostClient:
    """A client with the key of its host."""
    return muniment.connect(service.address, host_key=service.host_key, timeout=60)


def wait_for_vectors(service: Service) -> None:
    """Return when no chunk of an INTERNAL item waits for its vector."""
    deadline = time.monotonic() + _SLOWEST_VECTORS
    with psycopg.connect(service.conninfo("postgres"), autocommit=True) as admin:
        while admin.execute(_WAITING).rowcount:
            if time.monotonic() > deadline:
                raise click.ClickException(
                    f"vectors were not made in {_SLOWEST_VECTORS:.0f} s: `make run`, save something, and see why there"
                )
            time.sleep(0.2)
