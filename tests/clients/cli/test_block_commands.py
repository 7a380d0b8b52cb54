"""Blocks at the terminal, and sharing them."""

from __future__ import annotations

import pytest

from tests.support.commands import at, objects, run


@pytest.fixture
def block(muniment, agent):
    """Run a block command of sessions at INTERNAL."""
    return lambda *words, **options: muniment("block", *words, *at(agent, "internal"), **options)


def test_an_agent_starts_with_three_empty_blocks(block, agent):
    listed = objects(block("list", "--json"))
    assert [each["label"] for each in listed] == ["current_state", "personality", "relationships"]
    assert {(each["content"], each["owner_agent_id"], each["classification"]) for each in listed} == {
        ("", agent, "PUBLIC")
    }
    assert {len(row.split("\t")) for row in block("list").stdout.splitlines()} == {6}


def test_a_newer_version_below_is_mentioned(muniment, block, agent):
    block("update", "plan", "one")
    muniment("block", "update", "plan", "two", *at(agent, "public"))

    found = block("get", "plan")

    assert (found.stdout, found.stderr.partition(":")[0]) == ("one", "A newer version is at PUBLIC")


def test_an_agent_may_start_with_others(muniment):
    made = objects(muniment("agent", "create", "--block", "a=x=y", "--block", "b=", "--json"))[0]["agent_id"]
    listed = objects(muniment("block", "list", *at(made, "public"), "--json"))
    assert [(each["label"], each["content"]) for each in listed] == [("a", "x=y"), ("b", "")]


@pytest.mark.parametrize(
    "blocks", [("--block", "hush"), ("--block", "hush=1", "--block", "hush=2"), ("hush", "--block=hush=1", "x")]
)
def test_a_first_block_that_is_not_understood_is_not_repeated(muniment, blocks):
    refused = muniment("agent", "create", *blocks)
    assert (refused.returncode, refused.stdout, "hush" in refused.stderr) == (2, "", False)


def test_a_block_is_written_edited_and_deleted(block):
    written = objects(block("update", "plan", "one\nthree", "--json"))[0]
    assert (written["classification"], written["shared"]) == ("INTERNAL", False)
    assert block("insert", "plan", "1", "two", "--etag", written["etag"]).returncode == 0
    assert block("append", "plan", given="four\n").returncode == 0
    assert block("replace", "plan", "thr", "f").returncode == 0
    assert block("replace", "plan", "two\n", "").returncode == 0
    assert block("replace", "plan", "one", given="1").returncode == 0
    assert block("get", "plan").stdout == "1\nfee\nfour\n"
    assert block("insert", "plan", "0", "zero", "--etag", written["etag"]).returncode == 1
    assert block("delete", "plan").stderr == "Deleted.\n"
    gone = block("get", "plan")
    assert (gone.returncode, "muniment block list" in gone.stderr) == (1, True)


def test_content_goes_in_and_out_byte_for_byte(block):
    content = "no line end\r\n\ttab \x1b[31m \u202e é\\n".encode()
    assert block("update", "bytes", "-", given=content).returncode == 0
    assert block("get", "bytes").stdout.encode() == content
    assert block("update", "bytes", "").returncode == 0
    assert block("get", "bytes").stdout == ""


def test_nothing_on_standard_input_empties_no_block(block):
    assert block("update", "plan", "kept").returncode == 0
    refused = block("update", "plan")
    assert (refused.returncode, "no content" in refused.stderr) == (1, True)
    assert block("get", "plan").stdout == "kept"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("replace", "plan", "hush", "hush"), "muniment block get"),
        (("replace", "plan", "a", "hush"), "more of what stands around"),
        (("insert", "plan", "2", "hush"), "0 is before the first"),
        (("insert", "plan", "hush"), "not a line number"),
        (("append", "plan", "hush" * 16_300), "shorten it"),
        (("append", "hush", "hush"), "muniment block list"),
        (("update", "#hush", "hush"), "--help"),
        (("delete", "personality"), "own level"),
        (("get", "hush", "--owner", "nobody"), "muniment block list"),
    ],
    ids=lambda words: " ".join(words)[:20],
)
def test_an_error_says_what_to_do_and_repeats_neither_content_nor_label(block, arguments, hint):
    assert block("update", "plan", "a" * 400).returncode == 0
    failed = block(*arguments)
    assert failed.returncode in {1, 2}
    assert failed.stdout == ""
    assert hint in failed.stderr
    assert "hush" not in failed.stderr


