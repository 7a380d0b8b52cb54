"""Agents, sessions and memories at the terminal."""

from __future__ import annotations

import pytest

from muniment.cli.agent import _of_limit
from muniment_server.admin.connection import connect_operator
from muniment_server.runtime import databases
from muniment_server.runtime.configuration import DatabaseConfig
from tests.support.answers import LEVELS
from tests.support.commands import line_of, objects, on_a_terminal, run

AT_INTERNAL = ("--agent", "alice", "--taint", "internal")


@pytest.fixture
def token(muniment):
    """The token of a session of `alice` at INTERNAL."""
    return line_of(muniment("session", "open", "alice", "--taint", "Internal", "--quiet"))


def test_the_token_of_a_session_in_place_of_the_host_key_is_named(dev, token):
    refused = run(dev.folder, "agent", "list", MUNIMENT_ADDRESS=dev.address, MUNIMENT_HOST_KEY=token)

    assert "MUNIMENT_HOST_KEY has the token of a session" in refused.stderr
    assert "MUNIMENT_TOKEN" in refused.stderr


def test_a_session_may_be_opened_to_read_only(muniment, dev):
    opened = objects(muniment("session", "open", "alice", "--read-only", "--json"))[0]
    assert opened["read_only"]

    refused = run(
        dev.folder, "memory", "save", "plan", "x", MUNIMENT_ADDRESS=dev.address, MUNIMENT_TOKEN=opened["token"]
    )

    assert "SESSION_READ_ONLY" in refused.stderr
    assert "opened without --read-only" in refused.stderr


def test_a_session_is_trusted_until_it_is_raised_or_for_as_long_as_its_host_vouches(muniment):
    opened = objects(muniment("session", "open", "alice", "--integrity", "trusted", "--json"))[0]
    own = opened["session_id"]

    def raised(*options):
        return objects(muniment("session", "raise", own, "--taint", "internal", *options, "--json"))[0]["integrity"]

    assert [opened["integrity"], raised("--integrity", "trusted"), raised()] == ["TRUSTED", "TRUSTED", "UNTRUSTED"]
    assert objects(muniment("session", "reset", own, "--integrity", "trusted", "--json"))[0]["integrity"] == "TRUSTED"


def test_an_agent_is_made_shown_changed_listed_and_erased(muniment):
    made = objects(muniment("agent", "create", "bob", "--display-name", "Bob", "--notes-limit", "99", "--json"))
    changed = objects(muniment("agent", "update", "bob", "--no-profile", "--json"))
    shown = objects(muniment("agent", "get", "bob", "--json"))
    listed = objects(muniment("agent", "list", "--json"))

    assert (made[0]["display_name"], made[0]["memory_char_limit"]) == ("Bob", 99)
    assert [stored["classification"] for stored in shown[0].pop("storage")] == [level.name for level in LEVELS]
    assert shown[0]["user_profile_enabled"] is False
    assert shown[0] | {"storage": []} == changed[0]
    assert changed[0] in listed
    assert "--yes" in muniment("agent", "delete", "bob").stderr
    assert muniment("agent", "delete", "bob", "--yes").returncode == 0
    gone = muniment("agent", "get", "bob")
    assert (gone.returncode, gone.stdout) == (1, "")
    assert "muniment agent create" in gone.stderr


def test_what_an_agent_stores_is_shown_beside_its_limits(muniment):
    muniment("agent", "create", "carol", "--max-items", "3", "--max-bytes", "1000")
    muniment("memory", "save", "plan", "x", "--agent", "carol", "--taint", "restricted")
    shown = muniment("agent", "get", "carol").stderr

    assert "CONFIDENTIAL: 0 of 3 items, 0 of 1,000 bytes\n" in shown
    assert "PUBLIC: 3 of 3 items, 768 of 1,000 bytes, at 80 % of a limit or above: raise it" in shown
    refused = muniment("memory", "save", "new", "x", "--agent", "carol", "--taint", "public")
    assert "muniment agent get NAME" in refused.stderr
    assert "--max-items, --max-bytes or --max-revisions" in refused.stderr


