"""The baseline of reads: a gRPC server with nothing in it, no interceptor, no database. One process."""

from __future__ import annotations

import sys
from concurrent import futures
from typing import Any

import grpc


class _Echo(grpc.GenericRpcHandler):
    """Answers every method with what it was sent."""

    def __init__(self) -> None:
        self._handler: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(
            lambda request, context: request
        )

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        return self._handler


def main() -> None:
    """Serve until the input ends: `python -m tests.bench.ping ADDRESS THREADS`."""
    server = grpc.server(futures.ThreadPoolExecutor(int(sys.argv[2])))
    server.add_generic_rpc_handlers((_Echo(),))
    server.add_insecure_port(sys.argv[1])
    server.start()
    print("ready", flush=True)
    sys.stdin.read()
    server.stop(1).wait()


if __name__ == "__main__":
    main()
