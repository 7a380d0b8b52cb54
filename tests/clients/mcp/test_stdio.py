"""What is no message is answered, and never read as another text."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from typing import Any

import httpx2
import pytest
from mcp_types import INVALID_REQUEST, PARSE_ERROR, JSONRPCRequest

from muniment import Classification
from muniment.mcp.stdio import MAX_MESSAGE, Line, NoMessage, message_of
from tests.clients.mcp.conftest import COMMAND
from tests.clients.mcp.over_http import HEADERS, SECONDS, serving

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
SAVE = (
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call",'
    b'"params":{"name":"memory_save","arguments":{"key":"k","content":"%s"}}}'
)
LATIN_1 = SAVE % b"caf\xe9"
HALF_OF_A_PAIR = SAVE % rb"cut \ud83d"
HALF_A_REQUEST = b'{"jsonrpc":"2.0","id":8,"method":'
TOO_LONG = (
    b'{"method":"tools/call","params":{"id":1,"text":"' + b"x" * (MAX_MESSAGE + 5) + b'"},"jsonrpc":"2.0","id":9}'
)

REFUSED = {
    "bytes that are not UTF-8": (LATIN_1, PARSE_ERROR, 7),
    "half of a surrogate pair": (HALF_OF_A_PAIR, PARSE_ERROR, 7),
    "half of a surrogate pair in the id": (rb'{"jsonrpc":"2.0","id":"\ud83d","method":"ping"}', PARSE_ERROR, None),
    "half a request": (HALF_A_REQUEST, PARSE_ERROR, 8),
    "half an id": (b'{"jsonrpc":"2.0","id":8', PARSE_ERROR, None),
    "half a text": (b'{"id":8,"method":"tools/call","params":{"id":"', PARSE_ERROR, 8),
    "no quotes": (b'{"id":"a-1","method":ping}', PARSE_ERROR, "a-1"),
    "the id of something else": (rb'{"params":{"id":3},"text":"\"id\":4,","method":"\ud83d"}', PARSE_ERROR, None),
    "the id at the end": (rb'{"params":{"id":3},"method":"\ud83d","id":-5}', PARSE_ERROR, -5),
    "an endless text": (b'"' + rb"\"" * 500_000, PARSE_ERROR, None),
    "too deep": (b'{"id":8,"params":' + b"[" * 300, PARSE_ERROR, 8),
    "not JSON": (b"GET / HTTP/1.1", PARSE_ERROR, None),
    "two messages in a line": (b'{"jsonrpc":"2.0","id":8,"method":"ping"} {}', PARSE_ERROR, 8),
    "a batch": (b'[{"jsonrpc":"2.0","id":8,"method":"ping"}]', INVALID_REQUEST, None),
    "a number": (b"5", INVALID_REQUEST, None),
    "another version": (b'{"jsonrpc":"1.0","id":8,"method":"ping"}', INVALID_REQUEST, 8),
    "parameters that are a list": (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":[]}', INVALID_REQUEST, 8),
    "an id that is null": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST, None),
    "an id with a fraction": (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID_REQUEST, None),
}


@pytest.fixture
def session(opened):
    return opened(Classification.PUBLIC)


@pytest.mark.parametrize(("line", "code", "request_id"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_message_is_refused_with_its_id_if_it_has_one(line, code, request_id):
    with pytest.raises(NoMessage) as refused:
        message_of(Line(line))

    assert (refused.value.answer.error.code, refused.value.answer.id) == (code, request_id)


def test_what_is_a_message_is_read():
    assert message_of(Line(SAVE % "café".encode())) == JSONRPCRequest.model_validate(json.loads(SAVE % "café".encode()))


def test_each_line_on_standard_input_is_answered_and_the_process_survives(service, session):
    """The host would wait for ever otherwise."""
    hello = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}).encode()
    last = b'{"jsonrpc":"2.0","id":99,"method":"ping"}'
    lines = [b"early", hello, HALF_A_REQUEST, b"", b"  \r", LATIN_1, HALF_OF_A_PAIR, TOO_LONG, last]
    environment = {"MUNIMENT_ADDRESS": service.address, "MUNIMENT_TOKEN": session.token}
    answers: list[dict[str, Any]] = []
    with subprocess.Popen([COMMAND], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n".join([*lines, b""]))
        process.stdin.flush()
        while not answers or answers[-1]["id"] != 99:
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.wait(SECONDS) == 0

    codes = Counter((answer["id"], answer.get("error", {}).get("code")) for answer in answers)
    assert codes == {(None, -32700): 1, (0, None): 1, (8, -32700): 1, (7, -32700): 2, (9, -32700): 1, (99, None): 1}
    assert list(session.list_memories()) == []


@pytest.mark.parametrize("line", [LATIN_1, HALF_OF_A_PAIR, HALF_A_REQUEST], ids=["latin 1", "half a pair", "half"])
def test_over_http_it_is_an_error_too(service, session, line):
    with serving(service.address) as endpoint:
        bearer = {"Authorization": f"Bearer {session.token}", "Content-Type": "application/json"}
        refused = httpx2.post(endpoint.url, content=line, headers=HEADERS | bearer, timeout=SECONDS)

    assert (refused.status_code, refused.json()["error"]["code"]) == (400, PARSE_ERROR)
    assert list(session.list_memories()) == []