def test_one_of_what_an_agent_stores_is_singular():
    assert _of_limit(1, 5, "item") == "1 of 5 items"
    assert _of_limit(0, 1, "item") == "0 of 1 item"
    assert _of_limit(1, None, "byte") == "1 byte"


def test_items_are_erased_and_the_answer_is_the_same_if_there_are_none(muniment, token):
    def erase(*target):
        return muniment("agent", "erase", "alice", *target)

    for key in ("named", "tagged"):
        muniment("memory", "save", key, "text", "--tag", "pii", MUNIMENT_TOKEN=token)
    item = ("--item", "0b9c6b0e-6f0c-4f0a-9d0e-1c6c1f0a2b3d")
    assert "--yes" in erase("--name", "named").stderr
    answers = [
        erase("--name", "named", "--yes"),
        erase("--tag", "pii", "--yes"),
        erase("--tag", "pii", "--yes"),
        erase(*item, "--revision", "2", "--yes"),
    ]

    assert {(answer.returncode, answer.stdout, answer.stderr) for answer in answers} == {(0, "", answers[0].stderr)}
    assert [muniment("memory", "get", key, MUNIMENT_TOKEN=token).returncode for key in ("named", "tagged")] == [1, 1]
    for wrong in ((), ("--name", "a", "--tag", "b"), item, ("--name", "a", "--revision", "1")):
        assert "give one of --name, --tag, and --item" in erase(*wrong, "--yes").stderr


def test_a_deleted_item_comes_back_at_its_level(muniment):
    internal = ("--agent", "dora", "--taint", "internal")

    def undelete(level):
        return muniment("agent", "undelete", "dora", "--name", "gone", "--level", level)

    muniment("agent", "create", "dora")
    muniment("memory", "save", "gone", "text", *internal)
    muniment("memory", "delete", "gone", *internal)
    elsewhere, there, again = undelete("public"), undelete("internal"), undelete("internal")

    assert (elsewhere.returncode, there.returncode, again.returncode) == (1, 0, 1)
    for words in ("MEMORY_NOT_FOUND", "--level", "muniment history --tenant TENANT --agent AGENT --kind memory NAME"):
        assert words in elsewhere.stderr
    assert muniment("memory", "get", "gone", *internal).stdout == "text"
    assert "ITEM_EXISTS" in again.stderr
    assert "delete it first" in again.stderr


def test_two_keys_release_an_item(dev, muniment, agent):
    """The key of the development server has no right; two that an operator makes have it."""

    def key(*rights):
        made = ("host-key", "create", "--tenant", "development", "--ceiling", "restricted", "--quiet")
        return {"MUNIMENT_HOST_KEY": muniment(*made, *rights).stdout.strip(), "MUNIMENT_ADDRESS": dev.address}

    asks, approves = (key("--only", "releases", "--may", "endorse") for _ in range(2))
    muniment("memory", "save", "fact", "it is blue", "--agent", agent, "--taint", "public")
    request = ("release", "request", agent, "fact", "it is blue", "--from", "public", "--to", "public", "--trusted")

    refused = muniment(*request)
    (asked,) = objects(muniment(*request, "--reason", "seen", "--json", **asks))
    released = asked["release_id"]
    own = muniment("release", "approve", released, "--hash", asked["content_sha256"], **asks)
    (shown,) = objects(muniment("release", "show", released, "--json", **approves))
    listed = objects(muniment("release", "list", "--agent", agent, "--json", **approves))
    wrong = muniment("release", "approve", released, "--hash", "it is blue", **approves)
    approved = muniment("release", "approve", released, "--hash", shown["content_sha256"], **approves)
    over = muniment("release", "reject", released, **asks)

    assert (refused.returncode, own.returncode, over.returncode) == (1, 1, 1)
    assert "host-key create --may endorse" in refused.stderr
    assert "give the 64 digits" in wrong.stderr
    assert "another host key" in own.stderr
    assert (shown["name"], shown["content"], shown["target"]) == ("fact", "it is blue", "PUBLIC TRUSTED")
    assert [one["release_id"] for one in listed] == [released]
    assert (approved.returncode, approved.stderr) == (0, "Released.\n")
    assert "RELEASE_NOT_OPEN" in over.stderr


