"""MCP over streamable HTTP: each request with the token of its own session, and nothing kept in between."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import httpx2
import pytest

import muniment
from muniment import Classification, Integrity
from muniment.mcp import main
from muniment.mcp.log import BriefHandler
from tests.clients.mcp.conftest import COMMAND
from tests.clients.mcp.over_http import HEADERS, Endpoint, call_of, serving, serving_alone, talking_over_http
from tests.clients.mcp.tools import TOOLS
from tests.clients.python.scripted import ScriptedServer, error_info, retry_info, serve, status
from tests.support.certificates import make
from tests.support.examples import TOKEN

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
CANARY = "canary-in-a-content"
PROMPT_WITH_ARGUMENTS = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "prompts/get",
    "params": {"name": "memory", "arguments": {"agent": CANARY}},
}
README = Path(__file__).parents[3] / "clients/python/README.md"
OVER_HTTP = README.read_text(encoding="utf-8").partition("\n### Over HTTP\n")[2].partition("\n## ")[0]


@pytest.fixture
def endpoint(service) -> Iterator[Endpoint]:
    with serving(service.address) as endpoint:
        yield endpoint


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_of_the_sdk(endpoint, owner, opened, mode):
    """Of today's protocol, and of those with a handshake."""
    session = opened(PUBLIC)
    async with talking_over_http(endpoint, session.token, mode=mode) as model:
        assert [tool.name for tool in (await model.client.list_tools()).tools] == TOOLS
        await model.does("memory_save", key="plan", content="ship on Friday")
        owner.raise_taint(session, CONFIDENTIAL, reason="read the payroll")
        saved = await model.does("memory_save", key="salary", content="52,000 a year")
        result = await model.call("memory_get", key="salary")
        prompt = await model.client.get_prompt("memory")

    assert saved["classification"] == "CONFIDENTIAL"
    assert result.meta is not None
    assert result.meta["ifc"] == {"integrity": "untrusted", "confidentiality": "private"}
    assert prompt.messages


@pytest.mark.anyio
async def test_a_trusted_session_is_answered_trusted_until_it_is_raised(endpoint, owner):
    session = owner.open_session("alice", PUBLIC, integrity=Integrity.TRUSTED)
    async with talking_over_http(endpoint, session.token) as model:
        saved = await model.call("memory_save", key="plan", content="ship on Friday")
        owner.raise_taint(session, PUBLIC, reason="read a page")
        read = await model.call("memory_get", key="plan")

    assert [(each.meta or {})["ifc"]["integrity"] for each in (saved, read)] == ["trusted", "untrusted"]


@pytest.mark.anyio
async def test_each_request_acts_as_the_session_of_its_token(endpoint, service, opened):
    """At once, one after another on one connection, and never as the session of another request."""
    with muniment.connect(service.address, host_key=service.host("other").token) as other:
        other.create_agent("alice")
        sessions = {"a": opened(PUBLIC), "b": opened(RESTRICTED), "c": other.open_session("alice", INTERNAL)}
        for name, session in sessions.items():
            session.save_memory(f"of-{name}", "It is so.")
        async with httpx2.AsyncClient(headers=HEADERS, timeout=60) as http:

            async def seen(name: str) -> tuple[str, list[str]]:
                headers = {"Authorization": f"Bearer {sessions[name].token}"}
                response = await http.post(endpoint.url, json=call_of("memory_list"), headers=headers)
                return name, [each["key"] for each in response.json()["result"]["structuredContent"]["memories"]]

            at_once = await asyncio.gather(*map(seen, "abcabcabcabcabc"))
            in_turn = [await seen(name) for name in "acbcba"]

    expected = {"a": ["of-a"], "b": ["of-a", "of-b"], "c": ["of-c"]}
    assert all(keys == expected[name] for name, keys in [*at_once, *in_turn])


def refusal(response: httpx2.Response) -> tuple[Any, ...]:
    """All of an answer but its date."""
    headers = {name: value for name, value in response.headers.items() if name != "date"}
    return response.status_code, headers, response.content


