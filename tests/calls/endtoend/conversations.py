"""The conversations of LoCoMo as the file has them: two people, their sessions, and what was observed of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.calls.endtoend.locomo import DATA

CONVERSATIONS = DATA / "locomo-dev.json"


@dataclass(frozen=True, slots=True)
class Turn:
    """What one person says once, and the photo they show with it."""

    turn_id: str
    session: int
    speaker: str
    said: str
    photo: str | None
    time: datetime
    """That of the session, and a minute for each turn before."""

    @property
    def text(self) -> str:
        return f"{self.said}\n[{self.photo}]" if self.photo else self.said


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing that a session shows of a person."""

    session: int
    person: str
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """Two people over many sessions, all in the order of time."""

    name: str
    people: tuple[str, str]
    turns: Sequence[Turn]
    observations: Sequence[Observation]
    events: Mapping[str, Sequence[str]]
    """What happened to a person before each session."""
    summaries: Sequence[str]
    """One of each session."""


def load() -> list[Conversation]:
    """Read the file. Raises FileNotFoundError."""
    return [_conversation(row) for row in json.loads(CONVERSATIONS.read_bytes())]


def _conversation(row: Mapping[str, Any]) -> Conversation:
    talk = row["conversation"]
    people = (talk["speaker_a"], talk["speaker_b"])
    sessions = [number for number in range(1, len(talk)) if f"session_{number}" in talk]
    return Conversation(
        name=row["sample_id"],
        people=people,
        turns=[turn for number in sessions for turn in _turns(talk, number)],
        observations=[observed for number in sessions for observed in _observations(row["observation"], number)],
        events={
            person: ["\n".join(row["event_summary"][f"events_session_{number}"][person]) for number in sessions]
            for person in people
        },
        summaries=[row["session_summary"][f"session_{number}_summary"] for number in sessions],
    )


def _turns(talk: Mapping[str, Any], session: int) -> Iterator[Turn]:
    begun = datetime.strptime(talk[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    for minute, turn in enumerate(talk[f"session_{session}"]):
        yield Turn(
            turn_id=turn["dia_id"],
            session=session,
            speaker=turn["speaker"],
            said=turn["text"],
            photo=turn.get("blip_caption"),
            time=begun + timedelta(minutes=minute),
        )


def _observations(row: Mapping[str, Any], session: int) -> Iterator[Observation]:
    for person, observed in row[f"session_{session}_observation"].items():
        for text, _ in observed:
            yield Observation(session, person, text)
