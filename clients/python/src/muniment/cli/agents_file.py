"""The file of `muniment agent apply`: agents and their settings, in YAML.

The whole file is checked first: an error names the place of an unknown or repeated name, or of a value of the wrong
type. The server checks the values.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import click
import yaml

from muniment import Classification
from muniment.cli.failures import Failure
from muniment.cli.parameters import DURATION

_SETTINGS: dict[str, type] = {
    "display_name": str,
    "language": str,
    "ceiling": Classification,
    "known_from": Classification,
    "memory_enabled": bool,
    "user_profile_enabled": bool,
    "memory_char_limit": int,
    "user_char_limit": int,
    "calls_per_second": int,
    "max_items": int,
    "max_bytes": int,
    "max_revisions": int,
    "memory_ttl": timedelta,
    "passage_ttl": timedelta,
}
_TYPES: dict[type, str] = {
    str: "text: put it in quotes",
    bool: "true or false",
    int: "a whole number",
    timedelta: "a length of time, such as 90d",
    Classification: "public, internal, confidential or restricted",
}


@dataclass(frozen=True, slots=True)
class Declared:
    """One agent as the file declares it."""

    agent_id: str
    settings: Mapping[str, Any]
    """The settings that are stated."""
    blocks: Mapping[str, str] | None
    """The initial blocks, by label. None if they are not stated."""


class _Loader(yaml.SafeLoader):
    """Rejects a repeated name in a mapping, of which YAML would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in names:
                    raise yaml.MarkedYAMLError(problem=f"{key.value!r} is repeated", problem_mark=key.start_mark)
                names.add(key.value)
        return super().construct_mapping(node, deep)


def read(document: str) -> list[Declared]:
    """The agents that the file declares, in its order. Raises Failure."""
    top = _mapping(_loaded(document), "the file")
    _refuse_unknown(top, ["agents"], "the file")
    agents = _mapping(top.get("agents"), "agents")
    return [_declared(agent_id, wanted) for agent_id, wanted in agents.items()]


def _loaded(document: str) -> object:
    try:
        return yaml.load(document, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise _wrong(f"{where}{error.problem}") from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):  # such as a date that does not exist
        raise _wrong("the file contains an invalid value, or is nested too deeply") from None


def _declared(agent_id: str, wanted: object) -> Declared:
    where = f"agents.{agent_id}"
    stated = _mapping({} if wanted is None else wanted, where)
    _refuse_unknown(stated, [*_SETTINGS, "blocks"], where)
    settings = {
        name: _of_type(kind, stated[name], f"{where}.{name}") for name, kind in _SETTINGS.items() if name in stated
    }
    return Declared(agent_id, settings, _blocks(stated["blocks"], f"{where}.blocks") if "blocks" in stated else None)


def _blocks(wanted: object, where: str) -> dict[str, str]:
    blocks = _mapping(wanted, where)
    if not blocks:
        raise _wrong(f"{where} must have a block; without it, an agent has three empty blocks")
    return {
        label: _of_type(str, "" if content is None else content, f"{where}.{label}")
        for label, content in blocks.items()
    }


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _wrong(f"{where} must be a mapping: names, each with a colon")
    if not all(isinstance(name, str) for name in value):
        raise _wrong(f"{where}: a name must be text: put it in quotes")
    return value


def _of_type(kind: type, value: Any, where: str) -> Any:
    """*value* if it has exactly that type: True is not a number. A level is given by its name."""
    if kind is Classification and isinstance(value, str) and value.upper() in Classification.__members__:
        return Classification[value.upper()]
    if kind is timedelta and isinstance(value, str):
        with suppress(click.BadParameter):
            return DURATION.convert(value, None, None)
    if type(value) is not kind:
        raise _wrong(f"{where} must be {_TYPES[kind]}")
    return value


def _refuse_unknown(stated: Iterable[str], known: list[str], where: str) -> None:
    unknown = [name for name in stated if name not in known]
    if unknown:
        raise _wrong(f"{where} has {unknown[0]!r}; expected: {', '.join(known)}")


def _wrong(message: str) -> Failure:
    return Failure(message, "see: muniment agent apply --help")
