"""The baseline of all calls: a gRPC server with nothing in it, no interceptor, no database. One process."""

from __future__ import annotations

import sys
from concurrent import futures
from typing import Any

import grpc

_MIB = 1024 * 1024
_OPTIONS = {
    "grpc.max_receive_message_length": _MIB,
    "grpc.max_send_message_length": 4 * _MIB,
    "grpc.max_metadata_size": 8 * 1024,
    "grpc.absolute_max_metadata_size": 8 * 1024,
    "grpc.max_concurrent_streams": 100,
    "grpc.http2.max_ping_strikes": 2,
    "grpc.enable_channelz": 0,
    "grpc.so_reuseport": 1,
}
"""Those of the service that could matter here."""


class OneMethod(grpc.GenericRpcHandler):
    """Answers every method with the same handler."""

    def __init__(self, handler: grpc.RpcMethodHandler[Any, Any]) -> None:
        self._handler = handler

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        """The one handler."""
        return self._handler


def serve(handler: grpc.RpcMethodHandler[Any, Any], address: str, threads: int) -> None:
    """Serve *handler* until the standard input ends."""
    server = grpc.server(futures.ThreadPoolExecutor(threads), options=[*_OPTIONS.items()])
    server.add_generic_rpc_handlers((OneMethod(handler),))
    server.add_insecure_port(address)
    server.start()
    print("ready", flush=True)
    sys.stdin.read()
    server.stop(1).wait()


def main() -> None:
    """`python -m tests.tools.bench.ping ADDRESS THREADS`."""
    serve(grpc.unary_unary_rpc_method_handler(lambda request, context: request), sys.argv[1], int(sys.argv[2]))


if __name__ == "__main__":
    main()
