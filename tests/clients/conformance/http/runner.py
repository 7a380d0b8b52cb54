"""Plays scenarios of `tests/clients/conformance` by HTTP and JSON, with nothing but Python's own library.

    MUNIMENT_ADDRESS=… MUNIMENT_HOST_KEY=… [MUNIMENT_TLS_CA=…] python tests/clients/conformance/http/runner.py FILE

It starts `muniment http` for the server that the environment names, and prints the results, one line of JSON per step.
It makes each call once, and retries none.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

_SECONDS = 10.0
_START_SECONDS = 60.0
_END_OF_STREAM = 2
_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


class Unresolved(Exception):
    """A step names a variable that was never saved."""


class Lost(Exception):
    """The server cannot be reached."""


class Answer(NamedTuple):
    """The answer to a call: a message, or an error of the Connect protocol."""

    message: Mapping[str, Any] | None
    error: Mapping[str, Any]
    request_id: str


@contextmanager
def gateway(server: str) -> Iterator[http.client.HTTPConnection]:
    """Start a gateway, and connect to it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("muniment")), "http", "--listen", f"127.0.0.1:{port}"]
    process = subprocess.Popen([*command, "--server", server], stderr=subprocess.DEVNULL)
    try:
        yield _connected(port)
    finally:
        process.terminate()
        process.wait()


def _connected(port: int) -> http.client.HTTPConnection:
    end = time.monotonic() + _START_SECONDS
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    while True:
        try:
            connection.connect()
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise Lost("the gateway does not listen") from None
            time.sleep(0.05)
        else:
            return connection


def play(
    scenario: Mapping[str, Any], connection: http.client.HTTPConnection, host_key: str
) -> Iterator[dict[str, Any]]:
    """The result of each step."""
    variables: dict[str, str] = {}
    for number, step in enumerate(scenario["steps"]):
        result = _result(step, variables, connection, host_key)
        for name, path in step.get("save", {}).items():
            _save(variables, name, path, result.get("response"))
        yield {"scenario": scenario["name"], "step": number, **result}


def _result(
    step: Mapping[str, Any], variables: Mapping[str, str], connection: http.client.HTTPConnection, host_key: str
) -> dict[str, Any]:
    try:
        answer = _call(_resolved(step, variables), connection, host_key)
    except Unresolved:
        return {"status": "UNRESOLVED"}
    if answer.message is not None:
        return {"status": "OK", "response": answer.message}
    details = [detail["debug"] for detail in answer.error.get("details", ())]
    reasons = [detail["reason"] for detail in details if detail["@type"] == _INFO]
    status = answer.error["code"].upper().replace("CANCELED", "CANCELLED")
    if status == "UNAVAILABLE" and not reasons and not step.get("may_be_lost"):
        raise Lost(answer.error["message"])
    return {
        "status": status,
        "reason": "".join(reasons[:1]),
        "message": answer.error["message"],
        "details": [detail for detail in details if detail["@type"] != _INFO],
        "request_id": answer.request_id,
    }


def _call(step: Mapping[str, Any], connection: http.client.HTTPConnection, host_key: str) -> Answer:
    headers = {"connect-timeout-ms": str(step.get("deadline_ms", round(_SECONDS * 1000)))}
    if step["as"] != "none":
        headers["authorization"] = f"Bearer {host_key if step['as'] == 'host' else step['as']}"
    path = f"/muniment.v1.{step['call'].replace('.', '/')}"
    if "requests" in step:
        return _stream(path, headers, step["requests"], connection)
    headers["content-type"] = "application/json"
    connection.request("POST", path, json.dumps(step["request"]), headers)
    response = connection.getresponse()
    body = json.loads(response.read())
    request_id = response.headers.get("request-id", "")
    return Answer(body, {}, request_id) if response.status == 200 else Answer(None, body, request_id)


def _stream(
    path: str, headers: Mapping[str, str], requests: list[Any], connection: http.client.HTTPConnection
) -> Answer:
    """Send a stream of messages, each after its size. The answer has the same form, and ends with the error, if any."""
    packed = [json.dumps(request).encode() for request in requests]
    body = b"".join(struct.pack(">BI", 0, len(message)) + message for message in packed)
    connection.request("POST", path, body, {**headers, "content-type": "application/connect+json"})
    response = connection.getresponse()
    left, message, error = response.read(), None, {}
    while left:
        flags, size = struct.unpack(">BI", left[:5])
        part, left = json.loads(left[5 : 5 + size]), left[5 + size :]
        if flags & _END_OF_STREAM:
            error = part.get("error", {})
        else:
            message = part
    return Answer(None if error else message, error, response.headers.get("request-id", ""))


def _resolved(value: Any, variables: Mapping[str, str]) -> Any:
    """The value, with each `${name}` in it replaced."""
    if isinstance(value, Mapping):
        return {key: _resolved(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [_resolved(each, variables) for each in value]
    if not isinstance(value, str):
        return value
    try:
        return re.sub(r"\$\{(\w+)\}", lambda name: variables[name[1]], value)
    except KeyError:
        raise Unresolved from None


def _save(variables: dict[str, str], name: str, path: str, response: Any) -> None:
    """Save the value at a dotted path of the response, if there is one."""

    def step(value: Any, part: str) -> Any:
        if isinstance(value, list):
            return value[int(part)] if int(part) < len(value) else None
        return value.get(part) if isinstance(value, dict) else None

    found = reduce(step, path.split("."), response)
    if found is not None:
        variables[name] = found if isinstance(found, str) else json.dumps(found)


def main() -> int:
    scenarios = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["scenarios"]
    with gateway(os.environ["MUNIMENT_ADDRESS"]) as connection:
        for scenario in scenarios:
            for record in play(scenario, connection, os.environ["MUNIMENT_HOST_KEY"]):
                print(json.dumps(record), flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, KeyError, Lost) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
