"""What our own code parses beside the contract's messages: it takes any input, or refuses it by its own error."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment import Classification as Level
from muniment._channel import is_local
from muniment.cli import agents_file
from muniment.cli.failures import Failure
from muniment.cli.transfer import letta, lines, mcp
from muniment_server.admin import journal
from muniment_server.domain import base64url, text, tokens
from muniment_server.domain.classification import Label
from muniment_server.domain.errors import InvalidArgument, InvalidPageToken, TaintChanged
from muniment_server.domain.ids import ItemId, TenantNumber
from muniment_server.domain.items import Version
from muniment_server.domain.tokens import TokenKind
from muniment_server.items.paging import etag, version_of
from muniment_server.items.wire import duration_from_proto, time_from_proto, time_to_proto
from muniment_server.monitor.authentication import Credential, bearer_token
from muniment_server.monitor.paging import Pager
from muniment_server.runtime.configuration import ConfigError, is_private, split_address
from muniment_server.search.tsquery import any_of
from muniment_server.telemetry.otlp import _context_of

TOKEN = tokens.mint(TokenKind.SESSION, tenant=TenantNumber(7), secret=b"\x01" * 32)
PAGER = Pager(b"key", "ListMemories", ["tag"], Label.PUBLIC)
DEEP = 100_000
TEXTS = st.text() | st.text(st.sampled_from("0123456789abcdef-_:.[]{}\"',\n\0é٣\ud800"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda values: st.lists(values) | st.dictionaries(TEXTS, values),
    max_leaves=8,
)
examples = settings(max_examples=200, deadline=None)


def damaged(sound: str) -> st.SearchStrategy[str]:
    """*sound* with a part replaced by another text."""
    places = st.integers(0, len(sound))
    return st.builds(lambda a, b, new: sound[: min(a, b)] + new + sound[max(a, b) :], places, places, TEXTS)


@examples
@given(TEXTS | damaged(TOKEN) | damaged(TOKEN.rpartition("_")[0]))
def test_a_token_is_read_or_refused(given_text):
    token = tokens.parse(given_text)

    assert token is None or (token.hash == tokens.digest(given_text) and 0 < token.tenant < 2**63)


@examples
@given(
    st.lists(st.tuples(st.sampled_from(["authorization", "x"]), damaged(f"Bearer {TOKEN}") | st.binary()), max_size=3)
)
def test_a_credential_is_read_or_refused(metadata):
    token = bearer_token(metadata, Credential(), lambda: None)

    assert token is None or [name for name, _ in metadata].count("authorization") == 1


@examples
@given(damaged(PAGER.token("plan", "b")) | TEXTS)
def test_a_page_token_is_the_one_that_was_made_or_refused(given_text):
    with contextlib.suppress(InvalidPageToken):
        assert PAGER.last(given_text) == (["plan", "b"] if given_text else None)
        assert given_text in ("", PAGER.token("plan", "b"))


@pytest.mark.parametrize("label", [label for label in Label if label is not Label.PUBLIC])
def test_a_page_token_of_another_taint_is_refused_as_such(label):
    with pytest.raises(TaintChanged):
        Pager(b"key", "ListMemories", ["tag"], label).last(PAGER.token("plan"))


@examples
@given(TEXTS | damaged(etag(Version(ItemId(uuid.UUID(int=1)), 3))))
def test_an_etag_is_read_or_refused(given_text):
    with contextlib.suppress(InvalidArgument):
        version = version_of(given_text)
        assert given_text == ("" if version is None else etag(version))


@examples
@given(TEXTS)
def test_base64_has_one_text_for_each_value(given_text):
    raw = base64url.decode(given_text)

    assert raw is None or base64url.encode(raw) == given_text


@examples
@given(
    st.integers(-(2**63), 2**63 - 1) | st.integers(-62_135_596_802, 253_402_300_802), st.integers(-(2**31), 2**31 - 1)
)
def test_a_time_is_read_or_refused(seconds, nanos):
    given_time = Timestamp(seconds=seconds, nanos=nanos)
    with contextlib.suppress(InvalidArgument):
        moment = time_from_proto(given_time, field="expire_time")
        assert time_to_proto(moment) == Timestamp(seconds=seconds, nanos=nanos // 1000 * 1000)


@examples
@given(st.integers(1, 2_592_000), st.integers(-(2**31), 2**31 - 1))
def test_a_duration_is_read_or_refused(seconds, nanos):
    """The contract has bounded its seconds before."""
    with contextlib.suppress(InvalidArgument):
        assert duration_from_proto(Duration(seconds=seconds, nanos=nanos), field="ttl").total_seconds() >= seconds


@examples
@given(TEXTS, st.sampled_from([text.key, text.label, text.query]))
def test_a_text_is_taken_or_refused(given_text, rule: Callable[[str], str]):
    with contextlib.suppress(InvalidArgument, UnicodeEncodeError):
        given_text.encode()  # gRPC hands over no text that is not UTF-8
        assert rule(rule(given_text)) == rule(given_text)


@examples
@given(TEXTS | damaged("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
def test_a_traceparent_is_taken_or_dropped(given_text):
    assert _context_of(given_text) is not None


@examples
@given(TEXTS | damaged("127.0.0.1:50051") | damaged("[::1]:50051") | damaged("localhost:0"))
def test_an_address_is_read_or_refused(given_text):
    is_local(given_text)
    with contextlib.suppress(ConfigError):
        is_private(given_text)
        if not given_text.startswith("unix:"):
            assert 0 <= split_address(given_text)[1] <= 65535


@examples
@given(st.lists(st.tuples(TEXTS, TEXTS)))
def test_no_term_ends_its_quotes(combinations):
    """Outside of quotes a query has operators and parentheses only."""
    query = any_of(combinations)
    outside = query.replace("\\\\", "").replace("''", "").split("'")[::2]

    assert {character for part in outside for character in part} <= set("()&| ")


SOUND_LINES: list[dict[str, Any]] = [
    {"format": "muniment", "version": 2, "agent_id": "a", "item_count": 1, "sha256": "0"},
    {"kind": "memory", "level": "public", "key": "plan", "content": "x", "tags": ["a"],
     "expire_time": "2026-01-01T00:00:00Z"},
    {"kind": "note", "level": "public", "tier": "memory", "note_id": str(uuid.UUID(int=1)), "content": "x"},
    {"kind": "block", "level": "public", "label": "plan", "content": "x"},
    {"kind": "passage", "level": "public", "passage_id": str(uuid.UUID(int=1)), "content": "x", "event_time": "x"},
]  # fmt: skip
RECORDS = st.sampled_from(SOUND_LINES).flatmap(
    lambda sound: st.dictionaries(st.sampled_from(list(sound)), JSON, max_size=2).map(lambda wrong: {**sound, **wrong})
)
FILES = st.binary() | st.lists(RECORDS | JSON, max_size=4).map(
    lambda records: "\n".join(map(json.dumps, [SOUND_LINES[0], *records])).encode()
)
READERS: dict[str, Callable[[bytes], Any]] = {
    "lines": lambda content: lines.read(content, edited=True),
    "letta": lambda content: letta.read(content, Level.PUBLIC, agent_id="alice", from_agent=None),
    "mcp": lambda content: mcp.read(content, Level.PUBLIC),
    "agents": lambda content: agents_file.read(content.decode("utf-8", "replace")),
}
NESTED = [
    b"[" * DEEP,
    b'{"a":' * DEEP,
    b"- " * DEEP,
    b"9" * DEEP,
    b"a: &a [*a]",
    b"a: 2026-13-45",
    b"!!int x",
    b"!!float x",
]


@pytest.mark.parametrize("form", READERS)
@examples
@given(FILES | JSON.map(lambda value: json.dumps(value).encode()))
def test_a_file_is_imported_or_refused(form, content):
    with contextlib.suppress(Failure):
        READERS[form](content)


@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize("content", NESTED, ids=range(len(NESTED)))
def test_a_file_nested_too_deep_or_with_odd_values_is_refused(form, content):
    with pytest.raises(Failure):
        READERS[form](content)


ENTRY = {"tenant": 1, "event_id": str(uuid.UUID(int=1)), "time": "2026-01-01T00:00:00+00:00", "agent": 1, "level": 1,
         "host_key_id": None, "method": "DeleteAgent", "kind": None, "item_id": None, "revision": None}  # fmt: skip
JOURNAL = journal.to_bytes(journal.Journal(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC), ()))
ENTRIES = st.dictionaries(st.sampled_from(list(ENTRY)), JSON, max_size=2).map(
    lambda wrong: json.dumps({**ENTRY, **wrong}).encode() + b"\n"
)


@examples
@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode() + b"\n" + JOURNAL) | st.lists(ENTRIES).map(
    lambda entries: JOURNAL.splitlines(keepends=True)[0] + b"".join(entries) + JOURNAL.splitlines(keepends=True)[1]
))  # fmt: skip
def test_a_journal_is_the_one_that_was_written_or_refused(content):
    with contextlib.suppress(ValueError):
        assert journal.to_bytes(journal.from_bytes(content)) == content


@pytest.mark.parametrize("line", NESTED[:4], ids=range(4))
def test_a_journal_nested_too_deep_is_refused(line):
    header, end = JOURNAL.splitlines(keepends=True)

    with pytest.raises(ValueError, match=r"."):
        journal.from_bytes(header + line + b"\n" + end)
