"""What the pages show, to which key, and what the audit log has of it."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime

import pytest

import muniment
from muniment import AgentLimits, Classification, Integrity, ItemKind
from muniment_console import status
from muniment_console.status import Watch
from tests.clients.cli.page.looking import Look
from tests.operations.console.consoles import Console
from tests.support.commands import wait_until
from tests.support.each import for_each

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification


def links(page: Look) -> list[str]:
    return [each.attributes["href"] for each in page.elements if each.tag == "a"]


def test_agents_are_listed_with_levels_and_budgets(host, ada, console):
    host.update_agent(ada.agent_id, display_name="Ada, travel desk", limits=AgentLimits(max_items=4))
    with host.open_session(ada.agent_id, INTERNAL) as session:
        session.save_memory("plan", "by bus")

    page = console.look("/?after=ada")

    (row,) = [each for each in page.find("agent-row") if ada.agent_id in each.text]
    text = " ".join(row.text.split())
    assert page.texts("level", within=row) == ["CONFIDENTIAL", "PUBLIC", "INTERNAL", "CONFIDENTIAL"]
    assert "Ada, travel desk" in text
    assert "2,000 calls/s · 4 items · 4.3 GB · notes 2,200 + 1,375" in text
    assert [each.attributes["width"] for each in page.find("fill", within=row)] == ["25", "25", "0"]
    assert f"/agent?id={ada.agent_id}" in links(page)


def test_trusted_items_are_counted_by_themselves(host, ada, console, show):
    for key, integrity in {"plan": Integrity.TRUSTED, "one": Integrity.UNTRUSTED, "two": Integrity.UNTRUSTED}.items():
        with host.open_session(ada.agent_id, INTERNAL, integrity=integrity) as session:
            session.save_memory(key, "by bus")

    (row,) = [each for each in console.look("/").find("agent-row") if ada.agent_id in each.text]
    gauges = [text for text in show(ada.agent_id).texts("gauge") if text.startswith("Items stored")]

    stored = " ".join(row.text.split())
    assert "INTERNAL trusted1 " in stored
    assert "INTERNAL2 " in stored
    assert {gauge.partition(" of")[0] for gauge in gauges} >= {"Items stored, trusted1", "Items stored2"}


def test_more_agents_than_a_page_has_are_a_link_away(host, console):
    made = {host.create_agent(ceiling=PUBLIC, initial_blocks={"rules": ""}).agent_id for _ in range(30)}

    first = console.look("/")
    (more,) = [link for link in links(first) if link.startswith("/?after=")]
    seen = [*first.texts("name"), *console.look(more).texts("name")]

    assert made <= {*seen}
    assert len(seen) == len({*seen})


def test_an_agent_is_drawn_as_agent_show_draws_it_and_the_look_is_audited(host, ada, console, show):
    with host.open_session(ada.agent_id, CONFIDENTIAL) as session:
        session.save_memory("salary", "52,000 a year", tags=["pay"])

    page = console.look(f"/agent?id={ada.agent_id}")

    drawn = show(ada.agent_id)
    for each in ("count", "gauge", "version", "text", "tag"):
        assert [text.replace(" · audit", "") for text in page.texts(each)] == drawn.texts(each)
    assert page.texts("banner")[0] == "CONFIDENTIAL is the highest level of anything on this page"
    sessions = [
        each for each in host.list_sessions(ada.agent_id, include_closed=True) if "console-" in each.conversation_id
    ]
    assert sorted(each.taint for each in sessions) == [PUBLIC, PUBLIC, INTERNAL, INTERNAL, CONFIDENTIAL, CONFIDENTIAL]
    assert all(each.close_time for each in sessions)
    for highest in (each for each in sessions if each.taint == CONFIDENTIAL):
        assert "ListMemories" in {event.method for event in host.list_audit_events(session=highest.session_id)}


def test_conversations_are_on_a_time_line(host, ada, console):
    session = host.open_session(ada.agent_id, PUBLIC, conversation_id="trip")
    host.raise_taint(session, CONFIDENTIAL, reason="read the payroll")

    for path in ("/conversations?after=ada", f"/conversations?agent={ada.agent_id}&since=1h"):
        page = console.look(path)

        (drawn,) = [each for each in page.find("conversation") if "read the payroll" in each.text]
        levels = [each.classes - {"fill"} for each in page.find("fill", within=drawn)]
        assert levels == [{"PUBLIC"}, {"CONFIDENTIAL"}]
        assert page.texts("name", within=drawn) == ["trip"]


def test_conversations_that_ended_before_are_not_shown(host, ada, console):
    host.close_session(host.open_session(ada.agent_id, PUBLIC, conversation_id="trip"))
    shown = f"/conversations?agent={ada.agent_id}&since="

    wait_until(lambda: "trip" not in console.look(f"{shown}1s").texts("name"), "it is over")

    assert "trip" in console.look(f"{shown}1h").texts("name")


def test_a_key_sees_what_it_may(dev, host, ada, key_of):
    known = host.create_agent("!known", known_from=PUBLIC).agent_id
    with host.open_session(known, CONFIDENTIAL, conversation_id="above") as session:
        session.save_memory("plan", "secret")
    with Console(dev.folder, dev.address, key_of("development", INTERNAL)) as console:
        pages = [console.look(path) for path in ("/", f"/agent?id={known}", "/conversations", "/audit")]
        hidden, absent = (console.get(f"/agent?id={name}") for name in (ada.agent_id, "no-such-agent"))
        seals = console.get("/seals")

    for page in pages:
        assert {*page.texts("level")} <= {"PUBLIC", "INTERNAL"}
        assert not {"above", ada.agent_id} & {*page.texts("name")}
        assert "secret" not in page.page
    assert known in pages[0].texts("name")
    assert (hidden.status, hidden.body) == (404, absent.body)
    assert (seals.status, b"CEILING_EXCEEDED" in seals.body) == (403, True)


def test_two_worlds_that_differ_above_the_key_give_the_same_pages(dev, key_of, connected):
    """Ids and times are masked, because they differ in any case."""
    seen = []
    for tenant in ("console-1", "console-2"):
        low, high = key_of(tenant, INTERNAL), connected(key_of(tenant, RESTRICTED))
        host = connected(low)
        host.create_agent("ada")
        if tenant == "console-2":
            high.create_agent("boss")
            with high.open_session("boss", RESTRICTED) as session:
                session.save_memory("plan", "secret")
                session.get_memory("plan")
        with host.open_session("ada", PUBLIC, conversation_id="trip") as session:
            if tenant == "console-2":
                with pytest.raises(muniment.AgentCeilingExceeded):
                    high.raise_taint(session, RESTRICTED)
            host.raise_taint(session, INTERNAL, reason="read the calendar")
        with Console(dev.folder, dev.address, low) as console:
            paths = ("/", "/conversations", "/audit", "/agent?id=ada", "/audit?level=internal", "/status", "/seals")
            seen.append([_masked(console.get(path).body.decode()) for path in paths])

    assert "read the calendar" in seen[0][1]
    for one, other in zip(*seen, strict=True):
        assert sorted(one.splitlines()) == sorted(other.splitlines())  # events of one transaction are in no order


def _masked(page: str) -> str:
    page = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<=>)[0-9a-f]{8}(?=</code>)", "id", page)
    page = re.sub(r"<time.*?</time>", "<time>", page)
    return re.sub(r'(<rect class="fill \w+") x="[0-9.]+" width="[0-9.]+"', r"\1", page)


def test_an_auditors_key_sees_the_audit_alone(dev, key_of):
    with Console(dev.folder, dev.address, key_of("development", RESTRICTED, "--only", "audit")) as console:
        statuses = {path: console.get(path).status for path in ("/audit", "/seals", "/", "/agent?id=alice")}
        refused = console.get("/").body

    assert statuses == {"/audit": 200, "/seals": 200, "/": 403, "/agent?id=alice": 403}
    assert b"created without --only" in refused


@for_each(
    "path",
    [
        "/audit?level=secret",
        "/audit?start=yesterday",
        "/audit?end=2026-13-45",
        "/audit?agent=%00",
        "/audit?session=5",
        "/audit?before=x+y",
        "/conversations?since=long",
        "/conversations?agent=%00",
        "/agent",
        "/release?id=x",
        "/releases?agent=%00",
    ],
)
def test_a_mistake_is_named(console, path):
    answer = console.get(path)

    assert (answer.status, b'class="problem"' in answer.body) == (400, True), answer.body.decode()


@for_each("path", ["/audit?start=999999w", "/conversations?since=999999w", "/audit?start=0001-01-01&end=9999-12-31"])
def test_any_time_may_be_asked_for(console, path):
    assert console.get(path).status == 200


def test_other_paths_are_no_pages(console):
    assert [console.get(path).status for path in ("/none", "/agent/", "/..%2f", "/favicon.ico")] == [404] * 4


_IN_2099 = datetime(2099, 1, 1, tzinfo=UTC)


@pytest.fixture
def desk(ada, host, key_of, connected):
    """Two hosts with rights at the release desk, and a release that one of them asks for."""
    asks, approves = (connected(key_of("development", CONFIDENTIAL, "--may", "endorse")) for _ in range(2))
    with host.open_session(ada.agent_id, INTERNAL) as session:
        session.save_memory("hotel", "The Astoria has a <night> desk.", tags=["travel"], expire_time=_IN_2099)
    asked = asks.request_release(
        ada.agent_id,
        ItemKind.MEMORY,
        "hotel",
        content_sha256=muniment.content_sha256("The Astoria has a <night> desk."),
        source=(INTERNAL, Integrity.UNTRUSTED),
        target=(INTERNAL, Integrity.TRUSTED),
        reason="confirmed by telephone",
    )
    return asks, approves, asked


def test_the_release_desk_is_shown_and_a_look_at_a_text_is_audited(host, ada, of_desk, desk):
    def looks() -> list[str]:
        events = host.list_audit_events(agent_id=ada.agent_id)
        return [each.method for each in events if each.method == "GetRelease"]

    *_, asked = desk
    listed = of_desk.look(f"/releases?agent={ada.agent_id}")
    before = looks()
    page = of_desk.look(f"/release?id={asked.release_id}")

    assert f"/release?id={asked.release_id}" in links(listed)
    assert listed.texts("level") == ["INTERNAL", "INTERNAL"]
    assert listed.texts("reason") == ["confirmed by telephone"]
    assert "0 of 1" in listed.page
    assert "Astoria" not in listed.page
    assert (page.texts("name"), page.texts("tag")) == ([ada.agent_id, "hotel"], ["travel"])
    assert page.texts("text") == ["The Astoria has a <night> desk."]
    assert 'datetime="2099-' in page.page
    assert page.texts("banner")[1] == "INTERNAL"
    assert f"/audit?key={asked.requester_host_key_id}" in links(page)
    assert before == []
    assert looks() != []


@pytest.mark.parametrize(
    ("level", "effect"),
    [
        (INTERNAL, "It overwrites INTERNAL trusted"),
        (PUBLIC, "Sessions at INTERNAL trusted will no longer see PUBLIC trusted"),
    ],
)
def test_a_release_shows_what_it_replaces(host, ada, of_desk, desk, level, effect):
    *_, asked = desk
    with host.open_session(ada.agent_id, level, integrity=Integrity.TRUSTED) as session:
        session.save_memory("hotel", "The <Palace> only.")
    page = of_desk.look(f"/release?id={asked.release_id}")

    (replaced,) = page.find("replaced")
    assert replaced.text.strip().startswith(effect)
    assert page.texts("text", within=replaced) == ["The <Palace> only."]
    assert page.texts("text")[0] == "The Astoria has a <night> desk."


def test_a_key_without_the_right_sees_the_release_and_no_text(console, desk):
    *_, asked = desk
    page = console.look(f"/release?id={asked.release_id}")

    assert page.texts("text") == []
    assert f"/audit?key={asked.requester_host_key_id}" in links(page)


def test_a_release_that_is_done_has_approvers_and_no_text(ada, console, desk):
    _, approves, asked = desk
    done = approves.approve_release(asked.release_id, asked.content_sha256)
    shown = f"/release?id={asked.release_id}"
    of_state = {each: links(console.look(f"/releases?agent={ada.agent_id}&state={each}")) for each in ("open", "done")}
    page = console.look(shown)

    assert (shown in of_state["open"], shown in of_state["done"]) == (False, True)
    assert f"/audit?key={done.approver_host_key_ids[0]}" in links(page)
    assert f"/audit?item={done.released_item_id}" in links(page)
    assert "Astoria" not in page.page


def test_a_text_under_review_hides_nothing(host, ada, of_desk, connected, key_of):
    """Models read what browsers do not show: tags that spell ASCII, selectors, an order turned around."""
    hidden = "Open\U000e0049\U000e01fa\ufff0 at \u202e9\u202c."
    with host.open_session(ada.agent_id, INTERNAL) as session:
        session.save_memory("hours", hidden)
    asked = connected(key_of("development", CONFIDENTIAL, "--may", "endorse")).request_release(
        ada.agent_id,
        ItemKind.MEMORY,
        "hours",
        content_sha256=muniment.content_sha256(hidden),
        source=(INTERNAL, Integrity.UNTRUSTED),
        target=(INTERNAL, Integrity.TRUSTED),
    )

    page = of_desk.look(f"/release?id={asked.release_id}")

    assert page.texts("text") == ["Open\\U000e0049\\U000e01fa\\ufff0 at \\u202e9\\u202c."]
    assert ".card.text { max-height: none; }" in page.page  # nothing of it is out of view


def test_a_release_above_the_key_is_none(dev, ada, key_of, desk):
    *_, asked = desk
    with Console(dev.folder, dev.address, key_of("development", INTERNAL)) as console:
        listed = console.look("/releases?state=all")
        hidden, absent = (console.get(f"/release?id={each}") for each in (asked.release_id, str(uuid.uuid4())))

    assert ada.agent_id not in listed.page
    assert (hidden.status, hidden.body) == (404, absent.body)


def test_status_says_who_may_see_more(console):
    page = console.look("/status")

    assert "takes calls" in page.page
    assert "--metrics unix:PATH" in page.page
    assert page.texts("banner")[1] == "PUBLIC"


def test_metrics_are_shown_with_charts(dev, host, monkeypatch):
    monkeypatch.setattr(status, "_INTERVAL", 0.05)
    watch = Watch(dev.folder / ".muniment" / "metrics.sock")
    watch.start()
    wait_until(lambda: (now := watch.now()) and now.charts, "it has read twice")
    host.get_agent("alice")

    now = watch.now()

    assert now is not None
    assert now.found["ready"] == "yes"
    assert [chart.title for chart in now.charts][:2] == ["Calls", "Refused calls"]
    assert all(len(chart.points.split()) == max(2, len(chart.values)) for chart in now.charts)
    assert Watch(dev.folder / "none").now() is None


def test_the_page_of_metrics_is_restricted(dev, host_key):
    socket = dev.folder / ".muniment" / "metrics.sock"
    with Console(dev.folder, dev.address, host_key, "--metrics", f"unix:{socket}") as console:
        page = console.look("/status")

    assert page.texts("banner")[1] == "RESTRICTED"
    assert "embeddings waiting" in page.page
