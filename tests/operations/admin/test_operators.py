"""Host keys, history, audit, purge."""

from __future__ import annotations

import re
import time
import uuid
from contextlib import ExitStack, suppress
from types import SimpleNamespace

import pytest

import muniment
from muniment_server.admin import audit, history, holds, host_key, purge
from muniment_server.engines.citus import distribute
from tests.support.commands import line_of, objects, on_a_terminal, run

TENANT = ("--tenant", "development")
OWN = ("--data-dir", ".muniment")


@pytest.fixture
def operate(dev):
    """Run an operator's command on the database of the server in development."""
    return lambda *arguments, **options: run(dev.folder, *arguments, *OWN, **options)


@pytest.fixture
def remember(dev):
    """Run `muniment memory …` as `alice` at a level."""

    def act(level, *arguments):
        done = run(dev.folder, "memory", *arguments, "--agent", "alice", "--taint", level)
        assert done.returncode == 0, done.stderr

    return act


def test_a_host_key_is_created_used_listed_and_revoked(operate, dev):
    made = operate("host-key", "create", "--tenant", "acme", "--ceiling", "Confidential", "--json")
    key = objects(made)[0]
    as_acme = {"MUNIMENT_ADDRESS": dev.address, "MUNIMENT_HOST_KEY": key["host_key"]}
    assert run(dev.folder, "agent", "create", "zelda", **as_acme).returncode == 0
    above = run(dev.folder, "session", "open", "zelda", "--taint", "restricted", **as_acme)
    assert "CEILING_EXCEEDED" in above.stderr

    listed = {found["host_key_id"]: found for found in objects(operate("host-key", "list", "--json"))}
    assert listed[key["host_key_id"]]["ceiling"] == "CONFIDENTIAL"
    assert "host_key" not in listed[key["host_key_id"]]

    assert operate("host-key", "revoke", key["host_key_id"], "--keep-sessions").returncode == 0
    assert "already revoked" in operate("host-key", "revoke", key["host_key_id"], "--keep-sessions").stderr
    assert "no such key" in operate("host-key", "revoke", str(uuid.uuid4()), "--keep-sessions").stderr
    assert run(dev.folder, "agent", "list", **as_acme).returncode == 1


@pytest.fixture
def stolen(operate, dev):
    """The id of a key, its open sessions, and one that another key has opened."""
    keys = [
        objects(operate("host-key", "create", "--tenant", "robbed", "--ceiling", "restricted", "--json"))[0]
        for _ in range(2)
    ]
    with (
        muniment.connect(dev.address, host_key=keys[0]["host_key"]) as thief,
        muniment.connect(dev.address, host_key=keys[1]["host_key"]) as owner,
        ExitStack() as stack,
    ):
        with suppress(muniment.AlreadyExists):
            owner.create_agent("zoe")
        theirs = thief.open_session("zoe", taint=muniment.Classification.CONFIDENTIAL)
        reset = thief.reset_session(owner.open_session("zoe", taint=muniment.Classification.PUBLIC).session_id)
        own = owner.open_session("zoe", taint=muniment.Classification.PUBLIC)
        owner.raise_taint(own.session_id, muniment.Classification.INTERNAL)
        tokens = [opened.token for opened in (theirs, reset, own)]
        sessions = [stack.enter_context(muniment.connect(dev.address, token=token)) for token in tokens]
        for session in sessions:
            session.save_memory("plan", "ship")
        yield keys[0]["host_key_id"], sessions[:2], sessions[2]


def is_open(session):
    """Whether a running server accepts a session that it has served before."""
    try:
        session.get_memory("plan")
    except muniment.Unauthenticated:
        return False
    return True


def test_the_sessions_of_a_stolen_key_are_closed_with_it(operate, stolen):
    key, theirs, own = stolen

    done = operate("host-key", "revoke", key, "--close-sessions")

    assert (done.returncode, done.stderr) == (0, "Revoked.\nClosed sessions: 2.\n")
    assert [is_open(session) for session in (*theirs, own)] == [False, False, True]
    events = objects(operate("audit", "list", "--tenant", "robbed", "--limit", "1000", "--json"))
    closed = [event for event in events if event["method"] == "host-key revoke" and event["outcome"] == "CLOSED"]
    assert sorted(event["classification"] for event in closed) == ["CONFIDENTIAL", "PUBLIC"]
    assert {event["agent_id"] for event in closed} == {"zoe"}


