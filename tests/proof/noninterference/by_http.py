"""The door of a world by HTTP: a gateway before its server, and a channel that posts to it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import grpc

from tests.operations.http.gateways import Gateway
from tests.proof.noninterference.replay import OPERATION

_FORWARD = f"from muniment_http import gateway; gateway._FORWARDED = (*gateway._FORWARDED, {OPERATION!r}); "
_CODES = {code.name.lower(): code for code in grpc.StatusCode} | {"canceled": grpc.StatusCode.CANCELLED}
_RANDOM = {"date", "request-id"}


class Answered(grpc.RpcError):
    """What came back, as a call of gRPC: all that was observed stands in its metadata."""

    def __init__(self, error: Any, seen: Sequence[tuple[str, str]]) -> None:
        self._error = error
        self._seen = tuple(seen)

    def code(self) -> grpc.StatusCode:
        return _CODES[self._error["code"]] if self._error else grpc.StatusCode.OK

    def details(self) -> str:
        return json.dumps(self._error)

    def initial_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._seen

    def trailing_metadata(self) -> tuple[Any, ...]:
        return ()


class _Method:
    def __init__(self, port: int, path: str) -> None:
        self._port = port
        self._path = path

    def with_call(self, sent: bytes, metadata: Iterable[tuple[str, str]], timeout: float) -> tuple[bytes, Answered]:
        """Post the message, and return the response. Raises Answered for an error."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=timeout)
        try:
            connection.request("POST", self._path, sent, {**dict(metadata), "content-type": "application/proto"})
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        seen = [(name.lower(), value) for name, value in response.getheaders() if name.lower() not in _RANDOM]
        error = json.loads(answer) if response.status != 200 else None
        answered = Answered(error, [("http-status", str(response.status)), *seen])
        if error:
            raise answered
        return answer, answered


class HttpChannel:
    """What a world needs of a channel. Streams go by gRPC: through the gateway, a refusal may come without its reason.

    Whether it does depends on time alone.
    """

    def __init__(self, port: int, by_grpc: grpc.Channel) -> None:
        self._port = port
        self.stream_unary = by_grpc.stream_unary

    def unary_unary(self, path: str) -> _Method:
        return _Method(self._port, path)


@contextmanager
def by_http(server: int) -> Iterator[HttpChannel]:
    """A channel through a gateway to the server at a port."""
    address = f"127.0.0.1:{server}"
    with Gateway(address, before=_FORWARD) as gateway, grpc.insecure_channel(address) as by_grpc:
        yield HttpChannel(gateway.port, by_grpc)
