"""The console in Chromium: hostile names and texts, pages of other sites, dark screens and phones."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest

from muniment import Classification, Integrity, ItemKind, content_sha256
from muniment.cli.output import harmless
from muniment_console import rendering
from tests.clients.cli.page.looking import Look
from tests.clients.cli.page.test_in_a_browser import DISPLAY_NAME, canary, hostile
from tests.operations.console.consoles import PASSWORD, Console
from tests.support.browser import CHROMIUM, REQUIRED, Browser

__all__ = ["canary", "hostile"]
pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(
        CHROMIUM is None and not REQUIRED, reason="NO CHROMIUM (apt-get install chromium): pages are not looked at"
    ),
]
PAGES = (
    *("/?after=ada", "/agent?id={}", "/conversations", "/conversations?agent={}", "/audit", "/audit?agent={}"),
    *("/seals", "/status", "/agent?id=no-such-agent", "/releases?agent={}"),
)
_TAGS = {
    *("html", "head", "meta", "title", "style", "body", "nav", "main", "section", "header", "article", "div", "form"),
    *("h1", "h2", "h3", "p", "br", "dl", "dt", "dd", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "pre"),
    *("figure", "figcaption", "svg", "rect", "polyline", "label", "input", "select", "option", "button", "a"),
    *("b", "i", "q", "del", "bdi", "small", "span", "code", "time"),
}
"""The elements of the templates."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def address(console: Console, path: str) -> str:
    return f"http://auditor:{PASSWORD}@{console.name}{path}"


def seen(browser: Browser, console: Console, path: str) -> Look:
    """What the browser has made of a page."""
    browser.open(address(console, path))
    return Look(browser.evaluate("document.documentElement.outerHTML"))


def test_hostile_texts_are_shown_on_all_pages_and_neither_run_nor_fetched(browser, console, host, ada, canary, hostile):
    for text in hostile:
        name = re.sub(r"[\x00-\x20\x7f]", "", text).lstrip("~")[:256]
        host.open_session(ada.agent_id, Classification.PUBLIC, conversation_id=name)
    pages = {path: seen(browser, console, path.format(ada.agent_id)) for path in PAGES}

    assert canary.fetched == []
    for path, page in pages.items():
        assert page.tags <= _TAGS, path
        assert "data-ran" not in page.elements[0].attributes, path
        assert not [each for each in page.elements if {*each.attributes} & {"src", "style", "onload", "onerror"}], path
    assert harmless(DISPLAY_NAME) in pages["/?after=ada"].page.replace("&lt;", "<").replace("&gt;", ">")
    assert {each.text for each in pages["/agent?id={}"].find("text")} >= {*hostile}
    for path in ("/conversations?agent={}", "/audit?agent={}"):
        shown = html.unescape(pages[path].page)
        assert sum(text in shown for text in hostile) >= len(hostile) // 2, path
    assert {each.text for each in pages["/audit?agent={}"].find("reason")} >= {*hostile}


def test_hostile_texts_of_releases_are_shown_as_they_are(
    browser, of_desk, host, ada, canary, hostile, key_of, connected
):
    public = Classification.PUBLIC
    asks = connected(key_of("development", Classification.CONFIDENTIAL, "--may", "endorse"))
    reasons, session = [], host.open_session(ada.agent_id, public)
    for number, text in enumerate(hostile):
        reasons.append(re.sub(r"[\x00-\x1f\x7f]", "", text)[:200].strip())
        session.save_memory(f"hostile-{number}", text)
        asked = asks.request_release(
            ada.agent_id,
            ItemKind.MEMORY,
            f"hostile-{number}",
            content_sha256=content_sha256(text),
            source=(public, Integrity.UNTRUSTED),
            target=(public, Integrity.TRUSTED),
            reason=reasons[-1],
        )
        page = seen(browser, of_desk, f"/release?id={asked.release_id}")
        assert page.tags <= _TAGS
        assert "data-ran" not in page.elements[0].attributes
        assert [each.text for each in page.find("text")] == [text]
    listed = seen(browser, of_desk, f"/releases?agent={ada.agent_id}")

    assert canary.fetched == []
    assert listed.tags <= _TAGS
    assert {*listed.texts("reason")} == {" ".join(each.split()) for each in reasons}


def test_hostile_filters_come_back_as_they_are(browser, console, canary, hostile):
    for text in hostile:
        browser.open(address(console, rendering.link("/audit", method=text, outcome=text, item=text, key=text)))

        for name in ("method", "outcome", "item", "key"):
            assert browser.evaluate(f"document.querySelector('input[name={name}]').value") == text
        assert browser.evaluate("document.documentElement.dataset.ran") is None
    assert canary.fetched == []


def test_a_page_of_another_site_has_nothing_read(browser, console, host, ada, canary):
    """Though the browser knows the password."""
    seen(browser, console, "/")
    url = f"http://{console.name}/agent?id={ada.agent_id}"
    browser.open(canary.address)

    browser.evaluate(
        f"""document.body.innerHTML = '<img src="{url}"><iframe src="{url}"></iframe><object data="{url}"></object>';
        fetch({url!r}, {{mode: "no-cors", credentials: "include"}}).catch(() => 0); 0"""
    )
    browser.call("Runtime.evaluate", expression="new Promise(done => setTimeout(done, 1500))", awaitPromise=True)

    assert list(host.list_sessions(ada.agent_id, include_closed=True)) == []
    seen(browser, console, f"/agent?id={ada.agent_id}")
    assert list(host.list_sessions(ada.agent_id, include_closed=True)) != []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_phone_and_can_be_read_by_day_and_by_night(browser, console, ada, scheme):
    browser.look_like(width=390, scheme=scheme)
    for path in PAGES:
        seen(browser, console, path.format(ada.agent_id))

        assert browser.evaluate("document.documentElement.scrollWidth") <= 390, path
        background, ink = (_brightness(browser, name) for name in ("backgroundColor", "color"))
        assert abs(background - ink) > 0.7, path
        assert (background < ink) == (scheme == "dark"), path


def _brightness(browser: Browser, name: str) -> float:
    """That of a color of the body, from 0 to 1."""
    color = browser.evaluate(f"getComputedStyle(document.body).{name}")
    return sum(map(float, re.findall("[0-9.]+", color)[:3])) / 765


def test_links_and_filters_work_without_scripts(browser, console, ada):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        seen(browser, console, "/audit")
        browser.evaluate(
            f"document.querySelector('input[name=agent]').value = '{ada.agent_id}'; document.forms[0].submit()"
        )
        page = _loaded(browser, f"agent={ada.agent_id}")
        assert {each.text for each in page.find("name")} == {ada.agent_id}
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def _loaded(browser: Browser, query: str) -> Look:
    """The page whose address has *query*, once it is there."""
    while query not in browser.evaluate("location.search") or browser.evaluate("document.readyState") != "complete":
        pass
    return Look(browser.evaluate("document.documentElement.outerHTML"))


def test_there_is_no_cookie_and_no_copy(browser, console):
    seen(browser, console, "/audit")

    assert browser.call("Storage.getCookies")["cookies"] == []
    assert browser.evaluate("document.cookie") == ""