def test_the_sessions_of_a_revoked_key_are_kept_or_closed_later(operate, stolen):
    key, theirs, own = stolen

    kept = operate("host-key", "revoke", key, "--keep-sessions")
    assert "still open: 2." in kept.stderr
    assert [is_open(session) for session in (*theirs, own)] == [True] * 3

    assert "It was already revoked.\nClosed" in operate("host-key", "revoke", key, "--close-sessions").stderr
    assert [is_open(session) for session in (*theirs, own)] == [False, False, True]
    again = operate("host-key", "revoke", key, "--close-sessions")
    assert again.returncode == 0
    assert again.stderr == "It was already revoked.\nNo session that it opened is open.\n"


@pytest.mark.parametrize("is_closed", [False, True])
def test_without_a_terminal_a_revocation_says_what_becomes_of_the_sessions(operate, stolen, monkeypatch, is_closed):
    key, theirs, _ = stolen
    if is_closed:  # as by <&-
        monkeypatch.setattr(host_key, "sys", SimpleNamespace(stdin=None))

    done = operate("host-key", "revoke", key)

    assert done.returncode == 1
    assert "nothing was done" in done.stderr
    assert "--close-sessions if the key was stolen" in done.stderr
    assert all(map(is_open, theirs))
    found = {each["host_key_id"]: each for each in objects(operate("host-key", "list", "--json"))}
    assert found[key]["revoke_time"] is None


@pytest.mark.parametrize(("answer", "left"), [("y", [False, False, True]), ("n", [True, True, True])])
def test_on_a_terminal_a_revocation_asks_about_open_sessions(dev, stolen, answer, left):
    key, theirs, own = stolen

    status, shown = on_a_terminal(dev.folder, "host-key", "revoke", key, *OWN, answer=f"{answer}\n")

    assert status == 0
    assert "Close them now?" in shown
    assert [is_open(session) for session in (*theirs, own)] == left


@pytest.fixture
def as_host_of(operate, dev):
    """Run a command as a host of a tenant."""

    def host(tenant):
        key = line_of(operate("host-key", "create", "--tenant", tenant, "--ceiling", "restricted", "--quiet"))
        return lambda *arguments, **more: run(
            dev.folder, *arguments, MUNIMENT_ADDRESS=dev.address, **({"MUNIMENT_HOST_KEY": key} | more)
        )

    return host


@pytest.fixture
def acme(as_host_of):
    """Run a command as a host of the tenant acme."""
    return as_host_of("acme")


def opened(acme, agent):
    """The environment of a session that was opened for the agent."""
    token = line_of(acme("session", "open", agent, "--taint", "internal", "--quiet"))
    return {"MUNIMENT_HOST_KEY": "", "MUNIMENT_TOKEN": token}


def test_a_frozen_tenant_is_refused_until_it_is_thawed_and_its_sessions_stay_closed(operate, acme, dev):
    acme("agent", "create", "zoe")
    session = opened(acme, "zoe")
    assert acme("memory", "list", **session).returncode == 0

    frozen = operate("tenant", "freeze", "acme", "--json")
    assert objects(frozen)[0] | {"frozen_keys": 0} == {"tenant": "acme", "frozen_keys": 0, "closed_sessions": 1}
    assert "CREDENTIAL_INVALID" in acme("agent", "list").stderr
    assert "CREDENTIAL_INVALID" in acme("memory", "list", **session).stderr
    assert run(dev.folder, "agent", "list").returncode == 0

    assert operate("tenant", "thaw", "acme").returncode == 0
    assert acme("agent", "list").returncode == 0
    assert "CREDENTIAL_INVALID" in acme("memory", "list", **session).stderr
    methods = {event["method"] for event in objects(operate("audit", "list", "--tenant", "acme", "--json"))}
    assert {"tenant freeze", "tenant thaw"} <= methods