def test_a_changed_language_says_what_it_means_for_search(muniment):
    assert muniment("agent", "create", "carl", "--language", "en").stderr == ""

    assert "muniment reindex" in muniment("agent", "update", "carl", "--language", "pt-BR").stderr


def test_a_memory_is_saved_got_searched_listed_and_deleted(muniment, token):
    def act(*words, **options):
        return muniment("memory", *words, MUNIMENT_TOKEN=token, **options)

    saved = objects(act("save", "plan", "ship on Friday", "--tag", "work", "--tag", "soon", "--json"))
    assert saved[0]["classification"] == "INTERNAL"
    assert act("get", "plan").stdout == "ship on Friday"
    assert objects(act("get", "plan", "--json")) == saved
    assert objects(act("search", "friday", "--json"))[0]["key"] == "plan"
    assert saved[0] in objects(act("list", "--tag", "work", "--json"))
    assert act("list", "--tag", "work").stdout.split("\t")[:3] == ["plan", "INTERNAL", "work, soon"]
    assert act("delete", "plan", "--etag", saved[0]["etag"]).returncode == 0
    assert act("get", "plan").returncode == 1


def test_memories_are_renamed_listed_by_prefix_and_deleted_by_tag(muniment, token):
    def act(*words):
        return muniment("memory", *words, MUNIMENT_TOKEN=token)

    for key in ("trip/vienna", "trip/porto", "tripod"):
        assert act("save", key, f"about {key}", "--tag", "draft").returncode == 0
    assert act("rename", "trip/vienna", "trip/graz").stderr == "Renamed.\n"
    assert [line.split("\t")[0] for line in act("list", "--prefix", "trip/").stdout.splitlines()] == [
        "trip/graz",
        "trip/porto",
    ]
    assert [found["key"] for found in objects(act("search", "graz porto", "--prefix", "trip/p", "--json"))] == [
        "trip/porto"
    ]
    taken = act("rename", "trip/graz", "trip/porto")
    assert (taken.returncode, "MEMORY_EXISTS" in taken.stderr) == (1, True)
    assert act("delete", "--tag", "draft").stderr == "3 memories deleted.\n"
    assert act("delete", "--tag", "draft").stderr == "0 memories deleted.\n"
    for wrong in ((), ("trip/graz", "--tag", "draft"), ("--tag", "draft", "--etag", "x")):
        assert "name a KEY, or --tag without --etag" in act("delete", *wrong).stderr


def test_a_rename_says_what_it_reveals(muniment):
    at = {level: ("--agent", "nora", "--taint", level) for level in ("public", "internal")}
    assert muniment("agent", "create", "nora").returncode == 0
    for level in at.values():
        assert muniment("memory", "save", "plan", "text", *level).returncode == 0

    renamed = muniment("memory", "rename", "plan", "other", *at["internal"])

    assert renamed.stderr == "Renamed; the version at PUBLIC is now visible.\n"


def test_content_goes_in_and_out_byte_for_byte(muniment):
    content = "no line end\r\n\ttab \x1b[31m \u202e é\\n".encode()
    assert muniment("memory", "save", "bytes", "-", *AT_INTERNAL, given=content).returncode == 0
    assert muniment("memory", "get", "bytes", *AT_INTERNAL).stdout.encode() == content