@pytest.mark.parametrize("state", ["none", "malformed", "unknown", "closed", "of another tenant", "host key"])
def test_without_the_token_of_an_open_session_there_is_only_a_401(endpoint, service, opened, state):
    """The same for all of them."""
    session = opened(PUBLIC)
    session.save_memory("plan", CANARY)
    assert endpoint.call(session.token).status_code == 200
    tokens = {
        "none": None,
        "malformed": "x",
        "unknown": session.token[:-4] + "AAAA",
        "closed": session.token,
        "of another tenant": session.token.replace("mun_s_1_", "mun_s_2_"),
        "host key": service.host().token,
    }
    assert tokens["of another tenant"] != session.token
    if state == "closed":
        session.close()

    refused = endpoint.call(tokens[state])

    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer ")
    assert refusal(refused) == refusal(endpoint.call("mun_s_1_" + "x" * 43))
    assert CANARY not in refused.text


@pytest.mark.parametrize("handshake", [False, True], ids=["2026-07-28", "2025-06-18"])
def test_no_session_of_mcp_is_begun_so_none_can_be_taken_over(endpoint, opened, handshake):
    """Whoever sends a session id, of whatever origin, gets the answer of an unknown one."""
    mine, foreign = opened(PUBLIC), opened(CONFIDENTIAL)
    begun = endpoint.post(mine.token, _initialize())
    assert begun.status_code == 200
    assert "mcp-session-id" not in begun.headers
    content = _initialize() if handshake else call_of("memory_list")

    refused = [
        endpoint.post(token, content, {"Mcp-Session-Id": sent})
        for sent in ("5d0c4a0e4f524d7b9a536c2f6f6f2d10", mine.session_id)
        for token in (mine.token, foreign.token)
    ]
    mine.close()
    refused.append(endpoint.post(mine.token, content, {"Mcp-Session-Id": mine.session_id}))

    assert [response.status_code for response in refused] == [404] * 5
    assert len({str(refusal(response)) for response in refused}) == 1


def _initialize() -> dict[str, Any]:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS"])
def test_there_is_no_stream_to_open(endpoint, opened, method):
    headers = HEADERS | {"Authorization": f"Bearer {opened(PUBLIC).token}"}
    refused = httpx2.request(method, endpoint.url, headers=headers)

    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("header", "value", "code"),
    [
        ("Host", "evil.example", 421),
        ("Host", "evil.example:{port}", 421),
        ("Host", "127.0.0.1.evil.example:{port}", 421),
        ("Host", "127.0.0.1:1", 421),
        ("Host", "", 421),
        ("Origin", "http://evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "http://127.0.0.1:{port}", 403),
    ],
)
def test_a_request_under_a_foreign_name_or_of_a_page_is_refused(endpoint, opened, header, value, code):
    """Although its token is good."""
    session = opened(PUBLIC)
    content = call_of("memory_save", key="plan", content="x")
    refused = endpoint.post(session.token, content, {header: value.format(port=endpoint.port)})

    assert refused.status_code == code
    assert list(session.list_memories()) == []
    assert endpoint.post(session.token, content, {"Host": f"localhost:{endpoint.port}"}).status_code == 200


@pytest.mark.parametrize("chunked", [False, True], ids=["with its length", "in chunks"])
def test_a_body_is_limited(endpoint, opened, chunked):
    session = opened(PUBLIC)
    body = json.dumps(call_of("memory_save", key="plan", content="x" * 2 * 1024 * 1024)).encode()
    headers = HEADERS | {"Authorization": f"Bearer {session.token}", "Content-Type": "application/json"}
    refused = httpx2.post(endpoint.url, content=iter([body]) if chunked else body, headers=headers)

    assert refused.status_code == 413
    assert list(session.list_memories()) == []


def test_a_bearer_has_few_requests_at_a_time_and_others_have_theirs(endpoint, opened, monkeypatch):
    """The bodies of the first never arrive."""
    monkeypatch.setattr("muniment.mcp.admission.BODY_SECONDS", 4.0)
    greedy, other = opened(PUBLIC), opened(PUBLIC)
    sockets = [_begin(endpoint, greedy.token) for _ in range(8)]
    with ThreadPoolExecutor(1) as beside:
        refused = next(filter(None, (_refused(endpoint, greedy.token) for _ in range(100))))
        served = beside.submit(endpoint.call, other.token).result()
    answers = [_read_to_the_end(each).split(b"\r\n")[0] for each in sockets]

    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert served.status_code == 200
    assert answers == [b"HTTP/1.1 408 Request Timeout"] * 8
    assert endpoint.call(greedy.token).status_code == 200


