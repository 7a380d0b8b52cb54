"""A page in Chromium calls a server by Connect's own client, over JSON, binary messages and gRPC-Web."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.clients.cli.page.test_in_a_browser import CHROMIUM, REQUIRED
from tests.clients.conformance.toolchains import not_run
from tests.operations.http.gateways import Gateway
from tests.tools.tour.readme import ROOT

CLIENT = ROOT / "clients/typescript"
IMPORTS = {
    "@bufbuild/protobuf": "/node_modules/@bufbuild/protobuf/dist/esm/index.js",
    **{
        f"@bufbuild/protobuf/{part}": f"/node_modules/@bufbuild/protobuf/dist/esm/{part}/index.js"
        for part in ("codegenv2", "reflect", "wire", "wkt")
    },
    "@connectrpc/connect": "/node_modules/@connectrpc/connect/dist/esm/index.js",
    **{
        f"@connectrpc/connect/{part}": f"/node_modules/@connectrpc/connect/dist/esm/{part}/index.js"
        for part in ("protocol", "protocol-connect", "protocol-grpc-web")
    },
    "@connectrpc/connect-web": "/node_modules/@connectrpc/connect-web/dist/esm/index.js",
    "muniment/v1/": "/dist/src/gen/muniment/v1/",
}
PAGE = """<!doctype html><meta charset="utf-8"><title>A page</title>
<script type="importmap">%(imports)s</script>
<script type="module">
  import { createClient } from "@connectrpc/connect";
  import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
  import { MemoryService } from "muniment/v1/memory_service_pb.js";

  const { baseUrl, token } = %(given)s;
  const transports = {
    json: createConnectTransport({ baseUrl }),
    binary: createConnectTransport({ baseUrl, useBinaryFormat: true }),
    grpcWeb: createGrpcWebTransport({ baseUrl }),
  };
  const seen = {};
  for (const [name, transport] of Object.entries(transports)) {
    const memories = createClient(MemoryService, transport);
    const headers = { authorization: `Bearer ${token}` };
    try {
      await memories.saveMemory({ key: name, content: `by ${name} 🎂` }, { headers });
      const got = await memories.getMemory({ key: name }, { headers });
      const refused = await memories.getMemory({ key: "absent" }, { headers }).catch((error) => error);
      const requestId = refused.metadata.get("request-id");
      seen[name] = [got.memory.content, refused.rawMessage, refused.details.length, requestId?.length];
    } catch (error) {
      seen[name] = [String(error)];
    }
  }
  document.title = JSON.stringify(seen);
</script>
"""
pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(CHROMIUM is None and not REQUIRED, reason="NO CHROMIUM (apt-get install chromium)"),
]


class _Pages(SimpleHTTPRequestHandler):
    """The files of the client, and one page."""

    page = b""

    def do_GET(self) -> None:
        if self.path != "/":
            return super().do_GET()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def pages() -> Iterator[ThreadingHTTPServer]:
    if shutil.which("npm") is None or not (CLIENT / "dist/src").exists():
        not_run("A PAGE", "there is no Node.js, or `make build-typescript` was never run")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Pages, directory=str(CLIENT))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def seen_by_the_page(origin: str, folder: Path) -> Mapping[str, Any]:
    """What the page has received, which it writes into its title."""
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=60000",
        f"--user-data-dir={folder}",
    )
    done = subprocess.run(
        [str(CHROMIUM), *options, "--dump-dom", origin], capture_output=True, text=True, timeout=120, check=True
    )
    found = re.search("<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert found is not None
    seen: Mapping[str, Any] = json.loads(html.unescape(found[1]))
    return seen


Shown = Callable[[str], Mapping[str, Any]]


@pytest.fixture
def shown(dev, host_key, pages, tmp_path) -> Shown:
    """Opens the page, with a gateway that allows pages of one origin. Returns what the page has received."""
    origin = f"http://127.0.0.1:{pages.server_port}"

    def show(allowed: str) -> Mapping[str, Any]:
        with Gateway(dev.address, "--origin", allowed.replace("ITS OWN", origin)) as gateway:
            token = gateway.call("SessionService/OpenSession", host_key, {"agentId": "alice"}).json["token"]
            given = {"baseUrl": f"http://127.0.0.1:{gateway.port}", "token": token}
            page = PAGE % {"imports": json.dumps({"imports": IMPORTS}), "given": json.dumps(given)}
            pages.RequestHandlerClass.func.page = page.encode()
            return seen_by_the_page(origin, tmp_path)

    return show


def test_a_page_calls_by_connects_own_client(shown):
    expected = {name: [f"by {name} 🎂", "no such memory", 1, 24] for name in ("json", "binary", "grpcWeb")}

    assert shown("ITS OWN") == expected


def test_a_page_of_another_origin_cannot_call(shown):
    seen = shown("https://app.example")

    assert all("Failed to fetch" in error for (error,) in seen.values())
