"""EraseItems: the right to be forgotten, up to the ceiling of the host's key, and no further."""

from __future__ import annotations

from muniment_server.admin.operator import connect_operator
from tests.support.answers import LEVELS, RESTRICTED, keys

_MEMORY, _NOTE, _BLOCK, _PASSAGE = 1, 2, 3, 4


def doctor_of(service):
    """What the doctor counts as broken: ledgers, index."""
    with connect_operator(service.database.admin) as operator:
        return sum(operator.broken_ledgers().values()), sum(operator.broken_index().values())


def test_a_name_is_erased_with_all_its_revisions_at_every_level(service):
    for level in LEVELS:
        session = service.session(level, conversation_id=f"c{level}")
        session.save_memory(key="plan", content="whale one")
        session.save_memory(key="plan", content="whale two")
        session.save_memory(key="other", content="whale")
    service.host().erase_items(agent_id="alice", kind=_MEMORY, name="plan")

    top = service.session(RESTRICTED, conversation_id="top")
    assert keys(top.list_memories()) == ["other"]
    assert [result.memory.key for result in top.search_memories(query="whale").results] == ["other"]
    with service.database.as_owner() as owner:
        for level in LEVELS:
            for table in ("item", "revision", "chunk", "meaning"):
                left = f"SELECT count(*) FROM muniment_{level.name.lower()}.{table} WHERE name = 'plan'"
                assert owner.execute(left.encode()).fetchone() == (0,)
    assert doctor_of(service) == (0, 0)
