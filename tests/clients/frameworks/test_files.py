"""Memories as files."""

from __future__ import annotations

import random
import re
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

import muniment
from muniment import Classification, Integrity
from muniment._file_contents import MAX_BYTES
from muniment.files import (
    AmbiguousText,
    FileChanged,
    FileExists,
    FileView,
    InvalidContent,
    InvalidPath,
    LowerFile,
    NoSuchFile,
    NoSuchLine,
    NoSuchText,
    entries,
    matches,
    normalized,
)
from tests.support.concurrency import together

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification


def tree(view: FileView) -> dict[str, str]:
    return {file.path: file.content for file in view.walk()}


def test_a_file_is_a_memory_with_the_same_content(opened):
    session = opened(PUBLIC)
    written = FileView(session).write("/trips/graz.md", "by bus\n")

    memory = session.get_memory("muniment:files/trips/graz.md")
    assert (memory.content, memory.etag, memory.tags) == ("by bus\n", written.etag, ())
    assert FileView(session).read("trips/graz.md") == written


@pytest.mark.parametrize(
    "key",
    [
        "muniment:files/a/../b",
        "muniment:files/a/./c",
        "muniment:files/a//c",
        "muniment:files/a/c/",
        "muniment:files//b",
        "muniment:files/../b",
        "muniment:files/",
    ],
)
def test_a_memory_whose_key_is_another_path_to_a_file_is_no_file(opened, key):
    """A lower session can save one."""
    low, session = opened(PUBLIC), opened(CONFIDENTIAL)
    low.save_memory(key, "planted")
    view = FileView(session)
    view.write("a/c", "new")
    view.write("b", "new")

    assert tree(view) == {"a/c": "new", "b": "new"}
    assert (view.grep("planted"), view.glob("**/../*")) == ([], [])
    assert [entry.path for entry in view.ls(depth=9)] == ["a", "a/c", "b"]
    view.delete("a")
    view.clear()
    assert [memory.key for memory in session.list_memories()] == [key]


@pytest.mark.parametrize("content", ["", "\n", "a", "a\r\nb", "x" * 131_072, "é" * 65_536, "\ufeff\u202e"])
def test_content_comes_back_byte_for_byte(files, content):
    view = files(INTERNAL)
    assert view.write("a", content).content == content
    assert view.read("a").content == content
    assert view.ls() == entries([view.read("a")], "", 1)
    assert view.ls()[0].size == len(content.encode())


@pytest.mark.parametrize("content", ["x" * 131_073, "é" * 65_537, "a\0", "\ud800"])
def test_other_content_is_refused(files, content):
    view = files(PUBLIC)
    with pytest.raises(InvalidContent):
        view.create("a", content)
    assert view.walk() == []


def test_files_above_the_taint_do_not_exist(files):
    low, high = files(PUBLIC), files(CONFIDENTIAL)
    low.write("a/plan", "low")
    high.write("a/plan", "high")
    high.write("b/salary", "52,000")

    assert (tree(low), tree(high)) == ({"a/plan": "low"}, {"a/plan": "high", "b/salary": "52,000"})
    assert not low.exists("b")
    assert low.glob("**") == ["a/plan"]
    assert low.grep("52,000") == []
    with pytest.raises(NoSuchFile):
        low.ls("b")
    low.create("b/salary", "none")  # what is above cannot be in the way


def test_a_write_shadows_what_is_below(files):
    low, high = files(PUBLIC), files(CONFIDENTIAL)
    low.write("plan", "one")

    high.replace("plan", "one", "two")

    assert (low.read("plan").content, high.read("plan").content) == ("one", "two")


def test_a_create_does_not_replace(files):
    low, high = files(PUBLIC), files(CONFIDENTIAL)
    low.create("plan", "one")

    for view in (low, high):
        with pytest.raises(FileExists, match="plan already exists"):
            view.create("plan", "two")
    assert high.read("plan").classification == PUBLIC