def _refused(endpoint: Endpoint, token: str) -> httpx2.Response | None:
    response = endpoint.call(token)
    return response if response.status_code == 429 else None


def _begin(endpoint: Endpoint, token: str) -> Any:
    """A connection with a request whose body does not arrive."""
    connection = endpoint.connect()
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{endpoint.port}\r\nAuthorization: bEARER {token}\r\n"
    connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{".encode())
    return connection


@pytest.mark.proof
def test_a_thousand_open_connections_stop_no_one(endpoint, opened):
    """Silent ones, and those whose head or body trickles in, are closed in time. Meanwhile others are served."""
    greedy, other = opened(PUBLIC), opened(PUBLIC)
    connections = [endpoint.connect() for _ in range(600)]
    for each in connections[300:]:
        each.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127")
    connections += [_begin(endpoint, greedy.token) for _ in range(400)]

    assert endpoint.call(other.token, "memory_save", key="plan", content="x").status_code == 200
    for each in connections[300:600]:
        each.sendall(b".0")
    ended = [_read_to_the_end(each) for each in connections]
    assert endpoint.call(greedy.token).status_code == 200
    statuses = {answer.split(b"\r\n")[0] for answer in ended}
    assert statuses == {b"", b"HTTP/1.1 408 Request Timeout", b"HTTP/1.1 429 Too Many Requests"}
    assert [answer for answer in ended[:600] if answer] == []


def test_responses_that_are_not_read_are_few_and_given_up(endpoint, opened, monkeypatch):
    """Otherwise one caller could fill the memory with them."""
    monkeypatch.setattr("muniment.mcp.http.READ_SECONDS", 5.0)
    session = opened(PUBLIC)
    for number in range(60):
        session.update_block(f"block-{number}", "z" * 65_536)
    whole = len(endpoint.call(session.token, "block_list").content)
    unread = [_asked(endpoint, session.token, "block_list") for _ in range(8)]
    refused = next(filter(None, (_refused(endpoint, session.token) for _ in range(100))))
    with ThreadPoolExecutor(8) as beside:
        while any(beside.map(lambda _: _refused(endpoint, session.token), range(8))):
            time.sleep(0.2)

    assert refused.status_code == 429
    assert all(len(_read_to_the_end(each)) < whole for each in unread)


def _asked(endpoint: Endpoint, token: str, tool: str) -> Any:
    """A connection on which a tool was called, and that has not been read."""
    connection = endpoint.connect()
    # Otherwise Linux may let the buffer grow until it holds a whole response.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    body = json.dumps(call_of(tool)).encode()
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{endpoint.port}\r\nAuthorization: Bearer {token}\r\n"
    types = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    connection.sendall(f"{head}{types}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return connection


def _read_to_the_end(connection: Any) -> bytes:
    received = b""
    try:
        while more := connection.recv(65536):
            received += more
    except ConnectionResetError:
        pass
    connection.close()
    return received


def test_nothing_secret_is_written(service, opened):
    session = opened(PUBLIC)
    with serving_alone(service.address) as endpoint:
        endpoint.call(session.token, "memory_save", key="plan", content=CANARY)
        endpoint.call(session.token, "memory_save", key="", content=CANARY)
        endpoint.call(session.token, CANARY, content=CANARY)
        endpoint.post(session.token, CANARY)
        endpoint.post(session.token, call_of("memory_list"), {"Origin": "http://evil.example"})
        endpoint.post(session.token, call_of("memory_list"), {"Host": CANARY})
        endpoint.post(session.token, PROMPT_WITH_ARGUMENTS)
        endpoint.call(session.token + "x")
    written = "".join(endpoint.errors)

    assert CANARY not in written
    assert session.token not in written
    assert "Traceback" not in written


def test_refusals_write_next_to_nothing(service, opened):
    """To write takes time on the thread that serves all callers, and these need no token, or any."""
    token = opened(PUBLIC).token
    with serving_alone(service.address) as endpoint:
        for _ in range(50):
            connection = endpoint.connect()
            connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: " + b"x" * 15_000 + b"\r\nContent-Length: 0\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 421"
            connection.close()
            assert "error" in endpoint.post(token, PROMPT_WITH_ARGUMENTS).json()
    written = "".join(endpoint.errors)

    assert re.search(r"transport_security: line \d+", written)
    assert "ERROR" not in written
    assert len(endpoint.errors) <= 100
    assert max(map(len, endpoint.errors)) < 100


def test_the_log_has_our_messages_and_counts_what_it_leaves_out(capsys):
    log = BriefHandler()
    records = [logging.LogRecord(name, logging.WARNING, "x.py", 1, CANARY, (), None) for name in ("mcp.x", "muniment")]
    for second in (10.0, 10.5, 10.9, 11.5):
        for record in records:
            record.created = second
            log.handle(record)

    assert capsys.readouterr().err.splitlines() == [
        "WARNING mcp.x: line 1",
        f"WARNING muniment: {CANARY}",
        "WARNING mcp.x: line 1 (2 more before)",
        f"WARNING muniment: {CANARY} (2 more before)",
    ]


@pytest.fixture
def scripted() -> Iterator[tuple[ScriptedServer, Endpoint]]:
    """A memory that answers as scripted, behind a server."""
    answering = ScriptedServer()
    server, port = serve(answering, "127.0.0.1:0")
    with serving(f"127.0.0.1:{port}") as endpoint:
        yield answering, endpoint
    server.stop(None).wait()


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (grpc.StatusCode.INTERNAL, "INTERNAL", 503),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "RATE_LIMITED", 429),
        (grpc.StatusCode.UNAUTHENTICATED, "CREDENTIAL_INVALID", 401),
    ],
)
def test_a_memory_that_cannot_decide_refuses_no_token(scripted, code, reason, expected):
    server, endpoint = scripted
    server.script("GetSession", status(code, error_info(reason)))

    refused = endpoint.call(TOKEN)

    assert refused.status_code == expected
    assert (refused.headers.get("retry-after") is None) == (expected == 401)