@pytest.mark.parametrize("lines", ["", '{"tenant": "else", "classification": "PUBLIC"}\n'])
def test_a_file_without_a_checkpoint_of_the_tenant_verifies_nothing(operate, tmp_path, lines):
    """It may have been cut off when the disk was full."""
    file = tmp_path / "checkpoints.jsonl"
    file.write_text(lines)

    done = operate("audit", "verify", "--tenant", "development", "--checkpoint", str(file))

    assert done.returncode == 1
    assert "no file has a checkpoint of development: nothing was compared" in done.stderr


def test_the_sessions_of_a_tenant_or_of_an_agent_are_closed(operate, acme):
    for agent in ("amy", "ben"):
        acme("agent", "create", agent)
    amy, ben = opened(acme, "amy"), opened(acme, "ben")

    closed = objects(operate("tenant", "close-sessions", "acme", "--agent", "amy", "--json"))
    assert closed == [{"tenant": "acme", "closed_sessions": 1}]
    assert "CREDENTIAL_INVALID" in acme("memory", "list", **amy).stderr
    assert acme("memory", "list", **ben).returncode == 0
    operate("tenant", "close-sessions", "acme")
    assert "CREDENTIAL_INVALID" in acme("memory", "list", **ben).stderr
    assert acme("agent", "list").returncode == 0


def test_a_host_key_expires(operate, dev, acme):
    key = line_of(
        operate("host-key", "create", "--tenant", "acme", "--ceiling", "public", "--expires-in", "1s", "--quiet")
    )
    time.sleep(1)
    assert "CREDENTIAL_EXPIRED" in acme("agent", "list", MUNIMENT_HOST_KEY=key).stderr

    key = line_of(
        operate("host-key", "create", "--tenant", "acme", "--ceiling", "public", "--expires-in", "1h", "--quiet")
    )
    assert acme("agent", "list", MUNIMENT_HOST_KEY=key).returncode == 0
    assert any(found["expire_time"] for found in objects(operate("host-key", "list", "--json")))


def test_a_host_key_has_a_name_for_people(operate, dev, acme):
    created = ("host-key", "create", "--tenant", "acme", "--ceiling", "restricted", "--name", "chatbot")
    [key] = objects(operate(*created, "--json"))
    assert key["name"] == "chatbot"
    unnamed = objects(operate("host-key", "create", "--tenant", "acme", "--ceiling", "public", "--json"))
    acme("agent", "create", "named", MUNIMENT_HOST_KEY=key["host_key"])

    listed = {each["host_key_id"]: each["name"] for each in objects(operate("host-key", "list", "--json"))}
    assert (listed[key["host_key_id"]], listed[unnamed[0]["host_key_id"]]) == ("chatbot", None)
    _, events = on_a_terminal(dev.folder, "audit", "list", "--tenant", "acme", "--agent", "named", *OWN, columns=160)
    assert "key chatbot" in events


@pytest.mark.parametrize("name", ["", " ", "a ", "two\nlines", "x" * 65, "\u202e"])
def test_a_name_fits_a_table(operate, name):
    refused = operate("host-key", "create", "--tenant", "acme", "--ceiling", "public", "--name", name)

    assert refused.returncode == 2
    assert "is not a name" in refused.stderr


@pytest.mark.parametrize(
    ("only", "allowed"), [("agents", "agent list"), ("sessions", "session list zoe"), ("audit", "audit list")]
)
def test_a_host_key_for_one_thing_does_nothing_else(operate, dev, acme, only, allowed):
    acme("agent", "create", "zoe")
    created = ("host-key", "create", "--tenant", "acme", "--ceiling", "restricted", "--only", only, "--json")
    [key] = objects(operate(*created))
    assert key["only_service"] in {"AgentService", "SessionService", "AuditService"}

    for command in ("agent list", "session list zoe"):
        done = acme(*command.split(), MUNIMENT_HOST_KEY=key["host_key"])
        assert (done.returncode == 0) == (command == allowed), command
        assert (command == allowed) != ("PRINCIPAL_NOT_ALLOWED" in done.stderr), command
    with muniment.connect(dev.address, host_key=key["host_key"]) as host:
        if only == "audit":
            assert list(host.list_audit_events())
        else:
            with pytest.raises(muniment.PrincipalNotAllowed):
                list(host.list_audit_events())


