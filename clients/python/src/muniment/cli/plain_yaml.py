"""YAML as people write it by hand: names, text, true and false, whole numbers, lists.

Aliases, merge keys, tags and directives are refused by name, for a few lines of them can stand for gigabytes. What is
wrong is told by its place, never by its value.
"""

from __future__ import annotations

import re
from typing import NoReturn

import yaml
from yaml.reader import ReaderError

from muniment.cli.failures import Failure

OTHER = object()
"""A value of a kind that is not read, such as a date: it is neither text nor anything else."""
_DEEPEST = 8
"""Collections in one another."""
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_TRUE = {"true", "yes", "on"}


class _Loader(yaml.SafeLoader):
    """Composes what is written out, and not too deep. It is never asked to construct anything."""

    _depth = 0

    def fetch_alias(self) -> NoReturn:
        raise _refused(self.get_mark(), "aliases (`*`) are not taken: write it out")

    def fetch_anchor(self) -> NoReturn:
        raise _refused(self.get_mark(), "anchors (`&`) are not taken: write it out where it belongs")

    def fetch_tag(self) -> NoReturn:
        raise _refused(self.get_mark(), "tags (`!`) are not taken: for text, put it in quotes")

    def fetch_directive(self) -> NoReturn:
        raise _refused(self.get_mark(), "directives (`%`) are not taken: leave them out")

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if parent is not None and self._depth == _DEEPEST:
            raise _refused(parent.start_mark, "this is nested too deep")
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def loaded(document: str) -> object:
    """What *document* says. Raises Failure."""
    try:
        loader = _Loader(document)
    except ReaderError as error:
        line = document.count("\n", 0, error.position) + 1
        raise Failure(f"line {line} holds characters that YAML does not know", "the file is to be YAML") from None
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _refused(error.problem_mark or loader.get_mark(), str(error.problem)) from None
    except (ValueError, OverflowError):  # an escape such as "\UFFFFFFFF"
        raise _refused(loader.get_mark(), "there is no such character") from None
    return None if node is None else _value(node)


def _value(node: yaml.Node) -> object:
    match node:
        case yaml.MappingNode():
            return _mapping(node)
        case yaml.SequenceNode():
            return [_value(each) for each in node.value]
    match node.tag.rpartition(":")[2]:
        case "null":
            return None
        case "bool":
            return node.value.lower() in _TRUE
        case "int" if _WHOLE.fullmatch(node.value):
            return int(node.value)
        case "str":
            return _text(node)
    return OTHER


def _mapping(node: yaml.MappingNode) -> dict[str, object]:
    made: dict[str, object] = {}
    for key, value in node.value:
        name = _name(key)
        if name in made:
            raise _refused(key.start_mark, f"{name!r} stands there twice")
        made[name] = _value(value)
    return made


def _name(key: yaml.Node) -> str:
    if key.tag.endswith(":merge"):
        raise _refused(key.start_mark, "merge keys (`<<`) are not taken: write it out")
    if not key.tag.endswith(":str"):
        raise _refused(key.start_mark, "a name must be text: put it in quotes")
    return _text(key)


def _text(node: yaml.Node) -> str:
    text = str(node.value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _refused(node.start_mark, "holds half of a surrogate pair, which is no text") from None
    return text


def _refused(mark: yaml.Mark, why: str) -> Failure:
    return Failure(f"line {mark.line + 1}, column {mark.column + 1}: {why}", "the file is to be YAML, plainly written")
