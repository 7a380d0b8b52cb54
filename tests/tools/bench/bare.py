"""The baseline of reads: what a Python gRPC server over Postgres costs at least. One process.

It answers GetMemory with one SELECT by the whole key, on a pooled connection, from the table that the service reads.
It knows no caller, checks nothing, and answers with key and content alone.
"""

from __future__ import annotations

import sys
from typing import Any

import grpc
from psycopg_pool import ConnectionPool

from muniment.v1 import memory_pb2, memory_service_pb2
from tests.tools.bench.ping import serve

SELECT = """
SELECT content
  FROM item
 WHERE tenant = %(tenant)s AND agent = %(agent)s AND kind = 1 AND name = %(key)s AND delete_time IS NULL
"""


class Bare:
    """Reads the memories of one agent."""

    def __init__(self, pool: ConnectionPool[Any], *, tenant: int, agent: int) -> None:
        self._pool = pool
        self._tenant = tenant
        self._agent = agent

    def get_memory(
        self, request: memory_service_pb2.GetMemoryRequest, context: grpc.ServicerContext
    ) -> memory_service_pb2.GetMemoryResponse:
        """One memory; an error if there is none."""
        with self._pool.connection() as connection:
            row = connection.execute(
                SELECT, {"tenant": self._tenant, "agent": self._agent, "key": request.key}
            ).fetchone()
        assert row is not None
        return memory_service_pb2.GetMemoryResponse(memory=memory_pb2.Memory(key=request.key, content=row[0]))


def main() -> None:
    """`python -m tests.tools.bench.bare ADDRESS THREADS CONNINFO TENANT AGENT`."""
    address, threads, conninfo, tenant, agent = sys.argv[1:]
    with ConnectionPool(
        conninfo, kwargs={"autocommit": True, "prepare_threshold": 0}, min_size=int(threads), open=True
    ) as pool:
        handler = grpc.unary_unary_rpc_method_handler(
            Bare(pool, tenant=int(tenant), agent=int(agent)).get_memory,
            request_deserializer=memory_service_pb2.GetMemoryRequest.FromString,
            response_serializer=memory_service_pb2.GetMemoryResponse.SerializeToString,
        )
        serve(handler, address, int(threads))


if __name__ == "__main__":
    main()
