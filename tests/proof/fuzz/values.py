"""Values for fields: plain ones, and those at which servers break."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from tests.calls.search.test_fuzzed_queries import SIGNS, query_of
from tests.proof.fuzz.rules import bounds_of, entry_rules_of, rules_of

HOSTILE_TEXTS = [
    b"", b" ", b"\0", b"a\0b", b"\n", b"\r\n", b"\x01\x7f", "\u0085".encode(), "\ufeff".encode(), "\u202eabc".encode(),
    "\u200b".encode(), "\u2028".encode(), "\U000e0041".encode(), "\U0010ffff".encode(), "\ufffe".encode(),
    "e\u0301".encode(), "é".encode(), ("a" + "\u0300" * 200).encode(), "ǅ".encode(), "ﷺ".encode() * 9,
    b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a\xe2\x82",  # these are no UTF-8
    b"'", b"''; DROP TABLE item; --", b"%s", b"%(tenant)s", b"$1", b"{}", b"\\", b"\\x00", b"../../etc/passwd",
    b"null", b"NaN", b"-0", b"1e309", b"true", b"[]", b'{"a":1}', b"<script>", b"<|im_start|>", b"## Blocks",
    b"~0", b"~9999999999999999999", b"~1", b"00000000-0000-0000-0000-000000000000",
    b"FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", b"{00000000-0000-4000-8000-000000000000}",
    b"urn:uuid:00000000-0000-4000-8000-000000000000", b"A" * 43, b"_" * 27, b"AAAA", b"*", b"infinity",
]  # fmt: skip
EXAMPLES = {
    r"^[^\x00- ~\x7F][^\x00- \x7F]{0,255}$": [b"a", b"9", b"kim@example.com", b"a" * 256, "用".encode() * 256],
    "^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,8}$": [b"en", b"ta", b"zh-Hant", b"abcdefgh" + b"-12345678" * 8, b"xx"],
    "^([A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,8})?$": [b"", b"de", b"abcdefgh" + b"-12345678" * 8],
    r"^([^\x00- ~\x7F][^\x00- \x7F]{0,255}|~[0-9]{1,19})$": [
        b"a" * 256, b"~0", b"~1", b"~9223372036854775807", b"~9223372036854775808", b"~9999999999999999999"
    ],
    "^[0-9a-f]{64}$": [b"0" * 64, b"f" * 64, b"0123456789abcdef" * 4],
}  # fmt: skip
"""Of each pattern in the contract, texts that match it: the shortest, the longest, and odd ones."""
NUMBERS = [
    0, 1, -1, 2, 127, 128, 255, 256, 2**15, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**63 - 1, -(2**63),
]  # fmt: skip
SECONDS = [
    0, 1, -1, -62_135_596_800, -62_135_596_801, 253_402_300_799, 253_402_300_800, 2_592_000, 2_592_001, 2**31,
    2**63 - 1, -(2**63), 1_800_000_000, 1_700_000_000, 4_102_444_800,
]  # fmt: skip
"""Of times and durations: the limits of the contract and of the type, and one beyond each."""
NANOS = [0, 1, 999, 999_999_999, 1_000_000_000, -1, 2**31 - 1, -(2**31)]
_WORDS = ["plan", "whale", "Budget", "meeting", "2026", "naïve", "கடல்", "東京", "running"]
_FILLINGS: list[Callable[[int], bytes]] = [
    lambda size: b"x" * size,
    lambda size: ("\U0001f600" * (size // 4)).encode() + b"x" * (size % 4),
    lambda size: b"ab " * (size // 3) + b"y" * (size % 3),
    lambda size: "\u0bcd".encode() * (size // 3) + b"z" * (size % 3),
    lambda size: b"\0" * size,
    lambda size: b"'" * size,
    lambda size: b"\n" * size,
]
_HUGE = 300_000


def plain_text(dice: Random) -> bytes:
    """A few words."""
    return " ".join(dice.choices(_WORDS, k=dice.randrange(1, 4))).encode()


def hostile_texts(field: FieldDescriptor, dice: Random) -> list[Callable[[], bytes]]:
    """Ways to make a text for *field* that it may not expect."""
    rules = entry_rules_of(field)
    ways: list[Callable[[], bytes]] = [
        lambda: dice.choice(HOSTILE_TEXTS),
        lambda: query_of(dice).encode("utf-8", "surrogatepass")[:4000],
        lambda: dice.choice(SIGNS).encode() * dice.randrange(1, 30),
    ]
    if lengths := list(lengths_of(rules)):
        is_large = dice.random() < 0.1
        ways.append(lambda: _filled(dice, dice.choice(lengths if is_large else [min(lengths), 1000])))
    if examples := EXAMPLES.get(rules.string.pattern):
        ways.append(lambda: dice.choice(examples))
        ways.append(lambda: dice.choice(examples) + dice.choice([b"\n", b"a", b"\0", b" "]))
    if dice.random() < 0.02:
        ways = [lambda: _filled(dice, _HUGE)]
    return ways


def lengths_of(rules: Any) -> Iterator[int]:
    """The lengths at the limits of a text, and one beyond each: in bytes, and where characters count, in those."""
    for bound in bounds_of(rules):
        yield from (length for length in (bound - 1, bound, bound + 1) if length >= 0)
        if rules.string.max_len == bound:
            yield from (bound * 4, bound * 4 + 4)


def hostile_numbers(field: FieldDescriptor) -> list[int]:
    """Numbers at the limits of a field's rules and of its type, and one beyond each."""
    bounds = bounds_of(entry_rules_of(field))
    return NUMBERS + [number for bound in bounds for number in (bound - 1, bound, bound + 1)]


def sizes_of(field: FieldDescriptor) -> list[int]:
    """How many entries a repeated field may get: at its limits, and one beyond each."""
    return [0, 257] + [size for bound in bounds_of(rules_of(field)) for size in (bound - 1, bound, bound + 1)]


def matches(pattern: str, text: bytes) -> bool:
    """Whether the contract's pattern allows a text."""
    return re.search(pattern.removesuffix("$") + r"\Z", text.decode()) is not None


def _filled(dice: Random, size: int) -> bytes:
    return dice.choice(_FILLINGS)(size)
