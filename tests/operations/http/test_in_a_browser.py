"""A page in Chromium calls a server by Connect's own client, over JSON, binary messages and gRPC-Web."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import pytest

from tests.clients.cli.page.test_in_a_browser import CHROMIUM, REQUIRED
from tests.clients.conformance.toolchains import not_run
from tests.operations.http.gateways import Gateway
from tests.tools.tour.readme import ROOT

CLIENT = ROOT / "clients/typescript"
_SECONDS = 120.0
"""For a browser on a busy machine to open a page that makes nine calls."""
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
    "muniment/v1/": "/dist/muniment/v1/",
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
  await fetch("/seen", { method: "POST", body: JSON.stringify(seen) });
</script>
"""
pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(CHROMIUM is None and not REQUIRED, reason="NO CHROMIUM (apt-get install chromium)"),
]


class _Pages(SimpleHTTPRequestHandler):
    """The packages of the client, its compiled code, and one page, which reports what it has received."""

    page = b""
    compiled = Path()
    seen: SimpleQueue[Any] = SimpleQueue()

    def translate_path(self, path: str) -> str:
        if path.startswith("/dist/"):
            return str(self.compiled / path.removeprefix("/dist/"))
        return super().translate_path(path)

    def do_POST(self) -> None:
        self.seen.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(204)
        self.end_headers()

    def do_GET(self) -> None:
        if self.path != "/":
            return super().do_GET()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> Iterator[ThreadingHTTPServer]:
    """Compiles the generated code apart: other tests may be building the client anew."""
    compiler = CLIENT / "node_modules/.bin/tsc"
    if shutil.which("node") is None or not compiler.exists():
        not_run("A PAGE", "there is no Node.js, or `make build-typescript` was never run")
    _Pages.compiled = tmp_path_factory.mktemp("dist")
    generated = CLIENT / "src/gen"
    options = ("--module", "nodenext", "--target", "es2022", "--rootDir", generated, "--outDir", _Pages.compiled)
    subprocess.run([compiler, "--ignoreConfig", *options, *generated.rglob("*.ts")], check=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Pages, directory=str(CLIENT))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def seen_by_the_page(origin: str, folder: Path) -> Mapping[str, Any]:
    """What the page at *origin* has received."""
    options = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}")
    with subprocess.Popen([str(CHROMIUM), *options, origin], stderr=subprocess.DEVNULL) as browser:
        try:
            seen: Mapping[str, Any] = _Pages.seen.get(timeout=_SECONDS)
        finally:
            browser.terminate()
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
            _Pages.page = page.encode()
            return seen_by_the_page(origin, tmp_path)

    return show


def test_a_page_calls_by_connects_own_client(shown):
    expected = {name: [f"by {name} 🎂", "no such memory", 1, 24] for name in ("json", "binary", "grpcWeb")}

    assert shown("ITS OWN") == expected


def test_a_page_of_another_origin_cannot_call(shown):
    seen = shown("https://app.example")

    assert all("Failed to fetch" in error for (error,) in seen.values())
