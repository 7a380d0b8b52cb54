"""What sessions do with passages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.proof.noninterference.programs.alphabets import CANARY, EVENT_TIMES, IDS, SPELLINGS, TAGS, THREADS, WORDS
from tests.proof.noninterference.programs.memories import expiry, page_size, question, tag_filter, tags
from tests.proof.noninterference.programs.operations import Call, Fields, Pen

_DO = {"store": 29, "import": 14, "get": 14, "list": 17, "search": 13, "delete": 13, "delete many": 5}
_OUT_OF_FORM: tuple[Fields, ...] = (
    b"\xff\xff\xff",
    {},
    {"passage": {"content": ""}},
    {"passage": {"content": CANARY, "tags": [" "]}},
    {"passage": {"content": CANARY, "thread": f" {CANARY}"}},
)


def about_passages(pen: Pen, *, ids: bool = False) -> Call:
    """*ids*: those of an import are given, because the answer will not tell them."""
    match pen.one_of(_DO):
        case "store":
            return "StorePassage", _passage(pen)
        case "import":
            return "ImportPassages", _stream(pen, ids=ids)
        case "get":
            return "GetPassage", {"passage_id": _known_id(pen)}
        case "list":
            return "ListPassages", {"page_size": page_size(pen), **tag_filter(pen), **_filters(pen)}
        case "search":
            filters = {**tag_filter(pen), **_filters(pen)} if pen.chance(0.6) else {}
            return "SearchPassages", {**question(pen), **filters}
        case "delete many":
            thread = {"thread": pen.spelled(pen.rng.choice(THREADS), SPELLINGS)}
            return "DeletePassages", pen.rng.choice((thread, {"tag": pen.rng.choice(TAGS)}))
    return "DeletePassage", {"passage_id": _known_id(pen)}


def _stream(pen: Pen, *, ids: bool) -> list[Fields]:
    """Passages; where an id is there twice, all have one: two batches of one time would leave their order open."""
    passages = [_passage(pen, id_is_given=ids) for _ in range(pen.rng.choice((0, 1, 2, 3, 5)))]
    if pen.chance(0.25) and passages:
        passages.insert(pen.rng.randrange(len(passages) + 1), dict(pen.rng.choice(passages)))
    given = [passage["passage_id"] for passage in passages if "passage_id" in passage]
    if len(set(given)) < len(given):
        for passage in passages:
            passage.setdefault("passage_id", pen.rng.choice(IDS))
    stream: list[Fields] = [{"passage": passage} for passage in passages]
    if pen.chance(0.2):
        bad = pen.rng.choice((*_OUT_OF_FORM, {"passage": {"content": CANARY, "expire_time": pen.time}}))
        stream.insert(pen.rng.randrange(len(stream) + 1), bad)
    return stream


def _passage(pen: Pen, *, id_is_given: bool = False) -> dict[str, Any]:
    passage_id = pen.rng.choice((*IDS, *IDS, *pen.seen.ids.get("Passage", [])[-2:]))
    content = f"{pen.rng.choice(WORDS)} {CANARY}"
    if pen.session and pen.chance(0.3):
        # Its content of now: a call repeated.
        seen = pen.model.seen(pen.session.agent.passages, passage_id, pen.level)
        content = seen[max(seen)].content if seen else content
    event_time = pen.rng.choice((None, None, *EVENT_TIMES))
    thread = pen.rng.choice(("", *THREADS))
    return {
        "content": content,
        "tags": tags(pen),
        "thread": pen.spelled(thread, SPELLINGS),
        "author": pen.rng.choice(("", "Ann")),
        **({"event_time": event_time} if event_time else {}),
        **({"passage_id": passage_id} if id_is_given or pen.chance(0.7) else {}),
        **expiry(pen),
    }


def _known_id(pen: Pen) -> str:
    """The id of a passage: mostly one that is visible, of the own level as often as not."""
    if pen.session and pen.chance(0.7):
        passages = list(pen.model.all_seen(pen.session.agent.passages, pen.level))
        own = [name for name, at, _ in passages if at == pen.level]
        visible = own if own and pen.chance(0.5) else [name for name, _, _ in passages]
        if visible:
            return pen.rng.choice(visible)
    return pen.rng.choice((*IDS, *pen.seen.ids.get("Passage", [])[-6:]))


def _filters(pen: Pen) -> dict[str, Any]:
    thread = pen.rng.choice(("", "", *THREADS))
    start, end = (pen.rng.choice((None, None, *EVENT_TIMES, pen.time - timedelta(minutes=1))) for _ in range(2))
    return {
        "thread": pen.spelled(thread, SPELLINGS),
        **({"start_time": start} if start else {}),
        **({"end_time": end} if end else {}),
    }
