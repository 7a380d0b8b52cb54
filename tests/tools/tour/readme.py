"""The README and the tour as sequences of things to run and what they show.

A fenced block of `sh` or `python` is run; a block of `text` or `json` right after it is what it shows. A second
word after the language (`sh grpcurl`) says for which way of trying things out the block is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"
TOUR = ROOT / "service" / "docs" / "tour.md"
RECIPES = ROOT / "service" / "docs" / "model-your-case.md"
_CODE_BLOCK = re.compile(r"^```(?P<language>\w+)(?: (?P<way>\w+))?\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_RUN = {"sh", "python"}

_NAMES_OF_THE_DAY = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z"), "TIME"),
    (re.compile(r"\bmun_[hs]_\d+_[\w-]{43}_[0-9a-f]{8}"), "TOKEN"),
    (re.compile(r"(?<![\w-])[\w-]{21}[AQgw]AAA[\w-]{2}(?![\w-])"), "ETAG"),
    (re.compile(r"\b127\.0\.0\.1:\d+\b"), "ADDRESS"),
    (re.compile(r"^only words were compared.*\n", re.MULTILINE), ""),  # said of what was stored a moment ago
)


@dataclass(frozen=True, slots=True)
class Step:
    """One block to run, and what the README shows of it."""

    language: str
    way: str
    text: str
    shown: str | None
    """None: the README does not say, and every command in it must succeed."""

    @property
    def fails(self) -> bool:
        """Whether what is shown is an error."""
        return self.shown is not None and re.search(r"^ERROR:|\"code\":", self.shown) is not None


def section(title: str, text: str) -> str:
    """What stands under a heading, down to the next one of its rank."""
    _, _, rest = text.partition(f"\n## {title}\n")
    assert rest, title
    return rest.partition("\n## ")[0]


def steps(text: str, *ways: str) -> Iterator[Step]:
    """What is to be run in *text* in one way, or several."""
    wanted = {"", *ways}
    blocks = [match.groupdict(default="") for match in _CODE_BLOCK.finditer(text)]
    blocks = [block for block in blocks if block["way"] in wanted]
    for number, block in enumerate(blocks):
        if block["language"] in _RUN:
            after = blocks[number + 1] if number + 1 < len(blocks) else block
            shown = None if after["language"] in _RUN else after["text"]
            yield Step(block["language"], block["way"], block["text"], shown)


def normal(shown: str) -> object:
    """What is shown, without what differs from one day to the next.

    Ids, times, tokens, etags and addresses become their names. JSON is compared as JSON, since no two
    tools space it alike; of other text, blanks at the ends of lines do not count, and several in a row are one.
    """
    for pattern, name in _NAMES_OF_THE_DAY:
        shown = pattern.sub(name, shown)
    try:
        return json.loads(shown)
    except ValueError:
        return [re.sub(r"\s+", " ", line).strip() for line in shown.strip().splitlines()]
