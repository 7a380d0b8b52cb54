"""Finds the names in a query: relations, functions, and its own common table expressions.

The check of the nouns' queries relies on this, so it errs on the safe side: it refuses what it cannot parse.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?:(?<![\w&])'(?:[^']|'')*' | %\(\w+\)s | \d[\d.]*(?:e\d+)?    # a value
      | COLLATE[ ]"C"
      | [A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:\.\*)?                       # a word
      | :: | [-+*/<>=!@&|\#(),\[\]]) | (?P<unreadable>\S)""",
    re.VERBOSE,
)
_END_OF_FROM = frozenset(
    {
        "EXCEPT", "FETCH", "FOR", "GROUP", "HAVING", "INTERSECT", "LIMIT", "OFFSET", "ORDER", "RETURNING",
        "SELECT", "SET", "UNION", "WHERE", "WINDOW",
    }
)  # fmt: skip
_NO_FUNCTIONS = frozenset(
    {
        "ALL", "AND", "ANY", "ARRAY", "AS", "BY", "CASE", "CONFLICT", "ELSE", "EXISTS", "FILTER", "FROM", "IN",
        "JOIN", "LATERAL", "LIMIT", "MATERIALIZED", "NOT", "ON", "OR", "OVER", "SELECT", "THEN", "UNION",
        "USING", "VALUES", "WHEN", "WHERE",
    }
)  # fmt: skip
"""Keywords that may stand before a parenthesis without being functions."""
_WRITING = frozenset(
    {
        "CALL", "COPY", "CREATE", "DELETE", "DO", "EXECUTE", "GRANT", "INSERT", "INTO", "LOCK", "MERGE",
        "PREPARE", "SET", "SHARE", "TRUNCATE", "UPDATE",
    }
)  # fmt: skip


@dataclass(slots=True)
class Names:
    """The names in a query, in lower case."""

    relations: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    expressions: set[str] = field(default_factory=set)
    """Its common table expressions."""
    refused: set[str] = field(default_factory=set)
    """Keywords that write or lock, characters that cannot be parsed, and brackets without a partner."""


@dataclass(slots=True)
class _Bracket:
    """The state of the parser within one pair of parentheses."""

    in_from: bool = False
    expects_relation: bool = False


def names(text: str) -> Names:
    """The names in *text*."""
    found = Names(refused={sign for sign in ("/*", "--") if sign in text})
    tokens = []
    for match in _TOKEN.finditer(text):
        tokens.append(match[0].upper())
        if match["unreadable"]:
            found.refused.add(match[0])
    brackets = [_Bracket()]
    for place, token in enumerate(tokens):
        bracket = brackets[-1]
        match token:
            case "(":
                brackets.append(_Bracket(bracket.expects_relation, bracket.expects_relation))
                bracket.expects_relation = False
            case ")" if len(brackets) > 1:
                brackets.pop()
            case ")":
                found.refused.add(token)
            case ",":
                bracket.expects_relation = bracket.in_from
            case _ if token[0].isalpha() or token[0] == "_":
                _read(found, bracket, tokens[max(0, place - 1) : place + 6], place > 0)
    if len(brackets) > 1:
        found.refused.add("(")
    return found


def _read(found: Names, bracket: _Bracket, around: Sequence[str], has_before: bool) -> None:
    """Parse one word. *around* is the token before it, if there is one, the word itself, and the tokens after it."""
    before, word, *after = around if has_before else ("", *around)
    is_called = after[:1] == ["("]
    if word in _WRITING:
        found.refused.add(word)
    if _begins_relation(word, before, is_called=is_called):
        bracket.in_from = bracket.in_from or word == "FROM"
        bracket.expects_relation = True
    elif word in _END_OF_FROM:
        bracket.in_from = bracket.expects_relation = False
    elif bracket.expects_relation and word not in {"LATERAL", "ONLY"}:
        bracket.expects_relation = False
        (found.functions if is_called else found.relations).add(word.lower())
    elif before in {"WITH", "RECURSIVE", ","} and after[:1] == ["AS"] and "(" in after[1:4]:
        found.expressions.add(word.lower())
    elif is_called and before not in {"AS", "::"} and word not in _NO_FUNCTIONS:
        found.functions.add(word.lower())


def _begins_relation(word: str, before: str, *, is_called: bool) -> bool:
    """Whether the name of a relation must follow *word*."""
    match word:
        case "FROM":
            return before != "DISTINCT"
        case "UPDATE":
            return before not in {"DO", "FOR", "KEY"}
        case "USING":
            return not is_called
    return word in {"INTO", "JOIN", "TABLE"}