def test_a_row_is_one_line_whatever_is_in_it(muniment):
    assert muniment("memory", "save", "lines", *AT_INTERNAL, given="a\nb\tc").returncode == 0
    rows = [line.split("\t") for line in muniment("memory", "list", *AT_INTERNAL).stdout.splitlines()]
    assert "a\\nb\\tc" in [row[4] for row in rows]
    assert {len(row) for row in rows} == {5}


def test_a_session_for_one_command_is_closed_afterwards(muniment):
    assert muniment("agent", "create", "brief").returncode == 0
    for_brief = ("--agent", "brief", "--taint", "public")
    assert muniment("memory", "save", "a", "b", *for_brief).returncode == 0
    assert muniment("memory", "get", "nothing", *for_brief).returncode == 1

    assert objects(muniment("session", "list", "brief", "--json")) == []
    assert len(objects(muniment("session", "list", "brief", "--all", "--json"))) == 2


def test_taint_rises_and_a_reset_begins_again(muniment, token):
    raised = objects(muniment("session", "raise", "--taint", "confidential", "--json", MUNIMENT_TOKEN=token))
    assert raised[0]["taint"] == "CONFIDENTIAL"
    fresh = line_of(muniment("session", "reset", "--quiet", MUNIMENT_TOKEN=token))

    assert muniment("memory", "list", MUNIMENT_TOKEN=token).returncode == 1
    assert (
        objects(muniment("memory", "save", "x", "y", "--json", MUNIMENT_TOKEN=fresh))[0]["classification"] == "PUBLIC"
    )
    assert muniment("session", "close", MUNIMENT_TOKEN=fresh).returncode == 0
    assert muniment("memory", "list", MUNIMENT_TOKEN=fresh).returncode == 1


@pytest.mark.parametrize(
    ("level", "remark"),
    [
        ("internal", "Nothing changed: the taint is already INTERNAL.\n"),
        ("public", "Nothing changed: the taint is already INTERNAL; it never falls.\n"),
        ("confidential", ""),
    ],
)
def test_a_raise_that_changes_nothing_says_so(muniment, token, level, remark):
    raised = muniment("session", "raise", "--taint", level, MUNIMENT_TOKEN=token)

    assert (raised.returncode, raised.stderr) == (0, remark)
    assert muniment("session", "close", MUNIMENT_TOKEN=token).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("memory", "list", "--limt", "3"), "Error: No such option '--limt'. Did you mean --limit?"),
        (("memory", "list", "--limit", "0"), "Error: Invalid value for '--limit': 0 is not in the range x>=1."),
        (("memory", "list", "--tags", "work"), "Error: No such option '--tags'. Did you mean --tag?"),
        (("prompt", "--agent", "a"), "prompt AGENT --taint LEVEL"),
        (("memory", "list", "work"), "Error: there are more arguments than the command takes, which is none"),
        (("memory", "save", "k", "v", "--tagg", "hush"), "Error: one of the options is unknown. Did you mean --tag?"),
        (("memory", "save", "k", "v", "hush"), "more arguments than the command takes, which is KEY [CONTENT]"),
        (("memory", "save", "k", "v", "--tag"), "Error: Option '--tag' requires an argument."),
        (("agent", "create", "a", "--langage", "en"), "Did you mean --language?"),
        (("agent", "undelete", "a", "--name", "hush", "--level", "public", "--json"), "No such option '--json'."),
        (("agent", "erase", "a", "--name", "hush", "--hush"), "Error: one of the options is unknown."),
    ],
    ids=lambda words: " ".join(words[:4]) if isinstance(words, tuple) else "",
)
def test_a_wrong_option_or_argument_is_pointed_out(muniment, arguments, advice):
    """By its name only where it cannot be content: without arguments, or if it is another command's option."""
    failed = muniment(*arguments)

    assert failed.returncode == 2
    assert advice in " ".join(failed.stderr.split())
    assert "hush" not in failed.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("agent", "create", "a b"),
        ("session", "open", "a b", "--taint", "public"),
        ("session", "open", "alice", "--taint", "public", "--conversation", "a b"),
    ],
    ids=" ".join,
)
def test_the_error_of_a_wrong_name_states_the_form(muniment, arguments):
    failed = muniment(*arguments)

    assert failed.returncode == 1
    assert "must be 1 to 256 characters, without spaces" in " ".join(failed.stderr.split())


