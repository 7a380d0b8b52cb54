"""The words of a file: the names that it makes or uses, and the prose of its comments, docstrings and documents.

What is retired, and what the schema still carries, is read from the tables of service/docs/glossary.md.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "service" / "docs" / "glossary.md"

_FOLDERS = ("service", "clients/python", "tests")
_KINDS = frozenset({".py", ".sql", ".md", ".yaml", ".toml"})
_GENERATED = ("clients/python/src/muniment/v1/",)
_UNTOUCHED = re.compile(r"/migrations/[^/]*\.sql$|/schema\.sql$")
"""What was applied to databases is not edited, and what is generated from it says the same."""

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WORD = re.compile(r"[A-Za-z][A-Za-z_]*")
_CODE = re.compile(r"`[^`\n]+`")
_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_SQL_TOKEN = re.compile(r"--[^\n]*|'(?:[^']|'')*'|%\(\w+\)s|[A-Za-z_]\w*|[^\s\w]")
_SQL_NAME = re.compile(r"--\s*name:\s*(\w+)")


class Finding(NamedTuple):
    """One use of a retired word."""

    line: int
    word: str
    where: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.word!r} in {self.where!r}"


@dataclass(frozen=True)
class Glossary:
    """The tables of the glossary that the lint goes by."""

    terms: frozenset[str]
    carried: frozenset[str]
    """Names of the schema."""
    retired: dict[str, str]
    """Each with what is said instead."""
    fine: tuple[str, ...]
    """Ordinary English that holds a retired word."""

    def in_name(self, name: str) -> str | None:
        """The retired word in *name*."""
        if name in self.retired:
            return name
        return next((word for part in _PART.findall(name) if (word := self._retired(part.lower()))), None)

    def in_prose(self, text: str) -> Iterator[tuple[int, str, str]]:
        """The retired words in *text*: the offset of each, the word, and how it stands there."""
        text = _CODE.sub(self._code, text)
        for phrase in self.fine:
            text = re.sub(re.escape(phrase).replace(r"\ ", r"\s+"), lambda m: _blank(m.group()), text, flags=re.I)
        for match in _WORD.finditer(text):
            word = self.in_name(match.group()) if "_" in match.group() else self._in_word(match.group())
            if word:
                yield match.start(), word, match.group()

    def _code(self, match: re.Match[str]) -> str:
        """Code in prose: names of the schema are fine in it, whichever schema they are qualified with."""
        names = _WORD.findall(match.group())
        return _blank(match.group()) if any(name in self.carried for name in names) else match.group()

    def _in_word(self, word: str) -> str | None:
        if word in self.retired:
            return word
        return self._retired(word) if word.islower() else self.in_name(word)

    def _retired(self, word: str) -> str | None:
        """*word*, its singular, or what it is the participle of."""
        forms = (word, word.removesuffix("s"), word.removesuffix("d"), re.sub(r"ves$", "f", word))
        return next((form for form in forms if form in self.retired), None)


@cache
def glossary() -> Glossary:
    """What service/docs/glossary.md says."""
    text = GLOSSARY.read_text(encoding="utf-8")
    words, _, rest = text.partition("\n## Names that the schema carries\n")
    carried, _, retired = rest.partition("\n## Retired words\n")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in _rows(retired)]
    return Glossary(
        terms=frozenset(re.findall(r"^\| \*\*(.+?)\*\* ", words, re.MULTILINE)),
        carried=frozenset(name for line in _rows(carried) for name in re.findall(r"`([\w.]+)`", line.split("|")[1])),
        retired={word: instead for word, instead, _ in rows},
        fine=tuple(phrase for *_, fine in rows for phrase in fine.split(", ") if phrase),
    )


def files() -> list[Path]:
    """Every file whose words are ours to choose."""
    below = (path for folder in _FOLDERS for path in (ROOT / folder).rglob("*"))
    beside = [*ROOT.glob("*.md"), *ROOT.glob("proto/*.md"), *ROOT.glob("clients/*.md"), ROOT / "pyproject.toml"]
    return sorted({path for path in (*below, *beside) if _is_ours(path)})


def _is_ours(path: Path) -> bool:
    name = path.relative_to(ROOT).as_posix()
    return (
        path.suffix in _KINDS
        and path.is_file()
        and path != GLOSSARY
        and "/." not in f"/{name}"
        and "node_modules" not in name
        and not name.startswith(_GENERATED)
        and not _UNTOUCHED.search(name)
    )


def findings(path: Path) -> list[Finding]:
    """Every retired word in the name and the text of a file."""
    name = path.relative_to(ROOT).as_posix()
    in_path = [Finding(0, word, name) for word in map(glossary().in_name, path.stem.split(".")) if word]
    return in_path + sorted(set(in_text(path.suffix, path.read_text(encoding="utf-8"))))


def in_text(kind: str, text: str) -> Iterator[Finding]:
    """Every retired word in a text of a kind: `.py`, `.sql`, `.md`, or one with comments after `#`."""
    if kind == ".py":
        yield from _in_python(text)
    elif kind == ".sql":
        yield from _in_sql(text)
    elif kind == ".md":
        yield from _in_prose(text, 1)
    else:
        for number, line in enumerate(text.splitlines(), 1):
            yield from _in_prose(line.partition("#")[2], number)


def _in_python(text: str) -> Iterator[Finding]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield from _in_name(token.string, token.start[0])
        elif token.type == tokenize.COMMENT:
            yield from _in_prose(token.string, token.start[0])
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from _in_prose(node.value.value, node.lineno)


def _in_sql(text: str) -> Iterator[Finding]:
    """A name of the schema is fine where it is used, and not as one that a query makes."""
    tokens = [(match.group(), text.count("\n", 0, match.start()) + 1) for match in _SQL_TOKEN.finditer(text)]
    code = [(token, line) for token, line in tokens if not token.startswith(("--", "'"))]
    for index, (token, line) in enumerate(code):
        following = [after.upper() for after, _ in code[index + 1 : index + 3]]
        before = code[index - 1][0].upper() if index else ""
        makes = before == "AS" or following in (["AS", "("], ["AS", "MATERIALIZED"])
        name = token[2:-2] if token.startswith("%(") else token
        if makes and name in glossary().carried:
            yield Finding(line, name, f"{name}, which this query makes")
        elif name not in glossary().carried:
            yield from _in_name(name, line)
    for token, line in tokens:
        named = _SQL_NAME.match(token)
        if named:
            yield from _in_name(named.group(1), line) if named.group(1) not in glossary().carried else ()
        elif token.startswith("--"):
            yield from _in_prose(token, line)


def _in_name(name: str, line: int) -> Iterator[Finding]:
    word = glossary().in_name(name)
    if word:
        yield Finding(line, word, name)


def _in_prose(text: str, line: int) -> Iterator[Finding]:
    for offset, word, where in glossary().in_prose(text):
        yield Finding(line + text.count("\n", 0, offset), word, where)


def _rows(table: str) -> Iterator[str]:
    """The rows of a table, without its head."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    yield from lines[2:]


def _blank(text: str) -> str:
    return re.sub(r"\S", " ", text)
