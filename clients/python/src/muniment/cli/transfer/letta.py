"""Reads a Letta agent file (`.af`): blocks and, if there are any, archival passages.

There are three forms. The current one has `agents`, each with its `block_ids`, and `blocks` of {id, label, value}. The
first one has a single agent with its blocks in `core_memory`. Either may also be a JSON string in JSON. Letta's export
does not contain passages yet. They are read from `passages` (or `archival_passages`, `archival_memory`) of the file or
the agent, and from the list that Letta's API returns for an agent's archival memory. If a file has
several agents, a passage outside of them is imported only if its `agent_id` is that of the chosen one.

In Letta, a block's label may be a path, or have spaces. Here `/` becomes `.`, a leading `/` is dropped, and what else
no label can have becomes `_`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from muniment import Classification
from muniment.cli.transfer.fields import Fields, loaded, omitted
from muniment.cli.transfer.items import (
    BlockItem,
    PassageItem,
    Reading,
    Unreadable,
    as_label,
    derived_id,
    foreign,
    oldest_first,
)

_PASSAGES = ("passages", "archival_passages", "archival_memory")
_FORM = "is not a Letta agent file: `agents` and `blocks`, or `core_memory`, are missing"


@dataclass(frozen=True, slots=True)
class _Purpose:
    """The agent and level for which a file is read."""

    agent_id: str
    level: Classification


def is_document(value: object) -> bool:
    """Whether a JSON value looks like an agent file, or like a list of passages."""
    match value:
        case Mapping():
            return "core_memory" in value or ("agents" in value and "blocks" in value)
        case [Mapping() as first, *_]:
            return "text" in first
    return False


def read(source: bytes | str, level: Classification, *, agent_id: str, from_agent: str | None) -> Reading:
    """The blocks and passages of one agent of the file. Raises Unreadable."""
    document = loaded("the file", source)
    if isinstance(document, str):
        return read(document, level, agent_id=agent_id, from_agent=from_agent)
    purpose = _Purpose(agent_id, level)
    if isinstance(document, list):
        listed = _listed("", document)
        items = foreign(_passages(listed, purpose))
        return Reading(items, omitted(listed))
    file = Fields("the file", document)
    if not is_document(document):
        raise Unreadable("", _FORM)
    agent = _agent(file, from_agent) if "agents" in file else file
    blocks, remarks = _blocks(file, agent)
    passages, others = _archived(file, agent)
    if others:
        remarks = (*remarks, f"omitted passages that name another agent, or none: {others}")
    items = (*foreign(_block_items(blocks, level)), *foreign(_passages(passages, purpose)))
    return Reading(items, (*remarks, *omitted({id(each): each for each in (file, agent, *blocks, *passages)}.values())))


def _agent(file: Fields, wanted: str | None) -> Fields:
    """The only agent, or the one with the wanted name or id."""
    agents = [Fields(f"agents[{index}]", each) for index, each in enumerate(file.list("agents"))]
    if wanted is not None:
        agents = [each for each in agents if wanted in (each.text("id", default=""), each.text("name", default=""))]
    if len(agents) != 1:
        raise Unreadable(
            "",
            f"the file has {len(agents)} agents{' of that name' if wanted else ''}, and one is imported",
            "name it by its name or id in the file: --from-agent agent-0",
        )
    return agents[0]


def _blocks(file: Fields, agent: Fields) -> tuple[list[Fields], tuple[str, ...]]:
    """The agent's blocks, and remarks about the others."""
    name = "blocks" if "agents" in file else "core_memory"
    blocks = [Fields(f"{name}[{index}]", each) for index, each in enumerate(file.list(name))]
    if "agents" not in file:
        return blocks, _remarks(blocks, 0)
    attached = set(agent.texts("block_ids"))
    own = [block for block in blocks if block.text("id", default="") in attached]
    missing = len(attached) - len(own)
    if missing:
        raise Unreadable(agent.where, f"{missing} of its block_ids are not among the file's blocks")
    return own, _remarks(own, len(blocks) - len(own))


def _remarks(blocks: list[Fields], left_out: int) -> tuple[str, ...]:
    renamed = sum(as_label(block.text("label")) != block.text("label") for block in blocks)
    said = []
    if renamed:
        said.append(f"labels in which `/` became `.`, or what no label can have `_`: {renamed}")
    if left_out:
        said.append(f"omitted blocks of other agents: {left_out}")
    return tuple(said)


def _block_items(blocks: list[Fields], level: Classification) -> Iterator[BlockItem]:
    for block in blocks:
        yield BlockItem(
            block.where, level, label=as_label(block.text("label")), content=block.text("value", default="")
        )


def _archived(file: Fields, agent: Fields) -> tuple[list[Fields], int]:
    """The agent's passages, and the number of those in the file that may be another agent's."""
    outside = _of_holder(file)
    if agent is file:
        return outside, 0
    agent_id = agent.text("id", default="")
    several = len(file.list("agents")) > 1
    own = [each for each in outside if not several or (agent_id and each.text("agent_id", default="") == agent_id)]
    return [*own, *_of_holder(agent)], len(outside) - len(own)


def _of_holder(holder: Fields) -> list[Fields]:
    """The passages that the file or an agent has."""
    above = "" if holder.where == "the file" else f"{holder.where}."
    return [each for name in _PASSAGES for each in _listed(f"{above}{name}", holder.list(name))]


def _listed(place: str, passages: list[object]) -> list[Fields]:
    return [Fields(f"{place}[{index}]", each) for index, each in enumerate(passages)]


def _passages(passages: list[Fields], purpose: _Purpose) -> Iterator[PassageItem]:
    """The passages, oldest first; those with equal times keep their order."""
    return oldest_first(_passage(each, purpose) for each in passages)


def _passage(fields: Fields, purpose: _Purpose) -> PassageItem:
    # Never derived from the text: the audit log shows ids.
    own_id = fields.text("id", default="") or f"{fields.where} {fields.text('created_at', default='')}"
    return PassageItem(
        fields.where,
        purpose.level,
        passage_id=derived_id(purpose.agent_id, "letta", own_id),
        content=fields.text("text"),
        tags=fields.texts("tags"),
        event_time=fields.time("created_at", zone=False),
    )
