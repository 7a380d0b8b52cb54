"""What the gateway forwards, and what it refuses."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner

from muniment_http.command import http
from tests.operations.http.gateways import JSON, Gateway
from tests.support.commands import COMMAND, run, wait_until
from tests.support.ports import free_port

GET = "/muniment.v1.MemoryService/GetMemory"


@pytest.fixture
def token(gateway, host_key):
    opened = gateway.call(
        "SessionService/OpenSession", host_key, {"agentId": "alice", "taint": "CLASSIFICATION_INTERNAL"}
    )
    return opened.json["token"]


def test_a_memory_is_saved_and_read_as_json(gateway, token):
    saved = gateway.call("MemoryService/SaveMemory", token, {"key": "plan", "content": "ship on Friday 🎂"})
    got = gateway.call("MemoryService/GetMemory", token, {"key": "plan"})

    assert saved.status == got.status == 200
    assert got.headers["content-type"] == JSON
    assert got.json["memory"]["content"] == "ship on Friday 🎂"
    assert got.json["memory"]["classification"] == "CLASSIFICATION_INTERNAL"
    assert len(got.headers["request-id"]) == 24


def test_an_error_has_its_reason_in_json(gateway, token):
    refused = gateway.call("MemoryService/GetMemory", token, {"key": "absent"})

    assert (refused.status, refused.json["code"]) == (404, "not_found")
    (detail,) = refused.json["details"]
    assert detail["debug"]["reason"] == "MEMORY_NOT_FOUND"
    assert len(refused.headers["request-id"]) == 24


def test_a_field_that_the_contract_lacks_is_refused_by_its_name(gateway, token):
    """Otherwise a memory that should expire would stay."""
    refused = gateway.call(
        "MemoryService/SaveMemory", token, {"key": "brief", "content": "x", "expireTme": "2030-01-01"}
    )

    assert (refused.status, refused.json["code"]) == (400, "invalid_argument")
    assert 'no field named "expireTme"' in refused.json["message"]
    assert gateway.call("MemoryService/GetMemory", token, {"key": "brief"}).status == 404


@pytest.mark.parametrize("body", ["{", "[]", "7", '{"key": 7}', '{"key": "a", "key": "b"}', "\ufeff{}"])
def test_a_body_that_is_not_the_message_is_refused(gateway, token, body):
    headers = {"authorization": f"Bearer {token}", "content-type": JSON}

    refused = gateway.send("POST", GET, body.encode(), headers)

    assert (refused.status, refused.json["code"]) == (400, "invalid_argument")


def test_a_query_in_the_url_is_refused(gateway, token):
    """Otherwise keys and queries would be in the logs of every proxy."""
    headers = {"authorization": f"Bearer {token}", "content-type": JSON}

    with_query = gateway.send("POST", f"{GET}?key=plan", "{}", headers)
    by_get = gateway.send("GET", GET, headers=headers)
    of_connect = gateway.send("GET", f"{GET}?encoding=json&message=%7B%7D&connect=v1", headers=headers)

    assert (with_query.status, by_get.status, of_connect.status) == (400, 405, 405)
    assert "send all fields in the body" in with_query.json["message"]
    assert by_get.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/muniment.v1.MemoryService",
        f"{GET}/",
        "/grpc.health.v1.Health/Check",
        "/%2e%2e/x",
        GET.replace("G", "%47"),
    ],
)
def test_an_unknown_path_gets_an_example_of_a_path(gateway, path):
    refused = gateway.send("POST", path, "{}", {"content-type": JSON})

    assert refused.status == 404
    assert "POST to one such as /muniment.v1.MemoryService/GetMemory" in refused.json["message"]


@pytest.mark.parametrize("content_type", [None, "application/x-www-form-urlencoded", "text/plain"])
def test_a_body_of_another_content_type_is_refused(gateway, content_type):
    """`curl -d` sends the second. A page may send it without a preflight request."""
    refused = gateway.send("POST", GET, b"{}", {"content-type": content_type} if content_type else {})

    assert refused.status == 415
    assert "content-type: application/json" in refused.json["message"]


@pytest.mark.parametrize("credential", ["", "x", "mun_h_1_" + "A" * 43])
def test_without_a_credential_nothing_is_done(gateway, credential):
    refused = gateway.call("AgentService/ListAgents", credential)

    assert refused.status == 401
    assert refused.json["details"][0]["debug"]["reason"] == "CREDENTIAL_INVALID"


IMPORT = "/muniment.v1.PassageService/ImportPassages"


@pytest.mark.parametrize(
    ("path", "content_type", "says"),
    [
        (GET, JSON, b'"unauthenticated"'),
        (GET, "application/proto", b'"unauthenticated"'),
        (GET, "application/grpc-web+proto", b"grpc-status: 16"),
        (IMPORT, "application/connect+json", b'"unauthenticated"'),
    ],
)
def test_without_an_authorization_the_body_is_not_read(gateway, path, content_type, says):
    """To parse 4 MiB takes half a second, and strangers could send as many as they like."""
    headers = f"host: x\r\ncontent-type: {content_type}\r\ncontent-length: 4000000"
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\n{headers}\r\n\r\n{{".encode())
        answer = connection.makefile("rb").read()

    assert says in answer
    assert b"request-id: " in answer


def test_a_body_of_more_than_4_mib_is_refused(gateway, token):
    refused = gateway.call("MemoryService/SaveMemory", token, {"key": "long", "content": "x" * (5 << 20)})

    assert (refused.status, refused.json["code"]) == (429, "resource_exhausted")


def test_a_compressed_body_is_refused(gateway, token):
    """3 MB of empty gzip members would take seconds, while all other callers wait."""
    headers = {"authorization": f"Bearer {token}", "content-type": JSON, "content-encoding": "gzip"}

    refused = gateway.send("POST", GET, gzip.compress(b"{}"), headers)

    assert (refused.status, refused.json["code"]) == (501, "unimplemented")


@pytest.mark.parametrize("value", ["é", "a\tb"])
def test_a_header_that_grpc_cannot_carry_is_none(gateway, host_key, value):
    """It may be a cookie of another server on this machine. Such a credential is refused like any unknown one."""
    beside = gateway.call("AgentService/ListAgents", host_key, cookie=value)
    as_credential = gateway.call("AgentService/ListAgents", value)

    assert (beside.status, as_credential.status) == (200, 401)


@pytest.mark.parametrize("other", ["Bearer x", "", "é"])
def test_of_two_credentials_none_counts(gateway, host_key, other):
    """Otherwise a proxy might have checked the other one."""
    headers = f"host: x\r\nauthorization: Bearer {host_key}\r\nauthorization: {other}\r\ncontent-type: {JSON}"
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
        path = "/muniment.v1.AgentService/ListAgents"
        connection.sendall(f"POST {path} HTTP/1.1\r\n{headers}\r\ncontent-length: 2\r\n\r\n{{}}".encode())
        answer = connection.recv(1000)

    assert answer.startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(("message", "says"), [(b'{"passagx": {}}', "no field named"), (b"{", "Failed to load JSON")])
def test_what_is_wrong_in_a_stream_is_said(gateway, token, message, says):
    headers = {"authorization": f"Bearer {token}", "content-type": "application/connect+json"}
    body = struct.pack(">BI", 0, len(message)) + message

    refused = gateway.send("POST", IMPORT, body, headers)

    error = json.loads(refused.body[5:])["error"]
    assert error["code"] == "invalid_argument"
    assert says in error["message"]


def test_http_2_is_not_spoken(gateway):
    """A server of both versions waits forever for the first bytes, which distinguish them."""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        answer = connection.recv(1000)

    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")


def test_headers_are_bounded(gateway):
    """It stops reading, so that no caller can fill its memory."""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
        connection.sendall(f"POST {GET} HTTP/1.1\r\nhost: x\r\nx-long: {'a' * 100_000}\r\n\r\n".encode())
        answer = connection.recv(1000)

    assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))


@pytest.mark.parametrize(
    ("method", "path", "content_type"),
    [
        ("GET", "/", JSON),
        ("GET", "/openapi.json", JSON),
        ("OPTIONS", GET, JSON),
        ("POST", GET, "text/plain"),
        ("POST", GET, JSON),
        ("POST", GET, "application/grpc-web+proto"),
        ("POST", IMPORT, "application/connect+json"),
    ],
)
def test_only_who_calls_with_success_keeps_a_connection(gateway, host_key, method, path, content_type):
    """Otherwise a stranger could hold all of them, by a request each few seconds."""
    headers = f"host: x\r\nauthorization: Bearer x\r\ncontent-type: {content_type}\r\ncontent-length: 0"
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
        connection.sendall(f"{method} {path} HTTP/1.1\r\n{headers}\r\n\r\n".encode())
        assert b"\r\nconnection: close\r\n" in connection.makefile("rb").read()

    assert "connection" not in gateway.call("AgentService/ListAgents", host_key).headers


def test_a_response_that_is_not_read_is_no_longer_kept(dev, host_key):
    """Otherwise who reads nothing would hold a connection forever."""
    run(dev.folder, "memory", "save", "long", "x" * 60_000, "--agent", "alice", "--taint", "internal")
    with ExitStack() as stack:
        before = "from muniment_http import listening; listening._UNREAD_SECONDS = 1; "
        gateway = stack.enter_context(Gateway(dev.address, before=before))
        opening = {"agentId": "alice", "taint": "CLASSIFICATION_INTERNAL"}
        token = gateway.call("SessionService/OpenSession", host_key, opening).json["token"]
        connection = stack.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.connect(("127.0.0.1", gateway.port))
        body = '{"key": "long"}'
        headers = f"host: x\r\nauthorization: Bearer {token}\r\ncontent-type: {JSON}\r\ncontent-length: {len(body)}"
        connection.sendall(f"POST {GET} HTTP/1.1\r\n{headers}\r\n\r\n{body}".encode() * 60)
        ours, theirs = connection.getsockname()[1], gateway.port

        wait_until(lambda: _is_connected(theirs, ours), "it has sent what the caller takes")
        wait_until(lambda: not _is_connected(theirs, ours), "it has given the connection up")


def _is_connected(port, to):
    """Whether this machine has a connection from *port* to another port of its own."""
    return any(
        f":{port:04X} " in line.split(maxsplit=1)[1][:15] and f":{to:04X} " in line
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
    )


def test_a_deadline_is_that_of_the_call(gateway, host_key):
    refused = gateway.call("AgentService/ListAgents", host_key, connect_timeout_ms="0")

    assert refused.json["code"] == "deadline_exceeded"


# --- Pages


def test_a_page_of_an_allowed_origin_may_call(gateway, host_key):
    origin = {"origin": "https://app.example"}
    asked = gateway.send(
        "OPTIONS",
        GET,
        headers={**origin, "access-control-request-method": "POST", "access-control-request-headers": "authorization"},
    )
    answered = gateway.call("AgentService/ListAgents", host_key, **origin)

    for each in (asked, answered):
        assert each.status in {200, 204}
        assert each.headers["access-control-allow-origin"] == "https://app.example"
    assert asked.headers["access-control-allow-headers"] == "authorization"
    assert "request-id" in answered.headers["access-control-expose-headers"]


@pytest.mark.parametrize("origin", ["https://evil.example", "https://app.example.evil.example", "null", "*"])
def test_a_page_of_another_origin_may_not_call(gateway, host_key, origin):
    """The browser withholds the response from it, and sends nothing that needs a preflight request."""
    asked = gateway.send("OPTIONS", GET, headers={"origin": origin, "access-control-request-method": "POST"})
    answered = gateway.call("AgentService/ListAgents", host_key, origin=origin)

    for each in (asked, answered):
        assert "access-control-allow-origin" not in each.headers
        assert "access-control-allow-credentials" not in each.headers
        assert "Origin" in each.headers["vary"]


# --- The server away, and mistakes


def test_while_the_server_is_away_calls_are_unavailable(host_key):
    with Gateway(f"127.0.0.1:{free_port()}") as gateway:
        refused = gateway.call("AgentService/ListAgents", host_key, connect_timeout_ms="5000")

    assert (refused.status, refused.json["code"]) == (503, "unavailable")


@pytest.fixture
def hurried(dev):
    """A gateway that waits for no more than two bodies, for no time at all."""
    settings = "from muniment_http import middleware; middleware._BODY_SECONDS = {}; middleware._MAX_BODIES = 2; "
    with ExitStack() as stack:
        yield lambda seconds: stack.enter_context(Gateway(dev.address, before=settings.format(seconds)))


def _half_sent(gateway, host_key, path, content_type):
    """A connection on which a request has begun, whose body has not arrived whole."""
    connection = socket.create_connection(("127.0.0.1", gateway.port), timeout=60)
    headers = f"host: x\r\nauthorization: Bearer {host_key}\r\ncontent-type: {content_type}\r\ncontent-length: 9"
    connection.sendall(f"POST {path} HTTP/1.1\r\n{headers}\r\n\r\n".encode())
    return connection


@pytest.mark.parametrize(
    ("path", "content_type"),
    [(GET, JSON), (IMPORT, "application/connect+json")],
)
def test_a_body_that_is_late_is_no_longer_waited_for(hurried, host_key, path, content_type):
    said, answer = b"the body did not arrive within 0 seconds", b""
    with _half_sent(hurried(0.0), host_key, path, content_type) as connection:
        while said not in answer and (part := connection.recv(65_536)):
            answer += part

    assert said in answer


def test_one_address_may_send_only_so_many_bodies_at_a_time(hurried, host_key):
    """Otherwise one caller could hold every place. A body that has arrived counts no longer."""
    gateway = hurried(60.0)
    assert [gateway.call("AgentService/ListAgents", host_key).status for _ in range(4)] == [200] * 4
    with _half_sent(gateway, host_key, GET, JSON), _half_sent(gateway, host_key, GET, JSON) as other:
        wait_until(lambda: gateway.call("AgentService/ListAgents", host_key).status == 429, "both have begun")
        other.close()
        wait_until(lambda: gateway.call("AgentService/ListAgents", host_key).status == 200, "one has ended")


def test_it_listens_once_it_says_so(dev):
    port = free_port()
    options = ["--listen", f"127.0.0.1:{port}", "--server", dev.address]
    with subprocess.Popen([*COMMAND, "http", *options], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        socket.create_connection(("127.0.0.1", port)).close()
        process.terminate()

    assert line.startswith(f"Forwards calls at http://127.0.0.1:{port}")


def test_a_caller_that_sends_no_more_delays_the_end_by_the_grace_alone(dev):
    port = free_port()
    code = "from muniment.cli.root import main; from muniment_http import serving; serving._GRACE_SECONDS = 0; main()"
    options = ["http", "--listen", f"127.0.0.1:{port}", "--server", dev.address]
    with subprocess.Popen([sys.executable, "-c", code, *options]) as process:
        wait_until(lambda: takes_connections(port), "it listens")
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(f"POST {GET} HTTP/1.1\r\nhost: x\r\ncontent-type: {JSON}\r\n".encode())
            connection.sendall(b"content-length: 2\r\nexpect: 100-continue\r\n\r\n")
            connection.recv(100)
            process.terminate()

            assert process.wait(30) == 0


def takes_connections(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--listen", "0.0.0.0:8080"], "refusing to listen in the clear on 0.0.0.0:8080"),
        (["--listen", "127.0.0.1:0"], "--listen needs a port"),
        (["--listen", "nowhere"], "is not an address"),
        (["--tls-cert", __file__], "--tls-cert and --tls-key require each other"),
        (["--server", "nowhere"], "the server at nowhere cannot be called"),
        (["--server-ca", "/nowhere.pem"], "/nowhere.pem: No such file"),
    ],
)
def test_a_mistake_in_the_options_is_named(options, message):
    done = subprocess.run([*COMMAND, "http", *options], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert message in done.stderr


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    result = CliRunner().invoke(http, [])

    assert result.exit_code == 1
    assert "pip install -e '.[http]'" in result.stderr