def test_a_shared_block_is_read_by_those_it_is_attached_to(muniment, block, agent):
    reader = objects(muniment("agent", "create", "--json"))[0]["agent_id"]

    def read(level):
        return muniment("block", "get", "rules", "--owner", agent, *at(reader, level))

    shared = muniment("block", "share", agent, "rules", "-", given="No shoes.")
    assert (shared.returncode, shared.stdout, shared.stderr[:7]) == (0, "", "Shared.")
    assert read("public").returncode == 1
    assert muniment("block", "attach", agent, "rules", reader).stderr == "Attached.\n"
    assert objects(muniment("block", "consumers", agent, "rules", "--json")) == [{"agent_id": reader}]
    assert muniment("block", "consumers", agent, "rules").stdout == f"{reader}\n"

    assert block("update", "rules", "No shoes, no hats.").returncode == 0
    assert (read("public").stdout, read("internal").stdout) == ("No shoes.", "No shoes, no hats.")
    listed = objects(muniment("block", "list", *at(reader, "public"), "--json"))
    assert [each["owner_agent_id"] for each in listed if each["shared"]] == [agent]

    assert muniment("block", "detach", agent, "rules", reader).stderr == "Detached.\n"
    assert read("internal").returncode == 1
    assert muniment("block", "unshare", agent, "rules").returncode == 0
    assert block("get", "rules").stdout == "No shoes, no hats."


def test_a_block_is_shared_as_it_is_when_no_content_is_given(muniment, agent):
    assert muniment("block", "update", "mood", "fine", *at(agent, "public")).returncode == 0
    taken = muniment("block", "share", agent, "mood", "hush")
    assert (taken.returncode, "omit CONTENT" in taken.stderr, "hush" in taken.stderr) == (1, True, False)
    assert muniment("block", "share", agent, "mood").returncode == 0
    assert muniment("block", "share", agent, "mood").returncode == 1
    assert muniment("block", "get", "mood", *at(agent, "public")).stdout == "fine"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("attach", "{agent}", "hush", "alice"), "muniment block share"),
        (("consumers", "{agent}", "hush"), "muniment block share"),
        (("unshare", "{agent}", "hush"), "muniment block share"),
        (("share", "nobody", "hush", "hush"), "muniment agent list"),
        (("share", "{agent}", "label", "more", "hush"), "put each in quotes"),
    ],
    ids=lambda words: words[0],
)
def test_what_cannot_be_shared_says_what_to_do(muniment, agent, arguments, hint):
    failed = muniment("block", *(word.format(agent=agent) for word in arguments))
    assert failed.returncode in {1, 2}
    assert hint in failed.stderr
    assert "hush" not in failed.stderr


def test_a_block_that_is_not_attached_is_not_detached(muniment, agent):
    assert muniment("block", "share", agent, "rules").returncode == 0
    failed = muniment("block", "detach", agent, "rules", "alice")
    assert (failed.returncode, "muniment block consumers" in failed.stderr) == (1, True)


def test_sharing_is_not_for_sessions(muniment, agent, dev, folder):
    token = muniment("session", "open", agent, "--taint", "public", "--quiet").stdout.strip()
    refused = run(folder, "block", "share", agent, "rules", MUNIMENT_TOKEN=token, MUNIMENT_ADDRESS=dev.address)
    assert (refused.returncode, "no host key" in refused.stderr) == (1, True)