def test_a_host_key_may_be_for_untrusted_sessions_only(operate, dev, acme):
    created = ("host-key", "create", "--tenant", "acme", "--ceiling", "restricted", "--integrity", "untrusted")
    [key] = objects(operate(*created, "--json"))
    assert (key["integrity"], key["only_service"]) == ("UNTRUSTED", "SessionService")
    refused = operate(*created, "--only", "agents")
    assert (refused.returncode, "implies --only sessions" in refused.stderr) == (2, True)

    listed = {each["host_key_id"]: each["integrity"] for each in objects(operate("host-key", "list", "--json"))}
    assert (listed.pop(key["host_key_id"]), set(listed.values())) == ("UNTRUSTED", {"TRUSTED"})
    audit = operate("audit", "list", "--tenant", "acme", "--wide").stdout
    assert audit.count("for untrusted sessions") == 1
    acme("agent", "create", "bounded")
    with muniment.connect(dev.address, host_key=key["host_key"]) as host:
        host.open_session("bounded").close()
        with pytest.raises(muniment.IntegrityExceeded):
            host.open_session("bounded", integrity=muniment.Integrity.TRUSTED)


def test_the_limits_of_a_tenant_bound_what_its_hosts_may_give_to_agents(operate, as_host_of):
    acme = as_host_of("bounded")
    assert acme("agent", "create", "amy", "--max-items", "60").returncode == 0
    limits = objects(operate("tenant", "limits", "bounded", "--max-items", "100", "--max-agents", "2", "--json"))
    assert limits == [
        {"tenant": "bounded", "max_agents": 2, "calls_per_second": None, "max_items": 100, "max_bytes": None}
        | {"release_approvals": 1}
    ]

    assert "QUOTA_EXCEEDED" in acme("agent", "create", "ben", "--max-items", "41").stderr
    assert acme("agent", "create", "ben", "--max-items", "40").returncode == 0
    assert "QUOTA_EXCEEDED" in acme("agent", "create", "cat", "--max-items", "0").stderr
    assert "QUOTA_EXCEEDED" in acme("agent", "update", "ben", "--max-items", "41").stderr
    assert acme("agent", "update", "ben", "--max-items", "40", "--max-bytes", "1").returncode == 0
    operate("tenant", "limits", "bounded", "--max-items", "50")
    assert acme("agent", "update", "amy", "--max-items", "59").returncode == 0  # less is not refused
    assert acme("agent", "update", "amy", "--display-name", "Amy").returncode == 0
    assert acme("agent", "delete", "amy", "--yes").returncode == 0
    assert acme("agent", "create", "cat", "--max-items", "10").returncode == 0
    removed = objects(operate("tenant", "limits", "bounded", "--max-items", "-1", "--max-agents", "-1", "--json"))
    assert {value for name, value in removed[0].items() if name not in {"tenant", "release_approvals"}} == {None}
    assert acme("agent", "create", "dan").returncode == 0
    methods = [event["method"] for event in objects(operate("audit", "list", "--tenant", "bounded", "--json"))]
    assert methods.count("tenant limits") == 3


@pytest.mark.parametrize("command", ["freeze", "thaw", "close-sessions", "limits"])
def test_a_tenant_that_does_not_exist_is_not_cut_off(operate, command):
    assert "there is no such tenant" in operate("tenant", command, "nobody").stderr


def test_an_agent_that_does_not_exist_is_not_cut_off(operate, acme):
    assert "no such tenant or agent" in operate("tenant", "close-sessions", "acme", "--agent", "nobody").stderr


def test_a_quiet_host_key_can_be_captured(operate):
    key = operate("host-key", "create", "--tenant", "acme", "--ceiling", "public", "--quiet")
    assert line_of(key).startswith("mun_h_")
    assert key.stderr == ""


