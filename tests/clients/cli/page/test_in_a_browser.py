"""Hostile names and texts in a page, in Chromium: nothing runs, nothing is fetched, and all is shown as it is."""

from __future__ import annotations

import html
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from muniment import Classification, Tier
from muniment.cli.output import harmless
from tests.clients.cli.page.looking import Look

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, PROGRAMS)), None)
REQUIRED = os.environ.get("REQUIRE_ALL_CLIENTS") == "1"
pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(
        CHROMIUM is None and not REQUIRED, reason="NO CHROMIUM (apt-get install chromium): pages are not looked at"
    ),
]
_SECONDS = 60
"""After that, a dialog is open."""
_RAN = "document.documentElement.dataset.ran=1"
_TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "section",
        "header",
        "article",
        "div",
        "h1",
        "h2",
        "h3",
    ),
    *("p", "dl", "dt", "dd", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "svg", "rect"),
    *("b", "i", "q", "del", "bdi", "small", "span", "code", "time"),
}
"""The elements of the template."""

Browse = Callable[[str], Look]


class Canary(ThreadingHTTPServer):
    """A server on loopback that remembers what was fetched."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Remember)
        self.fetched: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Remember(BaseHTTPRequestHandler):
    server: Canary

    def do_GET(self) -> None:
        self.server.fetched.append(self.path)
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def canary() -> Iterator[Canary]:
    with Canary() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def browse(folder: Path) -> Browse:
    """Load a page from a file, and return what the document has become of it."""
    assert CHROMIUM, "REQUIRE_ALL_CLIENTS is set, and there is no Chromium"
    options = ["--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--dump-dom"]
    options += ["--virtual-time-budget=5000", f"--user-data-dir={folder / 'profile'}"]
    options += ["--no-sandbox"] if os.geteuid() == 0 else []

    def load(page: str) -> Look:
        file = folder / "page.html"
        file.write_bytes(page.encode())
        done = subprocess.run(
            [str(CHROMIUM), *options, file.as_uri()], capture_output=True, timeout=_SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return Look(done.stdout.decode())

    return load


def attacks(address: str) -> list[str]:
    """Texts that run a script or fetch something, in a page that does not escape them."""
    return [
        f"<script>{_RAN}</script>",
        f'"><img src="{address}/img" onerror="{_RAN}">',
        f"'><svg onload={_RAN}>",
        f"</style><style>*{{background:url({address}/css)}}</style>",
        f"</title></textarea></bdi></div><iframe src={address}/frame></iframe>",
        f"<link rel=stylesheet href={address}/link>",
        f"<b style='background:url({address}/style)'>b</b>",
        f"<base href={address}/base><input autofocus onfocus={_RAN}>",
        f"<!--<script src={address}/script></script>-->",
        f"--><script src={address}/script></script>",
        "<script>alert(1)</script>",
    ]


ODDITIES = [
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt;&amp;amp; &#60; &copy",
    "two  spaces",
    "\u05d0\U0001f1e9" * 30,
    "W" * 200,
]
STEERING = [
    "\u202eright to left\u202d \u2066unfinished",
    "\u200b\u200e\ufeffinvisible\u2028\u2029",
    "\nline\r\n\rends\x0b\x0c\ttab",
    "\x01\x08\x1b[2J\x7f\x85\x9f\ufffe",
]
"""Characters that the server allows in contents only. It allows U+0000 nowhere."""
DISPLAY_NAME = f"\u202e<script>{_RAN}</script>"


@pytest.fixture
def hostile(host, ada, canary) -> list[str]:
    """Texts that stand in every place of the agent where a text may stand."""
    names = [*attacks(canary.address), *ODDITIES]
    with host.open_session(ada.agent_id, Classification.PUBLIC) as session:
        for name in names:
            session.save_memory(name, name, tags=[name[:64].strip()])
            session.store_passage(name, thread=name, author=name[:64].strip(), tags=[name[:64].strip()])
            session.add_note(name)
        for number, text in enumerate(STEERING):
            session.save_memory(f"steering {number}", text)
        session.add_note(names[0], tier=Tier.USER)
        session.update_block("personality", names[0])
    for name in names:
        with host.open_session(ada.agent_id, Classification.PUBLIC) as session:
            host.raise_taint(session, Classification.INTERNAL, reason=name)
    host.update_agent(ada.agent_id, display_name=DISPLAY_NAME)
    return names


def test_hostile_texts_are_shown_and_neither_run_nor_fetched(ada, show, browse, canary, hostile):
    page = browse(show(ada.agent_id).page)

    assert canary.fetched == []
    assert page.tags <= _TAGS
    assert page.elements[0].attributes == {"lang": "en"}
    assert {each.text for each in page.find("text")} == {
        *hostile,
        *(harmless(text, kept="\\\n\t") for text in STEERING),
    }
    assert {each.text for each in page.find("name")} > {*hostile}
    assert {each.text for each in page.find("thread")} == {*hostile}
    assert {each.text for each in page.find("tag")} == {name[:64].strip() for name in hostile}
    assert {each.text for each in page.find("author")} == {name[:64].strip() for name in hostile}
    assert [each.text for each in page.elements if each.tag == "h1"] == [harmless(DISPLAY_NAME)]
    assert {each.text for each in page.elements if each.tag == "q"} == {*hostile}


def test_without_escaping_the_policy_of_the_page_stops_them(ada, show, browse, canary, hostile):
    page = browse(_unescaped(show(ada.agent_id).page))

    assert not page.tags <= _TAGS
    assert "data-ran" not in page.elements[0].attributes
    assert canary.fetched == []


def test_without_escaping_and_policy_they_run_and_fetch(ada, show, browse, canary, hostile):
    """So the two tests above would see it."""
    unguarded = _unescaped(show(ada.agent_id).page).replace("Content-Security-Policy", "X-None")
    page = browse(unguarded.replace("alert(1)", ""))

    assert page.elements[0].attributes["data-ran"] == "1"
    assert {"/img", "/css"} <= {*canary.fetched}


def _unescaped(page: str) -> str:
    head, end, body = page.partition("</head>")
    return head + end + html.unescape(body)