def test_a_session_sees_nothing_above_its_taint(muniment):
    above = ("--agent", "alice", "--taint", "restricted")
    assert muniment("memory", "save", "above", "hidden", *above).returncode == 0
    hidden = muniment("memory", "get", "above", *AT_INTERNAL)
    absent = muniment("memory", "get", "no-such-key", *AT_INTERNAL)
    assert (hidden.returncode, hidden.stdout, hidden.stderr) == (absent.returncode, absent.stdout, absent.stderr)


@pytest.mark.parametrize(
    "arguments",
    [
        ("save", "k", "my", "hush", *AT_INTERNAL),
        ("save", "k", "-hush", *AT_INTERNAL),
        ("save", "k", "--hush=1", *AT_INTERNAL),
        ("save", " hush", "content", *AT_INTERNAL),
        ("save", "k", "hush\udcff", *AT_INTERNAL),
        ("save", "k", "hush" * 40000, *AT_INTERNAL),
        ("get", "hush", *AT_INTERNAL),
        ("search", "hush", "again", *AT_INTERNAL),
        ("delete", "hush", *AT_INTERNAL),
    ],
    ids=lambda words: " ".join(words)[:20].encode("ascii", "replace").decode(),
)
def test_an_error_repeats_neither_content_nor_key(muniment, arguments):
    failed = muniment("memory", *arguments)
    assert failed.returncode in {1, 2}
    assert failed.stdout == ""
    assert "hush" not in failed.stderr
    assert "Error: " in failed.stderr
    assert "Traceback" not in failed.stderr


def test_an_unreachable_server_is_reported_in_one_message(dev, folder, monkeypatch):
    monkeypatch.setattr("muniment.retries.FIRST_PAUSE", 60)  # nothing is tried again
    failed = run(folder, "agent", "list", MUNIMENT_ADDRESS="127.0.0.1:1", MUNIMENT_HOST_KEY="mun_h_1_x")
    assert failed.returncode == 1
    for hint in ("is it running? start it: muniment serve", "set MUNIMENT_ADDRESS, or give --address"):
        assert hint in failed.stderr
    assert "Traceback" not in failed.stderr


def test_an_address_that_cannot_be_used_says_what_to_give(dev):
    for address, hint in (
        ("localhost", "localhost has no port: give HOST:PORT"),
        ("http://127.0.0.1:52000", "an address has no http://: give HOST:PORT, such as 127.0.0.1:52000"),
        (
            "https://muniment.example:443",
            "such as muniment.example:443, and tls\n  correct MUNIMENT_ADDRESS, or --address",
        ),
        ("10.1.2.3:50051", "give --tls, or --tls-ca FILE (MUNIMENT_TLS_CA)"),
    ):
        refused = run(dev.folder, "agent", "list", MUNIMENT_ADDRESS=address, MUNIMENT_HOST_KEY="mun_h_1_x")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert hint in refused.stderr


def test_a_hint_for_a_missing_or_wrong_host_key_can_be_run_as_it_is(dev):
    create = "muniment host-key create --tenant NAME --ceiling LEVEL"
    assert create in run(dev.folder, "agent", "list", MUNIMENT_ADDRESS="127.0.0.1:1").stderr
    wrong = run(dev.folder, "agent", "list", MUNIMENT_ADDRESS=dev.address, MUNIMENT_HOST_KEY="mun_h_1_x").stderr
    assert create in wrong
    assert "its tenant is frozen" in wrong
    assert "session" not in wrong