def test_history_shows_every_version_at_every_level_and_is_audited(operate, remember):
    remember("internal", "save", "story", "first")
    remember("internal", "save", "story", "second")
    remember("restricted", "save", "story", "hidden")
    remember("internal", "delete", "story")

    shown = operate("history", *TENANT, "--agent", "alice", "story", "--json")

    versions = [(row["classification"], row["revision"], row["content"], row["is_live"]) for row in objects(shown)]
    assert versions == [
        ("INTERNAL", 1, "first", False),
        ("INTERNAL", 2, "second", False),
        ("RESTRICTED", 1, "hidden", True),
    ]
    assert "audit log" in shown.stderr
    events = objects(operate("audit", "list", *TENANT, "--agent", "alice", "--limit", "2", "--json"))
    assert {(event["method"], event["classification"]) for event in events} == {
        ("history", "INTERNAL"),
        ("history", "RESTRICTED"),
    }


def test_history_shows_a_renamed_memory_under_the_key_of_each_version(operate, remember):
    remember("internal", "save", "draft", "first")
    remember("internal", "rename", "draft", "final")
    remember("internal", "save", "final", "second")

    def shown(key):
        rows = objects(operate("history", *TENANT, "--agent", "alice", key, "--json"))
        return [(row["revision"], row["content"], row["is_live"], row["delete_time"]) for row in rows]

    assert shown("draft") == [(1, "first", False, None)]
    assert shown("final") == [(2, "first", False, None), (3, "second", True, None)]
    assert operate("doctor").returncode == 0


def test_history_knows_every_kind(operate, dev):
    def act(*arguments):
        done = run(dev.folder, *arguments, "--agent", "alice", "--taint", "internal")
        assert done.returncode == 0, done.stderr
        return done.stdout.split()[0]

    act("block", "update", "personality", "brief")
    note = act("note", "add", "first")
    act("note", "update", note, "second")
    passage = act("passage", "store", "archived")
    run(dev.folder, "passage", "delete", passage, "--agent", "alice", "--taint", "internal")

    def shown(kind, name):
        done = operate("history", *TENANT, "--agent", "alice", "--kind", kind, name, "--json")
        return [(row["classification"], row["revision"], row["content"], row["is_live"]) for row in objects(done)]

    assert shown("block", "personality") == [("PUBLIC", 1, "", True), ("INTERNAL", 1, "brief", True)]
    assert shown("note", note.upper()) == [("INTERNAL", 1, "first", False), ("INTERNAL", 2, "second", True)]
    assert shown("passage", passage) == [("INTERNAL", 1, "archived", False)]
    assert "is a UUID" in operate("history", *TENANT, "--agent", "alice", "--kind", "note", "plan").stderr


def test_the_audit_lists_one_session(operate, dev):
    opened = objects(run(dev.folder, "session", "open", "alice", "--taint", "public", "--json"))[0]
    assert run(dev.folder, "session", "close", opened["session_id"]).returncode == 0
    events = objects(operate("audit", "list", *TENANT, "--session", opened["session_id"], "--json"))
    assert [event["method"] for event in events] == ["CloseSession", "OpenSession"]


def test_the_audit_shows_who_erased_what(operate, dev, muniment, agent):
    muniment("memory", "save", "gone", "text", "--agent", agent, "--taint", "internal")
    assert muniment("agent", "erase", agent, "--name", "gone", "--yes").returncode == 0
    arguments = ("audit", "list", *TENANT, "--agent", agent, "--limit", "2")
    [event] = [each for each in objects(operate(*arguments, "--json")) if each["item_id"]]

    line = next(line for line in operate(*arguments).stdout.splitlines() if event["item_id"] in line)
    assert line.split("\t")[-3:] == [event["host_key_id"], event["item_id"], ""]

    _, shown = on_a_terminal(dev.folder, *arguments, *OWN, "--wide", columns=120)
    assert event["host_key_id"] in shown
    assert event["item_id"] in shown
    assert "session id" not in shown, "what is empty is left out where a row is a line for each column"