def test_of_several_that_create_a_file_at_once_one_does(files, runs):
    views = [files(PUBLIC) for _ in range(4)]
    for number in range(max(5, runs // 4)):
        made: list[str] = []

        def create(view: FileView, text: str, number: int = number, made: list[str] = made) -> None:
            with suppress(FileExists):
                made.append(view.create(f"file {number}", text).content)

        together(*(partial(create, view, f"by {each}") for each, view in enumerate(views)))
        assert made == [views[0].read(f"file {number}").content]


def test_a_change_is_made_to_the_version_that_was_read(opened):
    mine, other = FileView(opened(PUBLIC)), FileView(opened(PUBLIC))
    first = mine.write("plan", "one")
    other.write("plan", "two")

    with pytest.raises(FileChanged, match="read it again"):
        mine.write("plan", "three", etag=first.etag)
    assert mine.read("plan").content == "two"


def test_every_edit_carries_the_etag_of_what_it_read(opened, monkeypatch):
    session, other = opened(PUBLIC), FileView(opened(PUBLIC))
    view = FileView(session)
    view.write("plan", "one")
    read = session.get_memory

    def overtaken(key):
        memory = read(key)
        other.write("plan", f"{memory.content}!")
        return memory

    monkeypatch.setattr(session, "get_memory", overtaken)
    for edit in (
        lambda: view.replace("plan", "one", "two"),
        lambda: view.insert("plan", 0, "zero"),
        lambda: view.delete("plan"),
    ):
        with pytest.raises(FileChanged):
            edit()
    assert other.read("plan").content == "one!!!"


@pytest.mark.parametrize("act", [lambda view: view.delete("a"), lambda view: view.rename("a", "z")])
@pytest.mark.parametrize("path", ["a", "a/b/c"])
def test_what_is_lower_is_neither_deleted_nor_renamed(files, act, path):
    low, high = files(PUBLIC), files(CONFIDENTIAL)
    low.write(path, "low")
    high.write("a/own", "high")
    before = tree(high)

    with pytest.raises(LowerFile, match=rf"{path} cannot be (deleted|renamed) from this conversation"):
        act(high)

    assert tree(high) == before


def test_a_deletion_says_what_it_uncovers(files):
    low, high = files(PUBLIC), files(CONFIDENTIAL)
    low.write("d/a", "low")
    for name in ("d/a", "d/b"):
        high.write(name, "high")

    assert high.delete("d") == ["d/a"]
    assert tree(high) == {"d/a": "low"}


def test_a_rename_says_what_it_uncovers(files):
    low, high = files(PUBLIC), files(CONFIDENTIAL)
    low.write("d/a", "low")
    for name in ("d/a", "d/b"):
        high.write(name, f"high {name}")

    assert high.rename("d", "e/f") == ["d/a"]
    assert tree(high) == {"d/a": "low", "e/f/a": "high d/a", "e/f/b": "high d/b"}


@pytest.mark.parametrize("act", [lambda view: view.delete("d"), lambda view: view.rename("d", "z")])
def test_what_is_trusted_is_not_deleted_by_halves(owner, act):
    """A trusted file is below an untrusted session, though its level is the same: nothing is done at all."""
    agent_id = owner.create_agent().agent_id
    trusted, untrusted = (
        FileView(owner.open_session(agent_id, PUBLIC, integrity=integrity)) for integrity in reversed(Integrity)
    )
    trusted.write("d/trusted", "one")
    untrusted.write("d/own", "two")

    with pytest.raises(LowerFile, match=r"d/trusted cannot be (deleted|renamed)"):
        act(untrusted)
    assert [file.path for file in untrusted.walk("d")] == ["d/own", "d/trusted"]


def test_a_taint_raised_in_between_is_a_refusal(owner, opened, monkeypatch):
    session = opened(PUBLIC)
    view = FileView(session)
    view.write("a", "x")
    ask = session.get_session

    def raised():
        answer = ask()
        owner.raise_taint(session, RESTRICTED, reason="read the payroll")
        return answer

    monkeypatch.setattr(session, "get_session", raised)
    with pytest.raises(LowerFile):
        view.delete("a")
    assert view.read("a").content == "x"


def test_a_rename_replaces_nothing(files):
    view = files(PUBLIC)
    for path in ("a", "b", "d/c"):
        view.write(path, path)

    for new in ("a", "b", "d", "d/c"):
        with pytest.raises(FileExists):
            view.rename("a", new)
    with pytest.raises(InvalidPath, match="into itself"):
        view.rename("d", "d/e")
    with pytest.raises(NoSuchFile):
        view.rename("none", "other")
    view.create("long/" + "x" * 150, "x")
    with pytest.raises(InvalidPath, match="^" + "y" * 100 + "/x+ is no possible path"):
        view.rename("long", "y" * 100)
    view.delete("long")
    assert view.rename("a", "d/e") == []
    assert tree(view) == {"b": "b", "d/c": "d/c", "d/e": "a"}


def test_a_rename_that_would_make_one_path_too_long_renames_nothing(files):
    view = files(PUBLIC)
    for path in ("d/a", "d/" + "x" * 150):
        view.create(path, "")
    before = tree(view)
    with pytest.raises(InvalidPath, match=r"too long\. Nothing was renamed"):
        view.rename("d", "y" * 100)
    assert tree(view) == before


@pytest.mark.parametrize(("act", "done"), [("delete", "deleted"), ("rename", "renamed")])
def test_an_error_says_how_many_files_were_changed_before_it(files, monkeypatch, act, done):
    view = files(PUBLIC)
    for path in ("d/a", "d/b", "d/c"):
        view.create(path, "")
    read = view._at

    def changed_meanwhile(path):
        found = read(path)
        if found and path == "d":
            files(PUBLIC).write("d/b", "changed")
        return found

    monkeypatch.setattr(view, "_at", changed_meanwhile)
    with pytest.raises(FileChanged, match=rf"1 of 3 files were {done} before that, and stay so\."):
        view.delete("d") if act == "delete" else view.rename("d", "e")


def test_a_file_with_the_most_tags_cannot_be_empty(files):
    view = files(PUBLIC)
    view.write("a", "x", tags=map(str, range(32)))
    with pytest.raises(InvalidContent, match="32 tags: keep a line break"):
        view.replace("a", "x", "")
    assert view.read("a").content == "x"


def test_a_text_must_occur_once(files):
    view = files(PUBLIC)
    view.write("a", "one\ntwo\none\n")

    file, line = view.replace("a", "two\n", "")
    assert (file.content, line) == ("one\none\n", 2)
    with pytest.raises(NoSuchText):
        view.replace("a", "two", "x")
    with pytest.raises(NoSuchText):
        view.replace("a", "", "x")
    with pytest.raises(AmbiguousText) as failed:
        view.replace("a", "one", "x")
    assert failed.value.lines == [1, 2]
    assert view.read("a").content == "one\none\n"


def test_a_text_that_occurs_very_often_is_refused_with_a_short_list_at_once(files):
    view = files(PUBLIC)
    view.write("a", "\n" * MAX_BYTES)
    started = time.process_time()
    with pytest.raises(AmbiguousText) as failed:
        view.replace("a", "\n", "")
    assert failed.value.lines == list(range(1, 101))
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("content", "line", "text", "after"),
    [
        ("a\nb\n", 0, "x", "x\na\nb\n"),
        ("a\nb\n", 1, "x\n", "a\nx\nb\n"),
        ("a\nb", 2, "x", "a\nb\nx\n"),
        ("", 0, "x\ny", "x\ny\n"),
    ],
)
def test_lines_are_inserted_below_a_line(files, content, line, text, after):
    view = files(PUBLIC)
    view.write("a", content)
    assert view.insert("a", line, text).content == after


def test_an_edit_keeps_tags_and_expiry(opened):
    session, soon = opened(PUBLIC), datetime.now(UTC) + timedelta(hours=1)
    session.save_memory("muniment:files/a", "one", tags=["tea"], expire_time=soon)
    low, high = FileView(session), FileView(opened(CONFIDENTIAL))

    edited = [low.replace("a", "one", "")[0], low.insert("a", 0, "two"), high.replace("a", "two", "three")[0]]

    assert [(file.content, file.tags, file.expire_time) for file in edited] == [
        ("", ("tea",), soon),
        ("two\n", ("tea",), soon),
        ("three\n", ("tea",), soon),
    ]
    assert low.write("a", "four").expire_time is None


@pytest.mark.parametrize("line", [-1, 3])
def test_a_line_to_insert_below_must_exist(files, line):
    view = files(PUBLIC)
    view.write("a", "a\nb\n")
    with pytest.raises(NoSuchLine) as failed:
        view.insert("a", line, "x")
    assert failed.value.last == 2


def test_lines_are_read_by_range(files):
    file = files(PUBLIC).write("a", "1\n2\n3\n")
    assert file.lines() == ["1", "2", "3", ""]
    assert file.lines(2) == ["2", "3", ""]
    assert file.lines(2, 3) == ["2", "3"]
    assert file.lines(3, 2) == file.lines(9) == file.lines(1, 0) == []


def test_a_directory_is_what_is_below_it(files):
    view = files(PUBLIC)
    for path in ("a/b/c.md", "a/d.md", "a-b/e.md", "f.md", "a.md"):
        view.write(path, "12345")

    assert [(each.path, each.is_directory, each.size) for each in view.ls()] == [
        ("a", True, 10),
        ("a-b", True, 5),
        ("a.md", False, 5),
        ("f.md", False, 5),
    ]
    assert [each.path for each in view.ls("/a/", depth=2)] == ["a/b", "a/b/c.md", "a/d.md"]
    view.delete("a")
    assert [each.path for each in view.ls()] == ["a-b", "a.md", "f.md"]
    with pytest.raises(NoSuchFile):
        view.ls("a")
    assert view.exists("/")


def test_a_name_can_be_both_a_file_and_a_directory(files):
    """Levels do not see each other, so neither can be refused."""
    low, high = files(PUBLIC), files(CONFIDENTIAL)
    high.write("a", "file")
    low.write("a/b", "below")

    assert [(each.path, each.is_directory) for each in high.ls()] == [("a", False), ("a", True)]
    assert high.read("a").content == "file"


def test_more_files_than_a_page_holds(opened):
    session = opened(PUBLIC)
    for start in range(0, 300, 100):
        session.save_memories(muniment.NewMemory(f"muniment:files/{each}", "x") for each in range(start, start + 100))
    assert len(FileView(session).walk()) == 300


def test_other_memories_are_neither_seen_nor_changed(opened):
    session = opened(PUBLIC)
    session.save_memory("muniment:files", "x")
    session.save_memory("muniment:filesystem", "x")
    session.save_memory("files/plan", "x")
    session.save_memory("plan", "x")
    view = FileView(session)

    assert view.walk() == []
    view.write("plan", "y")
    view.delete("plan")
    assert session.get_memory("plan").content == "x"
    other = FileView(session, root="team")
    other.write("plan", "z")
    assert (session.get_memory("muniment:files:team/plan").content, view.walk()) == ("z", [])


@pytest.mark.parametrize("root", ["team/notes", ""])
def test_a_root_is_not_below_another_one_and_has_a_name(opened, root):
    with pytest.raises(ValueError, match="a name without a slash"):
        FileView(opened(PUBLIC), root=root)


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/..", "", "/", "a/.."])
def test_paths_stay_below_the_root(files, path):
    view = files(PUBLIC)
    for act in (lambda: view.write(path, "x"), lambda: view.create(path, "x"), lambda: view.delete(path)):
        with pytest.raises(InvalidPath):
            act()


@pytest.mark.parametrize("path", ["x" * 251, "a ", "a\nb", "a\u202eb", "\ue000\udfff", "a\0"])
def test_impossible_names_are_refused(files, path):
    view = files(PUBLIC)
    for act in (lambda: view.read(path), lambda: view.write(path, "x"), lambda: view.ls(path)):
        with pytest.raises((InvalidPath, NoSuchFile)):
            act()


def test_paths_are_compared_in_nfc(files):
    view = files(PUBLIC)
    view.write("cafe\u0301/./menu//today", "x")
    assert view.glob("**") == ["caf\u00e9/menu/today"]
    assert view.read("caf\u00e9/menu/today").content == "x"
    assert [each.path for each in view.ls("cafe\u0301")] == ["caf\u00e9/menu"]
    assert view.rename("cafe\u0301", "tea") == []
    assert view.glob("**") == ["tea/menu/today"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.md", ["a.md"]),
        ("**/*.md", ["a.md", "b/c.md", "b/d/e.md"]),
        ("/b/**", ["b/c.md", "b/d/e.md", "b/f.txt"]),
        ("b/*", ["b/c.md", "b/f.txt"]),
        ("?.md", ["a.md"]),
        ("b?c.md", []),
        ("[a].md", []),
        ("**d**", ["a.md", "b/c.md", "b/d/e.md"]),
    ],
)
def test_patterns(files, pattern, found):
    view = files(PUBLIC)
    for path in ("a.md", "b/c.md", "b/d/e.md", "b/f.txt"):
        view.write(path, "x")
    assert view.glob(pattern) == found


