"""What is searched and asked: conversations and facts of LoCoMo, paragraphs of XQuAD. Read in place, never kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
BARE_TURNS = "LoCoMo bare turns"


@dataclass(frozen=True, slots=True)
class Document:
    """One thing to be found. All systems get the same text: author, date and content."""

    document_id: str
    content: str
    author: str | None = None
    thread: str | None = None
    time: datetime | None = None

    @property
    def text(self) -> str:
        """The whole of it, for systems that know only texts."""
        date = f"{self.time:%I:%M %p on %d %B, %Y} | " if self.time else ""
        return f"{date}{self.author}: {self.content}" if self.author else f"{date}{self.content}"


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the ids of all that answers it."""

    text: str
    category: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class Corpus:
    """What one agent remembers, and what is asked of it."""

    name: str
    agent_id: str
    documents: Sequence[Document]
    questions: Sequence[Question]


def corpora(data: Path) -> list[Corpus]:
    """All there are in the folder."""
    conversations = json.loads((data / "locomo-dev.json").read_text("utf-8"))
    facts = [json.loads(line) for line in (data / "locomo-facts.jsonl").read_text("utf-8").splitlines()]
    languages = sorted((data / "xquad").glob("*.json"))
    turns = [_turns(conversation) for conversation in conversations]
    return [
        *turns,
        *(_bare(corpus) for corpus in turns),
        *(_facts(conversation, facts) for conversation in conversations),
        *(_paragraphs(path) for path in languages),
    ]


def _turns(conversation: Any) -> Corpus:
    documents = [
        Document(turn["dia_id"], _said(turn), turn["speaker"], thread, time + timedelta(seconds=number))
        for thread, time, turns in _threads(conversation["conversation"])
        for number, turn in enumerate(turns)
    ]
    name = conversation["sample_id"]
    return Corpus(
        "LoCoMo turns",
        name,
        documents,
        list(_questions(conversation, {one.document_id: {one.document_id} for one in documents})),
    )


def _bare(turns: Corpus) -> Corpus:
    """The texts of the turns and nothing else, as MTEB's task LoCoMo has them."""
    documents = [Document(one.document_id, one.content) for one in turns.documents]
    return Corpus(BARE_TURNS, f"{turns.agent_id}-bare", documents, turns.questions)


def _threads(conversation: Any) -> Iterator[tuple[str, datetime, Any]]:
    for thread, turns in conversation.items():
        if re.fullmatch(r"session_\d+", thread):
            yield thread, _time(conversation[f"{thread}_date_time"]), turns


def _said(turn: Any) -> str:
    return f"{turn['text']} [image: {turn['blip_caption']}]" if turn.get("blip_caption") else str(turn["text"])


def _facts(conversation: Any, facts: Any) -> Corpus:
    own = [fact for fact in facts if fact["conversation"] == conversation["sample_id"]]
    documents = [
        Document(
            f"fact {number}",
            fact["fact"],
            fact["person"],
            fact["session"],
            _time(fact["date"]) + timedelta(seconds=number),
        )
        for number, fact in enumerate(own)
    ]
    of_turn: dict[str, set[str]] = {}
    for number, fact in enumerate(own):
        for turn in _ids(fact["evidence"]):
            of_turn.setdefault(turn, set()).add(f"fact {number}")
    return Corpus(
        "LoCoMo facts", f"{conversation['sample_id']}-facts", documents, list(_questions(conversation, of_turn))
    )


def _questions(conversation: Any, of_turn: dict[str, set[str]]) -> Iterator[Question]:
    """Those that are left with evidence."""
    for asked in conversation["qa"]:
        turns = {turn for evidence in asked["evidence"] for turn in _ids(evidence)}
        relevant = frozenset(name for turn in turns for name in of_turn.get(turn, ()))
        if relevant:
            yield Question(asked["question"], CATEGORIES[asked["category"]], relevant)


def _ids(evidence: Any) -> list[str]:
    """Some hold several ids."""
    texts = evidence if isinstance(evidence, list) else [evidence]
    return [one for text in texts for one in re.split(r"[;\s,]+", text) if one]


def _paragraphs(path: Path) -> Corpus:
    paragraphs = [one for article in json.loads(path.read_text("utf-8"))["data"] for one in article["paragraphs"]]
    documents = [Document(str(number), one["context"]) for number, one in enumerate(paragraphs)]
    questions = [
        Question(asked["question"], path.stem, frozenset({str(number)}))
        for number, one in enumerate(paragraphs)
        for asked in one["qas"]
    ]
    return Corpus("XQuAD", f"xquad-{path.stem}", documents, questions)


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