def test_on_a_terminal_an_event_is_a_line(operate, dev, muniment):
    assert muniment("agent", "create", "lines").returncode == 0
    assert muniment("memory", "save", "tea", "Assam", "--agent", "lines", "--taint", "confidential").returncode == 0
    arguments = ("audit", "list", *TENANT, "--agent", "lines", "--limit", "4")
    events = objects(operate(*arguments, "--json"))

    _, shown = on_a_terminal(dev.folder, *arguments, *OWN, columns=100)

    title, *lines = re.sub("\x1b\\[[0-9;]*m", "", shown).splitlines()
    assert title.split() == ["time", "level", "method", "outcome", "agent", "caller"]
    for line, event in zip(lines, events, strict=True):
        kind, caller = ("key", event["host_key_id"]) if event["host_key_id"] else ("session", event["session_id"])
        of_event = [event["classification"], event["method"], event["outcome"], "lines", kind, caller[:8]]
        assert line.split()[2:] == of_event


def test_purge_removes_what_is_not_live_and_no_audit_event(operate, remember):
    remember("public", "save", "purged", "first")
    remember("public", "save", "purged", "second")
    before = objects(operate("audit", "list", *TENANT, "--limit", "10000", "--json"))

    removed = operate("purge", "--older-than", "0s", "--force", "--force", "--yes", "--json")

    assert [row["classification"] for row in objects(removed)] == ["PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED"]
    assert objects(removed)[0]["revisions"] >= 1
    assert "audit rows stay" in removed.stderr
    versions = objects(operate("history", *TENANT, "--agent", "alice", "purged", "--json"))
    assert [row["content"] for row in versions] == ["second"]
    after = {event["event_id"] for event in objects(operate("audit", "list", *TENANT, "--limit", "10000", "--json"))}
    assert {event["event_id"] for event in before} <= after


def test_one_agent_is_reindexed_without_the_others(operate, remember, muniment, agent):
    remember("internal", "save", "story", "first")
    muniment("memory", "save", "story", "first", "--agent", agent, "--taint", "public")

    done = operate("reindex", *TENANT, "--agent", agent, "--json")

    assert objects(done) == [{"agent_id": agent, "classification": "PUBLIC", "items": 1}]
    assert "only words find these items" in done.stderr
    assert {agent, "alice"} <= {row["agent_id"] for row in objects(operate("reindex", *TENANT, "--json"))}


def test_purge_of_one_name_leaves_the_others(operate, remember):
    for key in ("narrow", "wide"):
        remember("public", "save", key, "first")
        remember("public", "save", key, "second")
    now = ("--older-than", "0s", "--force", "--force", "--yes", "--json")
    removed = operate("purge", *now, *TENANT, "--agent", "alice", "--kind", "memory", "--name", "narrow")

    def count(key):
        return len(objects(operate("history", *TENANT, "--agent", "alice", key, "--json")))

    assert [row["revisions"] for row in objects(removed)] == [1, 0, 0, 0]
    assert (count("narrow"), count("wide")) == (1, 2)
    assert "--agent needs --tenant" in operate("purge", *now, "--agent", "alice").stderr
    assert "--name needs --agent and --kind" in operate("purge", *now, *TENANT, "--name", "narrow").stderr
    assert "no such tenant or agent" in operate("purge", *now, *TENANT, "--agent", "nobody").stderr


def test_purge_removes_closed_sessions_and_leaves_open_ones(operate, acme):
    now = ("--sessions", "--older-than", "0s", "--force", "--force", "--yes", "--json", "--tenant", "acme")
    acme("agent", "create", "pat")
    still_open = opened(acme, "pat")
    closed = objects(acme("session", "open", "pat", "--taint", "internal", "--json"))[0]["session_id"]
    assert acme("session", "close", closed).returncode == 0

    removed = operate("purge", *now, "--agent", "pat")

    assert [(row["classification"], row["sessions"]) for row in objects(removed)] == [
        ("PUBLIC", 0), ("INTERNAL", 1), ("CONFIDENTIAL", 0), ("RESTRICTED", 0),
    ]  # fmt: skip
    assert "Sessions of the agent pat of the tenant acme closed or expired before" in removed.stderr
    assert "Open sessions, conversations and audit rows stay" in removed.stderr
    assert acme("memory", "list", **still_open).returncode == 0
    assert closed not in acme("session", "list", "pat", "--all").stdout
    assert "--sessions excludes --kind, --name and --level" in operate("purge", *now, "--kind", "memory").stderr
    assert "sessions are kept for at least 30 days" in operate("purge", "--sessions", "--older-than", "29d").stderr
    assert "no such tenant or agent" in operate("purge", *now, "--agent", "nobody").stderr


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_purge_keeps_thirty_days_unless_forced_twice(operate, force):
    refused = operate("purge", "--older-than", "29d", "--yes", *force)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "30 days" in refused.stderr
    assert "--yes" in operate("purge", "--older-than", "30d").stderr
    assert operate("purge", "--older-than", "30d", "--yes").returncode == 0


