"""Plays scenarios of `tests/clients/conformance` through this client and prints the results, one line of JSON per step.

MUNIMENT_ADDRESS=… MUNIMENT_HOST_KEY=… [MUNIMENT_TLS_CA=…] python clients/python/conformance/runner.py [--aio] FILE
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status

import muniment
from muniment import aio
from muniment._calls import Calls
from muniment._channel import TLS, open_channel
from muniment._status import error_of
from muniment.aio import _calls as aio_calls
from muniment.aio import _channel as aio_channel
from muniment.retries import METHODS, repeat

JSON = Any

_BY_NAME = {f"{method.containing_service.name}.{method.name}": method for method in METHODS.values()}
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_SECONDS = 10.0
_CONVERSATION = "conversation "


class Unresolved(Exception):
    """A step names a variable that was never saved."""


class Player:
    """Makes the calls of one host and its sessions."""

    def __init__(self, address: str, host_key: str, ca_file: str) -> None:
        tls = TLS(ca=ca_file) if ca_file else False
        self._host_key = host_key
        self._host = muniment.connect(address, host_key=host_key, tls=tls, timeout=_SECONDS)
        self._bare = open_channel(address, tls)
        self._conversations: dict[str, JSON] = {}

    def play(self, scenario: JSON) -> Iterator[JSON]:
        """The result of each step."""
        variables: dict[str, str] = {}
        self._conversations.clear()
        for number, step in enumerate(scenario["steps"]):
            if step.get("wait"):
                sys.stdin.readline()
            try:
                came = self._made(_resolved(step, variables))
            except Unresolved:
                came = {"status": "UNRESOLVED"}
            for name, path in step.get("save", {}).items():
                _save(variables, name, path, came)
            yield {"scenario": scenario["name"], "step": number, **came}

    def _made(self, step: JSON) -> JSON:
        """What the contract's JSON says of one call."""
        method = _BY_NAME[step["call"]]
        seconds = step["deadline_ms"] / 1000 if "deadline_ms" in step else None
        try:
            response = self._caller(step["as"])(method, _requests(method, step), seconds)
        except muniment.MunimentError as error:
            lost = error.code is grpc.StatusCode.UNAVAILABLE and not error.reason
            if lost and not step.get("may_be_lost"):
                raise ConnectionError(error.message) from None  # the error is the client's, not the service's
            return _failure(error)
        return {"status": "OK", "response": json_format.MessageToDict(response)}

    def _caller(self, credential: str) -> Callable[[MethodDescriptor, JSON, float | None], JSON]:
        if credential == "none":
            return self._without_credential
        calls = self._calls(credential)
        return lambda method, requests, seconds: _call(calls, method, requests, seconds)

    def _calls(self, credential: str) -> JSON:
        if credential.startswith(_CONVERSATION):
            if credential not in self._conversations:
                _, agent_id, conversation_id = credential.split()
                self._conversations[credential] = self._host.conversation(agent_id, conversation_id)
            return self._conversations[credential]._calls
        return self._host._calls.with_credential(self._host_key if credential == "host" else credential)

    def _without_credential(self, method: MethodDescriptor, requests: JSON, seconds: float | None) -> JSON:
        """A call without a credential, which the client itself cannot make."""

        def attempt(left: float) -> JSON:
            try:
                given = iter(requests) if method.client_streaming else requests[0]
                return _stub(self._bare, method)(given, timeout=left)
            except grpc.RpcError as failure:
                raise error_of(failure) from failure

        return repeat(attempt, lambda _: False, seconds or _SECONDS)


