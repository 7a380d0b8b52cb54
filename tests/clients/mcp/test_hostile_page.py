"""A web page that attacks an MCP server on the machine of who looks at it, in Chromium.

It even knows a token. Its server is reached under a name of its own, and hands what is sent to `/mcp` to the MCP server
as it is: to the browser, and to the MCP server, this is what happens when the name is bound to 127.0.0.1 anew.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from muniment import Classification
from tests.clients.cli.page.test_in_a_browser import CHROMIUM, REQUIRED
from tests.clients.mcp.over_http import HEADERS, Endpoint, call_of, serving

pytestmark = pytest.mark.skipif(
    CHROMIUM is None and not REQUIRED, reason="NO CHROMIUM (apt-get install chromium): no page attacks"
)

NAME = "evil.example"
_SECONDS = 120
_PAGE = """<!doctype html><title>hostile</title><pre id=answers></pre><script>
const call = JSON.stringify(CALL), headers = HEADERS
const attempts = {
  rebound: ["/mcp", {method: "POST", headers, body: call}],
  elsewhere: [URL_OF_MCP, {method: "POST", headers, body: call}],
  simple: [URL_OF_MCP, {method: "POST", mode: "no-cors", headers: {"Content-Type": "text/plain"}, body: call}],
}
for (const [name, [url, options]] of Object.entries(attempts))
  fetch(url, options).then(async (response) => response.status + " " + await response.text(), (error) => error.name)
    .then((answer) => { document.getElementById("answers").append(name + ": " + answer + "\\n") })
</script>"""


class Hostile(ThreadingHTTPServer):
    """Serves the page, and hands on what it sends."""

    def __init__(self, endpoint: Endpoint, token: str, *, covers_up: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Relay)
        self.endpoint = endpoint
        self.covers_up = covers_up
        """Whether it can, unlike a page, send the headers of an honest client."""
        headers = HEADERS | {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        fills = {
            "CALL": call_of("memory_save", key="taken", content="x"),
            "HEADERS": headers,
            "URL_OF_MCP": endpoint.url,
        }
        self.page = re.sub(r"CALL|HEADERS|URL_OF_MCP", lambda name: json.dumps(fills[name[0]]), _PAGE).encode()
        self.handed_on: list[str] = []


class _Relay(BaseHTTPRequestHandler):
    server: Hostile

    def do_GET(self) -> None:
        self._answer(200, "text/html", self.server.page)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.handed_on.append(self.headers["Host"])
        headers: dict[str, Any] = dict(self.headers)
        if self.server.covers_up:
            headers = {name: value for name, value in headers.items() if name not in ("Host", "Origin")}
        connection = HTTPConnection("127.0.0.1", self.server.endpoint.port)
        connection.request("POST", "/mcp", body, headers)
        response = connection.getresponse()
        self._answer(response.status, "text/plain", response.read())
        connection.close()

    def _answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint(service) -> Iterator[Endpoint]:
    with serving(service.address) as endpoint:
        yield endpoint


def look(hostile: Hostile, folder: Path) -> dict[str, str]:
    """What the page was answered, in a browser."""
    assert CHROMIUM, "REQUIRE_ALL_CLIENTS is set, and there is no Chromium"
    options = ["--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--dump-dom"]
    options += [
        "--virtual-time-budget=20000",
        f"--user-data-dir={folder}",
        f"--host-resolver-rules=MAP {NAME} 127.0.0.1",
    ]
    options += ["--no-sandbox"] if os.geteuid() == 0 else []
    page = f"http://{NAME}:{hostile.server_port}/"
    done = subprocess.run([CHROMIUM, *options, page], capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return dict(re.findall(r"^(?:.*>)?(rebound|elsewhere|simple): (.*)$", done.stdout, re.MULTILINE))


@pytest.mark.parametrize("covers_up", [False, True], ids=["a page", "an honest client"])
def test_a_page_reaches_nothing(endpoint, opened, tmp_path, covers_up):
    """With the headers of an honest client, the same request is served: so it is these that stop the page."""
    session = opened(Classification.PUBLIC)
    with Hostile(endpoint, session.token, covers_up=covers_up) as hostile:
        thread = Thread(target=hostile.serve_forever)
        thread.start()
        answers = look(hostile, tmp_path)
        hostile.shutdown()
        thread.join()
    saved = [memory.key for memory in session.list_memories()]

    assert set(hostile.handed_on) == {f"{NAME}:{hostile.server_port}"}  # Chromium repeats what is answered with 421
    assert (answers["elsewhere"], answers["simple"]) == ("TypeError", "0 ")
    if covers_up:
        assert (answers["rebound"][:4], saved) == ("200 ", ["taken"])
    else:
        assert (answers["rebound"], saved) == ("421 Invalid Host header", [])