@pytest.mark.parametrize(
    ("command", "columns"),
    [
        (purge.purge, purge._VERSIONS),
        (purge.purge, purge._SESSIONS),
        (audit.verify, audit._VERIFIED),
        (history.history, history._COLUMNS),
        (holds.list_, holds._COLUMNS),
        (distribute.distribute, distribute._COLUMNS),
    ],
)
def test_the_help_names_the_columns_that_a_pipe_gets_without_headings(command, columns):
    assert f": {', '.join(columns)}." in " ".join(command.help.split())


def test_a_missing_thing_is_reported(operate, folder):
    assert "no such tenant or agent: nobody of" in operate("history", *TENANT, "--agent", "nobody", "story").stderr
    assert "no such tenant: nobody" in operate("audit", "list", "--tenant", "nobody").stderr
    assert "no such tenant or agent" in operate("reindex", *TENANT, "--agent", "nobody").stderr
    assert "no such tenant" in operate("reindex", "--tenant", "nobody").stderr
    assert "--tenant" in operate("reindex", "--agent", "alice").stderr
    assert "not a regular file" in operate("audit", "verify", *TENANT, "--checkpoint", "/dev/zero").stderr
    assert "no version" in operate("history", *TENANT, "--agent", "alice", "nothing").stderr
    assert "must not" in operate("history", *TENANT, "--agent", "alice", " spaces ").stderr


def test_a_mistyped_directory_does_not_become_a_database(folder):
    failed = run(folder, "host-key", "list", "--data-dir", "mistyped")
    assert failed.returncode == 1
    assert "--data-dir" in failed.stderr
    assert list(folder.iterdir()) == []


def test_without_a_running_server_the_database_is_started_for_the_command(folder, data_dir):
    key = run(folder, "host-key", "create", "--tenant", "acme", "--ceiling", "public", *OWN)
    assert key.returncode == 0, key.stderr
    assert objects(run(folder, "host-key", "list", "--json", *OWN))[0]["tenant"] == "acme"


def test_an_agent_is_held_listed_and_freed(operate, dev):
    assert run(dev.folder, "agent", "create", "holly").returncode == 0
    assert operate("hold", "add", "holly", *TENANT, "--reason", "case 12").returncode == 0
    (listed,) = objects(operate("hold", "list", "--json"))
    assert (listed["agent_id"], listed["reason"].partition(": ")[2]) == ("holly", "case 12")
    erased = run(dev.folder, "agent", "erase", "holly", "--name", "plan", "--yes")
    assert "muniment hold remove" in erased.stderr
    skipped = run(dev.folder, "agent", "erase", "--every-agent", "--tag", "subject:alice", "--yes")
    assert "held or their ceiling is above that of the key: 1, such as holly" in skipped.stderr
    assert (skipped.returncode, "Erased." in skipped.stderr) == (3, False)
    refused = operate("audit", "purge", *TENANT, "--older-than", "90d", "--yes")
    assert (refused.returncode, "muniment hold list" in refused.stderr) == (1, True)

    assert operate("hold", "remove", "holly", *TENANT).returncode == 0
    assert run(dev.folder, "agent", "erase", "--every-agent", "--tag", "subject:alice", "--yes").returncode == 0
    assert "is not held" in operate("hold", "remove", "holly", *TENANT).stderr
    assert "no such tenant or agent" in operate("hold", "add", "nobody", *TENANT, "--reason", "x").stderr
    events = objects(operate("audit", "list", *TENANT, "--json"))
    reasons = [event["reason"].partition(": ")[2] for event in events if event["method"] == "hold add"]
    assert reasons == ["case 12"]