def test_no_pattern_takes_long():
    assert not matches("*a" * 5_000 + "b", "a" * 250)
    assert not matches("**/*a" * 1_000 + "b", "a/" * 125)
    started = time.process_time()
    assert matches("*?" * 200, "a" * 1_000)
    assert time.process_time() - started < 0.5


def test_patterns_match_as_regular_expressions_would():
    chance = random.Random(7)
    written = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    for _ in range(3_000):
        parts = [chance.choice([*written, "a", "b", "/"]) for _ in range(chance.randrange(6))]
        pattern = "".join(parts)
        regex = "".join(written.get(part, part) for part in re.findall(r"\*\*/|\*\*|.", pattern.lstrip("/")))
        path = "".join(chance.choice("ab/") for _ in range(chance.randrange(8)))
        assert matches(pattern, path) == bool(re.fullmatch(regex, path)), (pattern, path)


def test_a_text_is_found_in_lines(files):
    view = files(PUBLIC)
    view.write("a.md", "tea\n.*\n")
    view.write("b.txt", "no\ntea time")

    assert [(each.path, each.line, each.text) for each in view.grep("tea")] == [
        ("a.md", 1, "tea"),
        ("b.txt", 2, "tea time"),
    ]
    assert [each.path for each in view.grep(".*")] == ["a.md"]
    assert [each.path for each in view.grep("tea", "*.txt")] == ["b.txt"]