@pytest.mark.parametrize("refused", ["GetSession", "ListMemories"])
def test_a_caller_that_reached_its_limit_is_answered_at_once(scripted, refused):
    """Otherwise a few such callers would hold all threads, and no one else would be served."""
    server, endpoint = scripted
    limit = status(grpc.StatusCode.RESOURCE_EXHAUSTED, error_info("RATE_LIMITED"), retry_info(0.01))
    server.script(refused, limit)

    answer = endpoint.call(TOKEN)

    assert len(server.requests(refused)) == 1
    assert answer.status_code == 429 or "The memory is busy" in answer.text


def refused_with(monkeypatch, listen: str, *options: str) -> str:
    """What `muniment-mcp --http` ends with, in this process: with status 1, and this on stderr."""
    monkeypatch.setattr("sys.argv", ["muniment-mcp", "--http", listen, *options])
    monkeypatch.setattr("muniment.mcp.log.configure", lambda: None)
    with pytest.raises(SystemExit) as refused:
        main()
    assert isinstance(refused.value.code, str)
    return refused.value.code


@pytest.mark.parametrize(
    ("listen", "options", "said"),
    [
        ("0.0.0.0:8080", (), "on loopback only"),
        ("[::]:8080", (), "on loopback only"),
        ("muniment.example:8080", (), "on loopback only"),
        ("8080", (), "give HOST:PORT"),
        ("127.0.0.1:http", (), "give HOST:PORT"),
        ("127.0.0.1:0", ("--tls-cert", "server.pem"), "--tls-cert and --tls-key"),
        ("0.0.0.0:0", ("--tls-cert", "no.pem", "--tls-key", "no.key"), "--tls-key cannot be used (No such file"),
        ("0.0.0.0:0", ("--tls-cert", "empty.pem", "--tls-key", "empty.pem"), "--tls-key cannot be used ("),
        (
            "192.0.2.1:8080",
            ("--tls-cert", "server.pem", "--tls-key", "server.key"),
            "--http: cannot listen on 192.0.2.1",
        ),
    ],
)
def test_an_option_that_cannot_be_used_is_named(papers, monkeypatch, capsys, listen, options, said):
    """And never the variables of the memory's server. Nothing is served in the clear."""
    monkeypatch.chdir(papers)
    monkeypatch.setenv("MUNIMENT_ADDRESS", "127.0.0.1:1")
    (line,) = refused_with(monkeypatch, listen, *options).splitlines()

    assert capsys.readouterr() == ("", "")
    assert said in line
    assert "MUNIMENT" not in line