class AsyncPlayer(Player):
    """Makes the same calls with the asyncio client."""

    def __init__(self, address: str, host_key: str, ca_file: str) -> None:
        tls = TLS(ca=ca_file) if ca_file else False
        self._host_key = host_key
        self._runner = asyncio.Runner()
        self._client = aio.connect(address, host_key=host_key, tls=tls, timeout=_SECONDS)
        self._bare_channel = aio_channel.open_channel(address, tls)
        self._conversations = {}

    def _caller(self, credential: str) -> Callable[[MethodDescriptor, JSON, float | None], JSON]:
        return lambda *call: self._runner.run(self._awaited(credential, *call))

    async def _awaited(self, credential: str, method: MethodDescriptor, requests: JSON, seconds: float | None) -> JSON:
        given = aio_calls.each_of(requests) if method.client_streaming else requests[0]
        if credential == "none":
            return await aio_calls.answer(_stub(self._bare_channel, method)(given, timeout=seconds or _SECONDS))
        calls = await self._awaited_calls(credential)
        make = calls.stream if method.client_streaming else calls
        return await make(_stub(calls.channel, method), given, seconds)

    async def _awaited_calls(self, credential: str) -> JSON:
        if credential.startswith(_CONVERSATION):
            if credential not in self._conversations:
                _, agent_id, conversation_id = credential.split()
                self._conversations[credential] = await self._client.conversation(agent_id, conversation_id)
            return self._conversations[credential]._calls
        return self._client._calls.with_credential(self._host_key if credential == "host" else credential)


def _call(calls: Calls, method: MethodDescriptor, requests: JSON, seconds: float | None) -> JSON:
    stub = _stub(calls.channel, method)
    return calls.stream(stub, requests, seconds) if method.client_streaming else calls(stub, requests[0], seconds)


def _stub(channel: grpc.Channel | grpc.aio.Channel, method: MethodDescriptor) -> JSON:
    """The method of the generated stub."""
    module = import_module(f"{method.containing_service.file.name.removesuffix('.proto').replace('/', '.')}_pb2_grpc")
    return getattr(getattr(module, f"{method.containing_service.name}Stub")(channel), method.name)


def _requests(method: MethodDescriptor, step: JSON) -> list[JSON]:
    kind = GetMessageClass(method.input_type)
    given = step["requests"] if "requests" in step else [step["request"]]
    return [json_format.ParseDict(each, kind()) for each in given]


def _failure(error: muniment.MunimentError) -> JSON:
    """The error as the client reports it, with the details as the server sent them."""
    status = rpc_status.from_call(error.__cause__)  # type: ignore[arg-type]  # the cause is the call
    details = [each for each in status.details if not each.Is(ErrorInfo.DESCRIPTOR)] if status else []
    return {
        "status": error.code.name,
        "reason": error.reason,
        "message": error.message,
        "details": [json_format.MessageToDict(each) for each in details],
        "request_id": error.request_id,
    }


def _resolved(value: JSON, variables: dict[str, str]) -> JSON:
    """The value, with each `${name}` in it replaced."""
    match value:
        case dict():
            return {name: _resolved(each, variables) for name, each in value.items()}
        case list():
            return [_resolved(each, variables) for each in value]
        case str():
            return _VARIABLE.sub(lambda match: _value_of(match[1], variables), value)
    return value


def _value_of(name: str, variables: dict[str, str]) -> str:
    if name not in variables:
        raise Unresolved(name)
    return variables[name]


def _save(variables: dict[str, str], name: str, path: str, came: JSON) -> None:
    """Save the value at a dotted path of the response, if there is one."""
    value = came.get("response")
    for part in path.split("."):
        try:
            value = value[int(part) if isinstance(value, list) else part]
        except (LookupError, TypeError):
            return
    variables[name] = value if isinstance(value, str) else json.dumps(value)


def main() -> int:
    """Play the file that is named on the command line."""
    try:
        *options, file = sys.argv[1:]
        with open(file, encoding="utf-8") as opened:
            scenarios = json.load(opened)["scenarios"]
        environment = [os.environ.get(f"MUNIMENT_{name}", "") for name in ("ADDRESS", "HOST_KEY", "TLS_CA")]
        player = AsyncPlayer(*environment) if "--aio" in options else Player(*environment)
        for scenario in scenarios:
            for record in player.play(scenario):
                print(json.dumps(record, sort_keys=True), flush=True)
    except (ValueError, KeyError, TypeError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