@pytest.mark.parametrize("state", ["closed", "reset", "unknown"])
@pytest.mark.parametrize("command", ["memory list", "prompt", "session raise --taint restricted"])
def test_whoever_holds_the_token_of_an_ended_session_is_sent_to_its_host(muniment, token, state, command):
    """With the same words however it ended, since the server does not say."""
    if state == "unknown":
        token = "mun_s_1_" + "x" * 43
    else:
        assert muniment("session", "close" if state == "closed" else "reset", MUNIMENT_TOKEN=token).returncode == 0

    refused = muniment(*command.split(), MUNIMENT_TOKEN=token)

    assert refused.returncode == 1
    assert refused.stderr == (
        "Error: CREDENTIAL_INVALID: send one valid credential as `authorization: Bearer <token>`\n"
        "  MUNIMENT_TOKEN is not the token of an open session here: it is incomplete, or of another server, or the "
        "session was closed or reset, or has expired, or its tenant is frozen. Ask the host for a new one: muniment "
        "session open AGENT --taint LEVEL\n"
    )


@pytest.mark.parametrize("command", ["memory list", "session raise --taint restricted"])
def test_whoever_holds_the_token_of_an_expired_session_learns_how_it_goes_on(dev, muniment, token, command):
    config = DatabaseConfig(dev.folder / ".muniment")
    with databases.operators_database(config) as admin, connect_operator(admin) as operator:
        operator.connection.execute("UPDATE vault.session SET expire_time = vault.clock() WHERE close_time IS NULL")

    refused = muniment(*command.split(), MUNIMENT_TOKEN=token)

    assert refused.returncode == 1
    assert refused.stderr == (
        "Error: CREDENTIAL_EXPIRED: the session has expired: its host may renew it, or open another one\n"
        "  ask the host to open it again: muniment session open AGENT --conversation ID\n"
    )


def test_a_host_key_goes_only_to_the_server_it_was_given_for(muniment):
    without_address = muniment("agent", "list", MUNIMENT_HOST_KEY="mun_h_1_elsewhere")
    assert without_address.returncode == 1
    assert "MUNIMENT_ADDRESS" in without_address.stderr
    elsewhere = muniment("agent", "list", "--address", "127.0.0.1:1")
    assert elsewhere.returncode == 1
    assert "there is no host key" in elsewhere.stderr


def test_an_address_alone_finds_the_key_that_was_written_for_it(dev, folder):
    """In the folder of the server. Elsewhere there is none."""
    found = run(dev.folder, "agent", "list", "--json", MUNIMENT_ADDRESS=dev.address)
    assert "alice" in [agent["agent_id"] for agent in objects(found)]
    assert "there is no host key" in run(folder, "agent", "list", MUNIMENT_ADDRESS=dev.address).stderr


@pytest.mark.parametrize(
    ("arguments", "lengths"),
    [
        (("memory", "save", "", "x", *AT_INTERNAL), "a key has 1 to 256 characters"),
        (("memory", "save", "k", "x", "--tag", "", *AT_INTERNAL), "an item has at most 32 tags, of 1 to 64 characters"),
        (("memory", "search", "", *AT_INTERNAL), "a query has 1 to 1,024 characters"),
        (("block", "get", "", *AT_INTERNAL), "a label has 1 to 64 letters, digits, _ . and -"),
        (("memory", "save", "k", "x" * 131073, *AT_INTERNAL), "a memory has at most 128 KiB"),
    ],
    ids=lambda words: " ".join(words[:2]) if isinstance(words, tuple) else "",
)
def test_the_error_of_a_wrong_length_states_the_lengths(muniment, arguments, lengths):
    failed = muniment(*arguments)

    assert failed.returncode == 1
    assert lengths in failed.stderr


