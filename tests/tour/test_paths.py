"""What the READMEs name is there."""

from __future__ import annotations

import re
from itertools import chain

import pytest

from tests.tour.readme import ROOT

READMES = [ROOT / "README.md", *sorted(ROOT.glob("*/README.md")), ROOT / "clients" / "python" / "README.md"]
_LINK = re.compile(r"\]\((?!https://)([^)#]+)(?:#[^)]*)?\)")
_TEST = re.compile(r"\btests/[\w/.]*\w")
_SOURCE = re.compile(r"`((?:store|rpc|app|cli|domain)/[\w/.]+)`")


@pytest.mark.parametrize("readme", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_in_it_exists(readme):
    text = readme.read_text(encoding="utf-8")
    named = chain(
        (readme.parent / path for path in _LINK.findall(text)),
        (ROOT / path for path in _TEST.findall(_LINK.sub("", text))),
        (ROOT / "service" / "muniment_server" / path for path in _SOURCE.findall(text)),
    )
    assert [str(path) for path in named if not path.exists()] == []


def test_every_folder_at_the_top_says_what_it_is():
    folders = [
        path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".") and path.name != "dist"
    ]
    assert [folder.name for folder in folders if not (folder / "README.md").exists()] == []
