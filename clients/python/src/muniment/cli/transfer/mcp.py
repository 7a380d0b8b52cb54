"""Reads the JSON Lines of the MCP `server-memory`, or what its tool `read_graph` returns: entities and relations.

An entity becomes a memory. Its name is the key and its type a tag. The content has its observations, one per line, and
then its relations, such as `works_at: Acme`. The content of an entity with neither is its name, since no memory is
empty. Several lines about one entity are combined: servers that write at the same time produce such files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from muniment import Classification
from muniment.cli.transfer.fields import Fields, loaded, omitted
from muniment.cli.transfer.items import MemoryItem, Reading, Unreadable, foreign
from muniment.cli.transfer.lines import first_line, numbered

_TYPES = ("entity", "relation")  # a tuple: the value of a file that is looked up may be unhashable


@dataclass(slots=True)
class _Entity:
    """What the lines say about one entity, in order, without repetitions."""

    where: str
    types: dict[str, None] = field(default_factory=dict)
    observations: dict[str, None] = field(default_factory=dict)
    relations: dict[str, None] = field(default_factory=dict)


def is_line(line: bytes) -> bool:
    """Whether a file that begins with *line* is of this format."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("type") in _TYPES


def is_document(value: object) -> bool:
    """Whether a JSON value is a whole graph."""
    match value:
        case {"entities": list(), "relations": list()}:
            return True
    return False


def read(source: bytes, level: Classification) -> Reading:
    """A memory for each entity. Raises Unreadable."""
    entities: dict[str, _Entity] = {}
    found = _in_document(source)
    if found is None:
        found = list(_in_lines(source))
    for kind, fields in found:
        _take(kind, fields, entities)
    return Reading(foreign(_memories(entities, level)), omitted(fields for _, fields in found))


def _in_lines(source: bytes) -> Iterator[tuple[str, Fields]]:
    for where, line in numbered(source):
        fields = Fields(where, loaded(where, line))
        yield fields.text("type"), fields


def _in_document(source: bytes) -> list[tuple[str, Fields]] | None:
    """The kind and fields of each object of a graph in one document, or None if *source* is no such document."""
    document = None if is_line(first_line(source)) else _document(source)
    if not is_document(document):
        return None
    graph = Fields("the file", document)
    return [
        (kind, Fields(f"{name}[{index}]", each))
        for kind, name in (("entity", "entities"), ("relation", "relations"))
        for index, each in enumerate(graph.list(name))
    ]


def _document(source: bytes) -> object:
    try:
        return loaded("the file", source)
    except Unreadable:
        return None


def _take(kind: str, fields: Fields, entities: dict[str, _Entity]) -> None:
    match kind:
        case "entity":
            entity = entities.setdefault(fields.text("name"), _Entity(fields.where))
            entity.types[fields.text("entityType", default="")] = None
            entity.observations.update(dict.fromkeys(fields.texts("observations")))
        case "relation":
            entity = entities.setdefault(fields.text("from"), _Entity(fields.where))
            entity.relations[f"{fields.text('relationType')}: {fields.text('to')}"] = None
        case _:
            raise Unreadable(fields.where, "type must be entity or relation")


def _memories(entities: dict[str, _Entity], level: Classification) -> Iterator[MemoryItem]:
    for name, entity in entities.items():
        said = [text for text in (*entity.observations, *entity.relations) if text]
        tags = tuple(kind for kind in entity.types if kind.strip())
        yield MemoryItem(entity.where, level, key=name, content="\n".join(said) or name, tags=tags)