@pytest.mark.parametrize("address", [None, "", " "])
def test_it_does_not_start_without_the_address_of_the_memory(monkeypatch, capsys, address):
    monkeypatch.delenv("MUNIMENT_ADDRESS", raising=False)
    if address is not None:
        monkeypatch.setenv("MUNIMENT_ADDRESS", address)
    refused = refused_with(monkeypatch, "127.0.0.1:0")

    assert capsys.readouterr() == ("", "")
    assert refused.startswith("MUNIMENT_ADDRESS is not set: set it to ")


def test_a_port_that_is_taken_is_said_to_be(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [COMMAND, "--http", f"127.0.0.1:{port}"]
        environment = {"MUNIMENT_ADDRESS": "127.0.0.1:1"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == f"--http: cannot listen on 127.0.0.1, port {port} (Address already in use): give another address\n"
    )


@pytest.fixture(scope="module")
def papers(tmp_path_factory) -> Path:
    """A folder with a certificate and its key, and an empty file."""
    folder: Path = tmp_path_factory.mktemp("papers")
    (folder / "empty.pem").touch()
    make(folder, "server", "-addext", "subjectAltName=IP:192.0.2.1")
    return folder


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")
def test_with_tls_under_the_names_that_it_was_given(service, opened, tmp_path):
    make(tmp_path, "ca", "-addext", "basicConstraints=critical,CA:TRUE")
    make(tmp_path, "server", "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1")
    options = ("--tls-cert", str(tmp_path / "server.pem"), "--tls-key", str(tmp_path / "server.key"))
    token = opened(PUBLIC).token
    with serving_alone(service.address, *options, "--name", "memory.example", listen="0.0.0.0:0") as endpoint:
        url = endpoint.url.replace("0.0.0.0", "127.0.0.1")
        verifying = httpx2.Client(verify=ssl.create_default_context(cafile=str(tmp_path / "ca.pem")))
        headers = HEADERS | {"Authorization": f"Bearer {token}"}
        codes = [
            verifying.post(url, json=call_of("memory_list"), headers=headers | {"Host": host}).status_code
            for host in (
                f"memory.example:{endpoint.port}",
                "memory.example",
                f"127.0.0.1:{endpoint.port}",
                "evil.example",
            )
        ]
        verifying.close()

    assert codes == [200, 200, 421, 421]


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_the_commands_of_the_readme(service, opened):
    """The command that serves, and the calls with curl, as they are pasted."""
    shown, calls = re.findall(r"^```sh\n(.*?)^```", OVER_HTTP, re.DOTALL | re.MULTILINE)
    program, command, option, _ = shlex.split(shown)
    with serving_alone(service.address, command=(str(Path(COMMAND).with_name(program)), command)) as endpoint:
        script = calls.replace("127.0.0.1:8080", f"127.0.0.1:{endpoint.port}")
        environment = {"PATH": os.environ["PATH"], "MUNIMENT_TOKEN": opened(PUBLIC).token}
        done = subprocess.run(["sh", "-euc", script], env=environment, capture_output=True, text=True, check=True)
    assert option == "--http"
    begun, saved, found = (json.loads(line)["result"] for line in done.stdout.splitlines())
    assert begun["protocolVersion"] == "2025-06-18"
    assert saved["structuredContent"] == {"classification": "PUBLIC", "key": "plan"}
    assert found["structuredContent"]["content"] == "ship on Friday"
