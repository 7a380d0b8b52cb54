"""Agents as a file declares them."""

from __future__ import annotations

import itertools

import pytest

from tests.support.commands import at, objects

_numbers = itertools.count()


@pytest.fixture
def names():
    """Two names of agents that do not exist."""
    number = next(_numbers)
    return f"declared-{number}-a", f"declared-{number}-b"


@pytest.fixture
def apply(muniment):
    """Apply a file that is given on standard input."""
    return lambda text, *options: muniment("agent", "apply", "-f", "-", *options, given=text)


def declared(name, *settings):
    """One agent of a file, a line for each setting."""
    return "".join([f"  {name}:\n", *(f"    {setting}\n" for setting in settings)])


def test_agents_are_created_updated_and_left_as_they_are(muniment, apply, names):
    first, second = names
    text = "agents:\n" + declared(first, "display_name: Ann", "memory_char_limit: 99") + declared(second, "{}")

    assert apply(text).stdout == f"created\t{first}\t\ncreated\t{second}\t\n"
    assert apply(text).stdout == f"unchanged\t{first}\t\nunchanged\t{second}\t\n"
    before = objects(muniment("agent", "get", first, "--json"))[0]
    assert (before["display_name"], before["memory_char_limit"], before["memory_enabled"]) == ("Ann", 99, True)

    text = text.replace("99", "100").replace("display_name: Ann", "user_profile_enabled: false")
    assert objects(apply(text, "--json")) == [
        {"outcome": "updated", "agent_id": first, "changed": ["user_profile_enabled", "memory_char_limit"]},
        {"outcome": "unchanged", "agent_id": second, "changed": []},
    ]
    after = objects(muniment("agent", "get", first, "--json"))[0]
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"memory_char_limit", "user_profile_enabled", "update_time"}


def test_an_agent_that_is_to_be_known_from_above_its_ceiling_stays_as_it_is(apply, names):
    """To the server, that is the ceiling."""
    text = "agents:\n" + declared(names[0], "ceiling: internal", "known_from: confidential")

    assert apply(text).stdout == f"created\t{names[0]}\t\n"
    assert apply(text).stdout == f"unchanged\t{names[0]}\t\n"
    assert apply(text.replace("confidential", "public")).stdout == f"updated\t{names[0]}\tknown_from\n"
    assert apply(text).stdout == f"updated\t{names[0]}\tknown_from\n"
    assert apply(text).stdout == f"unchanged\t{names[0]}\t\n"


def test_blocks_are_those_an_agent_starts_with_and_no_others(muniment, apply, names):
    def labels():
        listed = objects(muniment("block", "list", *at(names[0], "public"), "--json"))
        return [(each["label"], each["content"]) for each in listed]

    assert apply("agents:\n" + declared(names[0], "blocks: {mood: fine}")).returncode == 0
    assert labels() == [("mood", "fine")]
    assert apply("agents:\n" + declared(names[0], "blocks: {mood: bad, more: x}")).stdout.startswith("unchanged")
    assert labels() == [("mood", "fine")]


def test_a_dry_run_says_the_same_and_changes_nothing(muniment, apply, names):
    dry = apply("agents:\n" + declared(names[0]), "--dry-run")
    assert (dry.returncode, dry.stdout) == (0, f"created\t{names[0]}\t\n")
    assert "nothing was changed" in dry.stderr
    assert muniment("agent", "get", names[0]).returncode == 1


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("    memroy_enabled: true\n", "'memroy_enabled'"),
        ("    language: no\n", "put it in quotes"),
        ("    language: en\n    language: pt\n", "is repeated"),
        ("    blocks: {}\n", "must have a block"),
        ("  not an id: {}\n", "agents.not an id: agent_id must be 1 to 256 characters"),
        ("  more: *more\n", "undefined alias"),
        (f"  # {'x' * 1024**2}\n", "larger than 1 MiB"),
    ],
    ids=lambda text: text.strip()[:20],
)
def test_a_file_of_the_wrong_form_is_refused_before_anything_is_changed(muniment, apply, names, wrong, why):
    refused = apply("agents:\n" + declared(names[0]) + declared(names[1]) + wrong)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert why in refused.stderr
    assert muniment("agent", "get", names[0]).returncode == 1


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ('    display_name: "a\\tb"\n', "display_name must not contain control characters"),
        ("    language: no_such\n", "language must be a language tag"),
        ("    memory_char_limit: 1000001\n", "memory_settings.memory_char_limit is out of range"),
        ("    blocks: {a b: x}\n", "initial_blocks[0].label must be letters"),
        ('    blocks: {a: "x\\0"}\n', "initial_blocks[0].content must not contain U+0000"),
        (f"    blocks: {{a: {'x' * 65537}}}\n", "initial_blocks[0].content is too long"),
        ("    blocks: {caf\u00e9: x, cafe\u0301: y}\n", "initial_blocks[1].label"),
    ],
    ids=lambda text: text.strip()[:20],
)
def test_a_refusal_of_the_server_names_the_agent_and_ends_the_command(muniment, apply, names, wrong, why):
    refused = apply("agents:\n" + declared(names[0]) + declared(names[1]) + wrong)
    assert (refused.returncode, refused.stdout) == (1, f"created\t{names[0]}\t\n")
    assert f"agents.{names[1]}: {why}" in refused.stderr
    assert "correct the file, and apply it again" in refused.stderr
    assert muniment("agent", "get", names[1]).returncode == 1


def test_a_name_in_the_file_cannot_forge_what_is_said(apply):
    refused = apply('agents: {"x\\e[2J\\a\\nError: forged": {}}')
    assert (refused.returncode, refused.stdout, len(refused.stderr.splitlines())) == (1, "", 2)
    assert "agents.x\\x1b[2J\\x07\\nError: forged: agent_id must" in refused.stderr


def test_the_file_of_the_help_can_be_applied(muniment, dev, names):
    output = muniment("agent", "apply", "--help").stdout
    text = output[output.index("  agents:") : output.index("  Examples:")].replace("alice", names[0])
    (dev.folder / f"{names[0]}.yaml").write_text(text)
    assert muniment("agent", "apply", "--file", f"{names[0]}.yaml").stdout == f"created\t{names[0]}\t\n"
    assert muniment("agent", "apply", "-f", f"{names[0]}.yaml").stdout == f"unchanged\t{names[0]}\t\n"


def test_a_missing_file_is_reported(muniment):
    refused = muniment("agent", "apply", "-f", "no-such-file.yaml")
    assert (refused.returncode, "no-such-file.yaml: No such file" in refused.stderr) == (1, True)