def test_nothing_shows_content_or_paths_when_it_is_printed(files):
    view = files(PUBLIC)
    file = view.write("secret.md", "secret")
    shown = repr([file, view.ls(), view.grep("secret"), view])
    assert "secret" not in shown


def test_a_closed_session_is_no_missing_file(opened):
    session = opened(PUBLIC)
    session.close()
    with pytest.raises(muniment.Unauthenticated):
        FileView(session).read("a")


def test_normal_paths():
    assert normalized("/a//./b/../c/") == "a/c"
    assert normalized("/") == normalized("") == normalized("a/..") == ""


def test_a_pattern_is_no_longer_than_a_path(files):
    view = files(PUBLIC)
    view.write("a", "x")
    pattern = "**/" * 85 + "a"
    assert view.glob(pattern) == [match.path for match in view.grep("x", pattern)] == ["a"]
    for look in (view.glob, lambda too_long: view.grep("x", too_long)):
        with pytest.raises(InvalidPath, match=r"^The pattern has 257 characters\. It may have 256\.$"):
            look(f"{pattern}?")


@pytest.mark.parametrize(
    ("pattern", "directory"),
    [
        ("a/b/*.md", "muniment:files/a/b/"),
        ("/a/b?/c", "muniment:files/a/"),
        ("a/b", "muniment:files/a/"),
        ("*/b", "muniment:files/"),
        ("b", "muniment:files/"),
    ],
)
def test_only_the_directory_that_a_pattern_names_is_read(opened, monkeypatch, pattern, directory):
    session, read = opened(PUBLIC), []
    listed = session.list_memories

    def recorded(**arguments):
        read.append(arguments["key_prefix"])
        return listed(**arguments)

    monkeypatch.setattr(session, "list_memories", recorded)
    FileView(session).glob(pattern)
    FileView(session).grep("x", pattern)
    assert read == [directory] * 2
