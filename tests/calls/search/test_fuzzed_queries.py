"""No query raises: any characters of twelve scripts, signs, and what is syntax elsewhere.

20,000 of them: `make test ARGS="tests/calls/search/test_fuzzed_queries.py --queries 20000"`.
"""

from __future__ import annotations

import random

import grpc

from tests.support.answers import PUBLIC

SCRIPTS = {
    "Latin": "abcdefghijklmnopqrstuvwxyzABCßéñøİıǅﬁ",
    "Tamil": "கஙசஞடணதநபமயரலவழளறனாிீுூெேைொோௌ்",
    "Devanagari": "कखगघचछजटडतदनपबमयरलवशसहािीुूेैोौ्ं",
    "Han": "中文北京東博物館天气参观我们在了一",
    "kana": "あいうえおかきがぎアイウエオカキガギー",
    "Thai": "กขคงจชซดตถทนบปพมยรลวสหอะาำิีึืุู่้",
    "Arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهويءآأًٌ",
    "Hebrew": "אבגדהוזחטיכלמנסעפצקרשתְֱ", "Cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюяёі",
    "Greek": "αβγδεζηθικλμνξοπρστυφχψωάέής",
    "Hangul": "가나다라마바사아자차카타파하한국각",
    "Burmese": "ကခဂဃငစဆဇညတထဒနပဖဗမယရလဝသဟအာိီုူေဲံ့း္်",
}  # fmt: skip
SIGNS = [
    *"'\"\\%_&|!()<>:*@#$^~`[]{}?.,;-+=/\t\n\x01\x7f\x85",
    *"\u00a0\u200b\u200d\u202e\ufeff\ufffd\ufffe\U0001f600\U000e0041\U0010ffff",
    "<->", "<2>", ":*", ":A", "''", "\\'", "$1", "%s", "%(tenant)s", "@1:1", "'@1:1'", "--", "/*",
    "http://a.b/c?d=e", "a@b.c",
    "C++", "1e309", "-0", "\u0bcd", "\u0300" * 9, "NaN", "\0",
]  # fmt: skip


def query_of(pen: random.Random) -> str:
    """Some words of one script or several, and signs between and inside them."""
    alphabets = pen.sample(list(SCRIPTS.values()), pen.choice((1, 1, 2, 12)))
    parts = []
    for _ in range(pen.choice((1, 2, 3, 5, 8, 30, 200))):
        letters = "".join(pen.choices(pen.choice(alphabets), k=pen.choice((0, 1, 2, 5, 9, 40))))
        parts.append(pen.choice((letters, letters, pen.choice(SIGNS), letters + pen.choice(SIGNS) + letters)))
    return pen.choice(("", " ")).join(parts) + pen.choice(("", "", " " * pen.randrange(3)))


def refused(query: str) -> bool:
    """Whether the contract refuses it: blank or over-long."""
    return not query.replace("\0", " ").strip() or len(query) > 1024


def test_no_query_raises(session, queries):
    pen = random.Random(20261122)
    own = session(PUBLIC)
    for script, letters in SCRIPTS.items():
        own.save_memory(key=script, content=" ".join("".join(pen.choices(letters, k=5)) for _ in range(20)))
    wrong = []
    for _ in range(queries):
        query = query_of(pen)
        outcome = own.observe("SearchMemories", query=query, max_results=3)
        expected = grpc.StatusCode.INVALID_ARGUMENT if refused(query) else grpc.StatusCode.OK
        if outcome.code is not expected:
            wrong.append((query, outcome.code, outcome.message))

    assert wrong == []
