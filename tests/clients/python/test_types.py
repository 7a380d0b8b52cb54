"""A value of the wrong type is refused before it is sent. The error names the argument, or the type that it needs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import muniment
from muniment import (
    AddNote,
    Classification,
    HostClient,
    Integrity,
    ItemKind,
    NewMemory,
    NewPassage,
    SessionClient,
    Tier,
)

VALUES = {
    "Iterable[NewMemory]": [NewMemory("tea", "Assam")],
    "Iterable[NewPassage]": [NewPassage("booked")],
    "Iterable[NoteEdit]": [AddNote("likes tea")],
    "Classification": Classification.PUBLIC,
    "ItemKind": ItemKind.MEMORY,
    "tuple[Classification, Integrity]": (Classification.PUBLIC, Integrity.UNTRUSTED),
    "Tier": Tier.MEMORY,
    "datetime | None": datetime(2026, 11, 22, tzinfo=UTC),
    "timedelta | None": timedelta(hours=1),
    "int": 1,
}
TYPES = (
    "Classification",
    "Integrity",
    "ItemKind",
    "Tier",
    "PromptSectionKind",
    "datetime",
    "NewMemory",
    "NewPassage",
    "AddNote",
)


class Other:
    """A value that no method takes."""


def arguments() -> Iterator[tuple[type, str, str]]:
    """Each argument of each method that makes a call."""
    for client in (HostClient, SessionClient):
        for name, method in inspect.getmembers(client, inspect.isfunction):
            if not name.startswith("_"):
                for argument in inspect.signature(method).parameters:
                    if argument not in ("self", "timeout"):
                        yield client, name, argument


def call(client: Any, method: str, argument: str, value: object) -> None:
    """Call the method with that value, and with good ones for what else it needs."""
    needed = inspect.signature(getattr(type(client), method)).parameters.values()
    good = {each.name: VALUES.get(str(each.annotation), "x") for each in needed if each.default is each.empty}
    del good["self"]
    answer = getattr(client, method)(**{**good, argument: value})
    if isinstance(answer, muniment.Listing):
        next(iter(answer))


@pytest.mark.parametrize("value", [Other(), [Other()]], ids=["other", "list"])
@pytest.mark.parametrize(("client", "method", "argument"), [*arguments()])
def test_a_wrong_type_is_named_with_its_argument(client, method, argument, value):
    named: dict[str, Any] = {"host_key": "mun_h_1_x"} if client is HostClient else {"token": "mun_s_1_x"}

    with (
        muniment.connect("127.0.0.1:1", retries=False, **named) as connected,
        pytest.raises((TypeError, ValueError)) as refused,
    ):
        call(connected, method, argument, value)

    words = (argument, *TYPES, "not iterable", "a duration must be a timedelta", "a token must be a string")
    assert any(word in str(refused.value) for word in words), refused.value


def test_a_number_as_a_text_is_refused_by_its_name():
    with muniment.connect("127.0.0.1:1", token="mun_s_1_x", retries=False) as session:
        with pytest.raises(TypeError, match=r"^content has a value of the wrong type: int$"):
            session.save_memory("tea", 5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"^key has a value of the wrong type: int$"):
            session.save_memories(NewMemory(key, "Assam") for key in [5])  # type: ignore[arg-type]
