"""No module and no class of the monitor, of `postgres/` and of the nouns holds what calls could change.

What a process remembers of one call and uses in another needs no grant, and two servers in one process would have it
in common. `tests/proof/noninterference/test_process_state.py` compares what modules hold before and after programs.
"""

from __future__ import annotations

import pytest

from tests.support.each import for_each
from tests.support.nouns import SERVER
from tests.support.shared_state import files, shared_state

_QUERY_TEXTS = "the texts of queries, as a Mapping"
_CONSTANT = "a table that nothing changes: its name has no type that says so, and the lint finds each change"
_HARMLESS = {
    "items/notes.py": {"NOTE_VERSIONS": "a frozen query without parameters"},
    "items/paging.py": {"NO_VERSION": "a frozen value"},
    "monitor/egress.py": {
        "_LEVELS": _CONSTANT,
        "_REVEALED": _CONSTANT,
        "_plan": "where the labels stand in the messages of a type",
    },
    "monitor/grants.py": {"_QUERIES": _QUERY_TEXTS},
    "monitor/log_settings.py": {"_QUERIES": _QUERY_TEXTS},
    "monitor/queries.py": {
        "AUDIT_QUERIES": _QUERY_TEXTS,
        "HOST_QUERIES": _QUERY_TEXTS,
        "SESSION_QUERIES": _QUERY_TEXTS,
        "HOST_STATEMENTS": "a frozenset of names",
        "READS": "a frozenset of names",
        "WRITES": "a frozenset of names",
    },
    "monitor/status.py": {"_RETRY_DELAYS": _CONSTANT},
    "monitor/validation.py": {
        "_TEXTS": _CONSTANT,
        "_FORMS": _CONSTANT,
        "_IDS": _CONSTANT,
        "_plan": "the rules of the messages of a type",
    },
    "postgres/engine.py": {"PLAIN": "an engine, which has no fields", "_others": "the engines in the package"},
    "postgres/migrate.py": {"migrations": "the migrations in the package"},
    "postgres/pool.py": {
        "LONGEST_STATEMENT": "a number",
        "NETWORK": _CONSTANT,
        "_OPEN_TRANSACTION": _CONSTANT,
        "_QUERIES": _QUERY_TEXTS,
        "_log_refused_password": "that it was logged once",
    },
    "postgres/prepared.py": {
        "_numbers": "counts the statements that are prepared, whatever they hold",
        "_positional": "the texts of queries, rewritten",
    },
    "postgres/rows.py": {"_maker": "how the rows of a type are made"},
    "postgres/transaction.py": {"_QUERIES": _QUERY_TEXTS},
    "prompts/wire.py": {"_TIERS": _CONSTANT},
    "embedder/queue.py": {"FIRST": "a position that is frozen", "_QUERIES": _QUERY_TEXTS},
    "search/grams.py": {
        "_FOLDED": _CONSTANT,
        "_KATAKANA": _CONSTANT,
        "_LETTERS": _CONSTANT,
        "_WRITTEN_OUT": _CONSTANT,
        "word_pattern": "which signs of Unicode are letters",
    },
    "search/languages.py": {"_LANGUAGES_OF": _CONSTANT, "_SCRIPTS": _CONSTANT, "_STOP_WORDS": _CONSTANT},
    "search/reindex.py": {"_QUERIES": _QUERY_TEXTS},
    "search/reranking.py": {"NO_RERANKER": "a frozen value"},
}
"""What is found, and why it keeps nothing of any call."""


@for_each("path", files())
def test_c70_modules_and_classes_hold_nothing_that_calls_change(path):
    found = shared_state(path.read_text("utf-8"))

    assert found == sorted(_HARMLESS.get(path.relative_to(SERVER).as_posix(), {}))


@pytest.mark.parametrize(
    "code",
    [
        "_seen = {}\n",
        "_seen: dict[str, int] = {}\n",
        "_seen = defaultdict(list)\n",
        "_seen = Cache()\n",
        "class Searcher:\n    seen = []\n",
        "class Searcher:\n    seen: ClassVar[dict[str, int]] = {}\n",
        "class Searcher:\n    @classmethod\n    def keep(cls, one):\n        cls.last = one\n",
        "class Searcher:\n    def keep(self, one):\n        type(self).last = one\n",
        "class Searcher:\n    def keep(self, one):\n        self.__class__.last = one\n",
        "class Searcher:\n    def keep(self, one):\n        Searcher.last = one\n",
        "class Searcher:\n    def keep(self, one):\n        setattr(Searcher, 'last', one)\n",
        "def get(one):\n    get.last = one\n",
        "def get(one, seen=[]):\n    seen.append(one)\n",
        "_last = None\ndef get(one):\n    global _last\n    _last = one\n",
        "_SEEN: Mapping[str, int] = {}\ndef get(one):\n    _SEEN[one] = 1\n",
        "_SEEN: Mapping[str, int] = {}\ndef get(one):\n    _SEEN.update(one)\n",
        "@lru_cache\ndef get(one):\n    return one\n",
        "@functools.lru_cache(maxsize=9)\ndef get(one):\n    return one\n",
        "_get = functools.cache(get)\n",
        "_here = threading.local()\n",
    ],
)
def test_what_outlives_a_call_is_found(code):
    assert shared_state(code) != []


@pytest.mark.parametrize(
    "code",
    [
        "_TABLE: Mapping[str, int] = {'a': 1}\n",
        "_NAMES = frozenset({'a'})\n",
        "class Scope:\n    def end(self):\n        self._ended = True\n",
        "def get(rows):\n    seen = {}\n    seen['a'] = rows\n    return seen\n",
    ],
)
def test_what_ends_with_its_call_is_not_found(code):
    assert shared_state(code) == []