@pytest.mark.parametrize(
    "command", ["memory list", "note list", "block list", "passage list", "agent list", "session list"]
)
def test_a_list_may_be_limited_and_says_that_there_are_more(muniment, agent, command):
    of_agent = ("--agent", agent, "--taint", "public")
    for number in range(3):
        muniment("memory", "save", f"key {number}", "x", *of_agent)
        muniment("note", "add", f"note {number}", *of_agent)
        muniment("passage", "store", f"passage {number}", *of_agent)
    which = {"agent list": (), "session list": (agent, "--all")}.get(command, of_agent)

    def listed(*limit):
        return muniment(*command.split(), *which, *limit)

    assert len(listed("--limit", "2").stdout.splitlines()) == 2
    assert "there are more: give a higher --limit, or none\n" in listed("--limit", "2").stderr
    assert listed("--limit", "1000").stdout.splitlines()[:2] == listed("--limit", "2").stdout.splitlines()[:2]
    assert "there are more" not in listed("--limit", "1000").stderr


def test_a_missing_server_and_a_missing_session_are_reported(muniment, folder):
    assert "muniment serve --dev" in run(folder, "agent", "list").stderr
    assert "--agent NAME" in muniment("memory", "list").stderr
    assert "require each other" in muniment("memory", "list", "--agent", "alice").stderr
    assert "no session is named" in muniment("session", "close").stderr


def test_a_data_directory_names_the_server(dev, folder):
    listed = objects(run(folder, "agent", "list", "--json", "--data-dir", str(dev.folder / ".muniment")))
    assert "alice" in [agent["agent_id"] for agent in listed]


def test_so_does_the_variable_of_the_data_directory(dev, folder):
    """As for `serve`: instead of .muniment and of the server's default."""
    data_dir = str(dev.folder / ".muniment")
    alone = objects(run(folder, "agent", "list", "--json", MUNIMENT_DATA_DIR=data_dir))
    beside = objects(run(folder, "agent", "list", "--json", MUNIMENT_DATA_DIR=data_dir, MUNIMENT_ADDRESS=dev.address))
    elsewhere = run(dev.folder, "agent", "list", MUNIMENT_DATA_DIR=str(folder))

    assert alone == beside
    assert "alice" in [agent["agent_id"] for agent in alone]
    assert "no server is named" in elsewhere.stderr


def test_a_data_directory_in_the_environment_does_not_stand_against_an_address(dev, folder):
    named = {"MUNIMENT_DATA_DIR": str(dev.folder / ".muniment")}
    failed = run(folder, "agent", "list", "--address", "127.0.0.1:1", **named)
    assert "there is no host key" in failed.stderr
    damaged = folder / "development.json"
    damaged.write_text("{}")
    listed = run(folder, "agent", "list", "--data-dir", str(dev.folder / ".muniment"), MUNIMENT_DATA_DIR=str(folder))
    assert listed.returncode == 0


def test_a_terminal_gets_tables_with_a_color_for_the_level(muniment, dev):
    assert muniment("memory", "save", "steering", *AT_INTERNAL, given="\x1b[2J\u202ehello").returncode == 0
    status, shown = on_a_terminal(dev.folder, "memory", "list", *AT_INTERNAL)
    assert status == 0
    assert "classification" in shown
    assert "\x1b[36mINTERNAL" in shown
    assert "\x1b[2J" not in shown
    assert "\\x1b[2J\\u202ehello" in shown

    status, shown = on_a_terminal(dev.folder, "memory", "get", "steering", *AT_INTERNAL)
    assert (status, "\x1b[2J" in shown, "\\x1b[2J\\u202ehello" in shown) == (0, False, True)


def test_a_narrow_terminal_gets_a_line_for_each_column_and_nothing_is_cut(muniment, dev):
    saved = objects(muniment("passage", "store", "narrow", *AT_INTERNAL, "--json"))[0]
    status, shown = on_a_terminal(dev.folder, "passage", "list", *AT_INTERNAL, columns=60)
    assert status == 0
    assert "event time" in shown
    assert saved["passage_id"] in shown
