"""What the READMEs and the documents name is there."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import click

from tests.support.each import for_each
from tests.support.options import COMMANDS, option_names
from tests.tools.tour.readme import ROOT

SERVER = ROOT / "service" / "muniment_server"
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("[!.]*/README.md")),
    *sorted((ROOT / "service" / "docs").rglob("*.md")),
    *sorted(SERVER.rglob("README.md")),
    ROOT / "clients" / "python" / "README.md",
]
_LINK = re.compile(r"\]\((?!https://|mailto:)([^)#]*)(?:#([^)]*))?\)")
_TEST = re.compile(r"\btests/[\w/.]*\w")
_FOLDERS = "|".join(path.name for path in SERVER.iterdir() if path.is_dir() and not path.name.startswith("_"))
_COMMAND = re.compile(r"`(muniment(?: [a-z][a-z-]*)+|make)(?: ([^`]*))?`")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
_SOURCE = re.compile(rf"`((?:{_FOLDERS}|store|rpc|app)/[\w/.]*)`")
"""Folders of the server, and those that it once had."""


@for_each("document", DOCUMENTS)
def test_every_path_in_it_exists(document):
    text = document.read_text(encoding="utf-8")
    named = chain(
        (document.parent / path for path, _ in _LINK.findall(text)),
        (ROOT / path for path in _TEST.findall(_LINK.sub("", text))),
        (SERVER / path for path in _SOURCE.findall(text)),
    )
    assert [str(path) for path in named if not path.exists()] == []


@for_each("document", DOCUMENTS)
def test_every_heading_that_it_links_to_exists(document):
    links = _LINK.findall(document.read_text(encoding="utf-8"))
    lost = [
        (path, anchor) for path, anchor in links if anchor and anchor not in _anchors(document.parent / path, document)
    ]
    assert lost == []


@for_each("document", DOCUMENTS)
def test_every_command_that_it_names_exists(document):
    """In a line of text, not in what is run: the targets of make, and the commands of `muniment` with their options."""
    unknown = [
        command
        for command, rest in _COMMAND.findall(document.read_text(encoding="utf-8"))
        if not (_makes(rest) if command == "make" else _has(command, rest))
    ]
    assert unknown == []


def _makes(rest: str) -> bool:
    return all(word in _TARGETS for word in re.findall(r"^[a-z][a-z-]*", rest))


def _has(command: str, rest: str) -> bool:
    """Whether *command*, whose last words may be values, is one, and has the options in *rest*."""
    words = command.split()
    name = max((name for name in COMMANDS if words[: len(name.split())] == name.split()), key=len)
    values, found = len(words) > len(name.split()), COMMANDS[name]
    return not (values and isinstance(found, click.Group)) and set(_OPTION.findall(rest)) <= option_names(found)


def _anchors(target: Path, document: Path) -> set[str]:
    """The anchors that GitHub makes of headings."""
    text = (document if target.is_dir() else target).read_text(encoding="utf-8")
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_folder_at_the_top_says_what_it_is():
    folders = [
        path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".") and path.name != "dist"
    ]
    assert [folder.name for folder in folders if not (folder / "README.md").exists()] == []
