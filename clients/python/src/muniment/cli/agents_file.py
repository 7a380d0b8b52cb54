"""The file of `muniment agent apply`: agents and their settings, in YAML.

Understood whole or not at all: a word that is not known, or stands there twice, is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from muniment.cli import plain_yaml
from muniment.cli.failures import Failure
from muniment_server.domain import text
from muniment_server.domain.blocks import BLOCK_BYTES
from muniment_server.domain.errors import InvalidArgument

LARGEST_BUDGET = 1_000_000
"""Code points of one tier of notes."""

_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_LANGUAGE = re.compile(r"([A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,8})?")
_DISPLAY_NAME_LIMIT = 256
_MOST_BLOCKS = 64
"""All as the contract says it."""
_KINDS: dict[str, type] = {
    "display_name": str,
    "language": str,
    "memory_enabled": bool,
    "user_profile_enabled": bool,
    "memory_char_limit": int,
    "user_char_limit": int,
}
_SPOKEN: dict[type, str] = {
    str: "text: put it in quotes",
    bool: "true or false",
    int: "a whole number",
}


@dataclass(frozen=True, slots=True)
class Declared:
    """One agent as the file wants it."""

    agent_id: str
    settings: Mapping[str, Any]
    """Those that are stated."""
    blocks: Mapping[str, str] | None
    """What it starts with, by label. None: not stated."""


def read(document: str) -> list[Declared]:
    """The agents that the file declares, in its order. Raises Failure."""
    top = _mapping(plain_yaml.loaded(document), "the file")
    _refuse_unknown(top, ["agents"], "the file")
    agents = _mapping(top.get("agents"), "agents")
    return [_declared(agent_id, wanted) for agent_id, wanted in agents.items()]


def _declared(agent_id: str, wanted: object) -> Declared:
    where = f"agents.{agent_id}"
    if not _AGENT_ID.fullmatch(agent_id):
        raise _wrong(
            f"{where}: an id is letters, digits, `_`, `.`, `:`, `-`, up to 128, beginning with a letter or digit"
        )
    stated = _mapping({} if wanted is None else wanted, where)
    _refuse_unknown(stated, [*_KINDS, "blocks"], where)
    settings = {name: _setting(name, stated[name], where) for name in _KINDS if name in stated}
    return Declared(agent_id, settings, _blocks(stated["blocks"], where) if "blocks" in stated else None)


def _setting(name: str, value: object, where: str) -> object:
    checked = _of_kind(_KINDS[name], value, f"{where}.{name}")
    if _KINDS[name] is int and not 0 <= int(checked) <= LARGEST_BUDGET:
        raise _wrong(f"{where}.{name} must be from 0 to {LARGEST_BUDGET:,}")
    if name == "language" and not _LANGUAGE.fullmatch(checked):
        raise _wrong(f"{where}.{name} must be a tag of BCP 47, such as pt-BR")
    if name == "display_name":
        with _saying(where):
            text.plain(checked, field=name)
        if len(checked) > _DISPLAY_NAME_LIMIT:
            raise _wrong(f"{where}.{name} must be at most {_DISPLAY_NAME_LIMIT} code points")
    return checked


def _blocks(wanted: object, where: str) -> dict[str, str]:
    blocks = {
        label: _of_kind(str, "" if content is None else content, f"{where}.blocks.{label}")
        for label, content in _mapping(wanted, f"{where}.blocks").items()
    }
    if not blocks:
        raise _wrong(f"{where}.blocks must hold a block; without it an agent starts with three empty ones")
    if len(blocks) > _MOST_BLOCKS:
        raise _wrong(f"{where}.blocks has {len(blocks):,} blocks, and {_MOST_BLOCKS} are the most")
    kept = {_checked_label(label, content, where) for label, content in blocks.items()}
    if len(kept) < len(blocks):
        raise _wrong(f"{where}.blocks has a label twice, written in two ways")
    return blocks


def _checked_label(label: str, content: str, where: str) -> str:
    """*label* as it is kept."""
    with _saying(f"{where}.blocks.{label}"):
        kept = text.label(label)
        text.content(content)
    if len(content.encode()) > BLOCK_BYTES:
        raise _wrong(f"{where}.blocks.{label} is longer than {BLOCK_BYTES:,} bytes")
    return kept


@contextmanager
def _saying(where: str) -> Iterator[None]:
    """Hold what is within against the server's rules, so that it refuses nothing when others are changed already."""
    try:
        yield
    except InvalidArgument as error:
        raise _wrong(f"{where}: {error.violations[0].field} {error.violations[0].rule}") from None


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _wrong(f"{where} must hold names, each with a colon")
    return value


def _of_kind(kind: type, value: Any, where: str) -> Any:
    """*value*, if it is of *kind*: neither is true a number, nor a number text."""
    if type(value) is not kind:
        raise _wrong(f"{where} must be {_SPOKEN[kind]}")
    return value


def _refuse_unknown(stated: Iterable[str], known: list[str], where: str) -> None:
    unknown = [name for name in stated if name not in known]
    if unknown:
        raise _wrong(f"{where} has {unknown[0]!r}; known are {', '.join(known)}")


def _wrong(message: str) -> Failure:
    return Failure(message, "see: muniment agent apply --help")
