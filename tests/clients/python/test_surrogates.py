"""Half of a surrogate pair, which UTF-8 cannot represent, is refused before anything is sent."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment import HostClient, InvalidArgument, NewMemory, NewPassage, SessionClient

HALF = "secret \ud83d"

CALLS: dict[str, Callable[[Any], Any]] = {
    "a key": lambda session: session.get_memory(HALF),
    "content": lambda session: session.save_memory("k", HALF),
    "a tag": lambda session: session.save_memory("k", "c", tags=["a", HALF]),
    "one of several memories": lambda session: session.save_memories([NewMemory("k", "c"), NewMemory("l", HALF)]),
    "a note": lambda session: session.add_note(HALF),
    "a block": lambda session: session.replace_in_block("b", "old", HALF),
    "a list": lambda session: list(session.list_passages(thread=HALF)),
    "a stream": lambda session: session.import_passages([NewPassage("fine"), NewPassage(HALF)]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_half_of_a_pair_is_an_invalid_argument(session: SessionClient, call: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidArgument, match="half of a surrogate pair") as refused:
        call(session)

    assert "secret" not in repr(refused.value)
    assert refused.value.__cause__ is None


def test_also_of_a_host(host: HostClient) -> None:
    with pytest.raises(InvalidArgument, match="half of a surrogate pair"):
        host.create_agent("a", display_name=HALF)


def test_every_request_is_made_where_that_is_checked() -> None:
    folder = Path(muniment.__file__).parent
    made = [
        f"{path.name}:{node.lineno}"
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Request") and (node.args or node.keywords)
    ]

    assert made == []
