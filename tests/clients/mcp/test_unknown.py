"""What does not exist, and what is malformed, is refused with the code that the specification names."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.clients.mcp.over_http import HEADERS, SECONDS, call_of, serving_alone
from tests.support.answers import CONFIDENTIAL, PUBLIC

INVALID_PARAMS, METHOD_NOT_FOUND = -32602, -32601
_VERSION = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
REFUSED: dict[str, tuple[str, dict[str, Any], int]] = {
    "an unknown prompt": ("prompts/get", {"name": "never"}, INVALID_PARAMS),
    "arguments of a prompt": ("prompts/get", {"name": "memory", "arguments": {"level": "public"}}, INVALID_PARAMS),
    "a prompt without a name": ("prompts/get", {}, INVALID_PARAMS),
    "an unknown tool": ("tools/call", {"name": "never", "arguments": {}}, INVALID_PARAMS),
    "a tool without a name": ("tools/call", {}, INVALID_PARAMS),
    "arguments that are no object": ("tools/call", {"name": "memory_list", "arguments": [1]}, INVALID_PARAMS),
    "an unknown resource": ("resources/read", {"uri": "muniment://never"}, INVALID_PARAMS),
    "a resource without an address": ("resources/read", {}, INVALID_PARAMS),
    "an unknown method": ("never/never", {}, METHOD_NOT_FOUND),
    "a method that is not offered": ("resources/subscribe", {"uri": "muniment://prompt"}, METHOD_NOT_FOUND),
}


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_what_does_not_exist_has_its_code_and_no_line_in_the_log(service, opened, version):
    session = opened(PUBLIC)
    envelope = {} if version == "2025-06-18" else {"_meta": {_VERSION: version, _CAPABILITIES: {}}}
    found = {}
    with serving_alone(service.address) as endpoint:
        for what, (method, params, _) in REFUSED.items():
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, **envelope}}
            named = {"Mcp-Name": params.get("name") or params["uri"]} if {"name", "uri"} & params.keys() else {}
            headers = {"MCP-Protocol-Version": version, "Mcp-Method": method, **named}
            found[what] = endpoint.post(session.token, request, headers).json()["error"]["code"]

    assert found == {what: code for what, (_, _, code) in REFUSED.items()}
    assert endpoint.errors == []


def test_two_credentials_are_refused_whichever_comes_first(service, opened):
    """As gRPC refuses them: two servers behind each other might take different ones."""
    low, high = opened(PUBLIC), opened(CONFIDENTIAL)
    pairs = [(low.token, high.token), (high.token, low.token), (low.token, low.token), (low.token, "x")]
    with serving_alone(service.address) as endpoint:
        for pair in pairs:
            doubled = [*HEADERS.items(), *(("Authorization", f"Bearer {token}") for token in pair)]
            refused = httpx2.post(endpoint.url, json=call_of("memory_list"), headers=doubled, timeout=SECONDS)
            assert (refused.status_code, refused.text) == (400, "send one Authorization header")
        assert endpoint.call(low.token).status_code == 200
