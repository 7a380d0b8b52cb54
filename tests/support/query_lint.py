"""What the text of a named query must keep to, as it is sent. Each rule says what it found."""

from __future__ import annotations

import re
from collections.abc import Iterator

_KEYWORDS = {
    "select", "from", "where", "join", "left", "right", "inner", "cross", "lateral", "on", "using", "and", "or", "not",
    "exists", "order", "group", "limit", "for", "union", "all", "set", "returning", "values", "with", "as", "only",
    "no", "update", "insert", "into", "delete", "do", "conflict", "having", "unnest", "aclexplode", "distinct",
}  # fmt: skip
_VOLATILE = ("gen_random_uuid", "random", "nextval", "clock_timestamp", "timeofday", "txid_current", "uuid_generate")
_TENANT = "%(tenant)s"
_CEILING = "%(ceiling)s"
_OF_AGENTS = frozenset(
    {
        "visible", "visible_chunk", "visible_stat", "visible_meaning", "visible_remote_embedding",
        "visible_embedding_list", "visible_revision", "storage_size", "deleted_item", "item", "revision", "shelf",
        "chunk", "stat", "meaning", "remote_embedding", "embedding_list", "storage",
    }
)  # fmt: skip
"""What holds the rows of all agents of a tenant."""


def problems(text: str) -> Iterator[str]:
    """What is wrong with the text of one query."""
    flat = " ".join(text.split())
    yield from _untenanted(flat)
    yield from _inserts(flat)
    yield from _returning(flat)
    yield from _clock(flat)
    yield from _volatile(flat)
    yield from _locks(flat)
    yield from _columns(flat)
    yield from _views(flat)
    yield from _forbidden(flat)


def problems_of_hosts(text: str) -> Iterator[str]:
    """What is wrong with the text of a query of hosts besides: what is above the ceiling of the key does not exist.

    That is each agent that is known only above it, and each conversation with a higher ceiling.
    """
    for relation, name, select in _relations(" ".join(text.split())):
        held, known = (f"{name}.{column} <= {_CEILING}" in select for column in ("ceiling", "known_from"))
        by_name = relation == "vault.agent" and re.search(rf"\b{name}\.agent_id (?:=|>|IN)", select)
        if by_name and not (held or known):
            yield f"{relation} is not held to the ceiling"
        shown = f"{name}.release_id = ANY(" in select or f"({name}.create_time, " in select
        if relation == "vault.release" and shown and f"agent.ceiling <= {_CEILING}" not in select:
            yield f"{relation} is not held to the ceiling of its agent"
        of_host = relation in {"session", "unclosed", "vault.session"} and f"agent.ceiling <= {_CEILING}" not in select
        by_id = f"{name}.session_id = %(session_id)s" in select
        by_owner = f"{name}.agent = (SELECT owner.agent FROM owner)" in select  # which is checked itself
        if of_host and by_id and not by_owner and f"agent.known_from <= {_CEILING}" not in select:
            yield f"{relation} is not held to the ceiling of its agent"
        if of_host and (by_id or f"{name}.agent = agent.agent AND" in select) and not held:
            yield f"{relation} is not held to the ceiling of its conversation"
        if relation == "vault.conversation" and f"{name}.conversation_id = %(conversation_id)s" in select and not held:
            yield f"{relation} is not held to the ceiling"


def problems_of_sessions(text: str) -> Iterator[str]:
    """What is wrong with the text of a query of sessions besides: the items of other agents do not exist."""
    for relation, name, select in _relations(" ".join(text.split())):
        alone = rf"\b{name}\.agent (?:=|IS NOT DISTINCT FROM) \(SELECT session\.agent FROM session\)"
        with_others = rf"\({name}\.agent, [^)]*\) = \((?:session|own)\.agent, "
        if relation in _OF_AGENTS and not re.search(f"{alone}|{with_others}", select):
            yield f"{relation} is not held to the agent"


def main_statement(text: str) -> str:
    """What stands behind the common table expressions."""
    return text[max((end for _, _, end in common_table_expressions(text)), default=0) :]


def _relations(text: str) -> Iterator[tuple[str, str, str]]:
    """(relation, the name it goes by, the SELECT it stands in) of every table or view that the text reads or changes.

    A common table expression of the same name counts only behind its end: inside of it, the name is the view's. What is
    changed is never an expression.
    """
    expressions = {name: end for name, _, end in common_table_expressions(text)}
    pattern = r"\b(FROM|JOIN|UPDATE|DELETE FROM) ((?:\w+\.)?\w+)(?: AS (\w+))?(?=[\s;)]|$)"
    for match in re.finditer(pattern, text):
        verb, relation, alias = match.groups()
        before = text[: match.start()].rstrip()
        if re.search(r"FOR NO KEY$|FOR$|DO$|DISTINCT$", before) or relation.lower() in _KEYWORDS:
            continue
        is_changed = verb in {"UPDATE", "DELETE FROM"}
        if not is_changed and expressions.get(relation, len(text)) <= match.start():
            continue
        yield relation, alias or relation.split(".")[-1], _around(text, match.start())


def common_table_expressions(text: str) -> Iterator[tuple[str, int, int]]:
    """(name, start, end) of every common table expression."""
    named = r"(?:WITH|,) (?:RECURSIVE )?(\w+)(?: \([\w, ]+\))? AS (?:(?:NOT )?MATERIALIZED )?\("
    for match in re.finditer(named, text):
        yield match[1], match.end(), _end(text, match.end())


def _end(text: str, start: int) -> int:
    """Where the parenthesis ends that began before *start*; the end of the text if none did."""
    depth = 1
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    return len(text)


def _around(text: str, place: int) -> str:
    """The text within the innermost parentheses around *place*; the main statement if there are none."""
    depth = 0
    for start in range(place - 1, -1, -1):
        depth += (text[start] == ")") - (text[start] == "(")
        if depth < 0:
            return text[start + 1 : _end(text, start + 1)]
    return main_statement(text)


def _untenanted(text: str) -> Iterator[str]:
    """Every table and view has its own `X.tenant = %(tenant)s` where it is named: nothing else keeps tenants apart."""
    for relation, name, select in _relations(text):
        if f"{name}.tenant = {_TENANT}" not in select:
            yield f"{relation} is not held to the tenant"


def _inserts(text: str) -> Iterator[str]:
    for match in re.finditer(r"INSERT INTO (\S+)( AS \w+)? \(([^)]*)\) (?:SELECT|VALUES) ?\(?([^,]*),", text):
        if not match[2]:
            yield f"the insert into {match[1]} has no alias"
        if match[3].split(",")[0].strip() != "tenant":
            yield f"the insert into {match[1]} does not begin with the tenant"
        if match[4].strip() != _TENANT:
            yield f"the insert into {match[1]} takes its tenant from elsewhere"


def _returning(text: str) -> Iterator[str]:
    for match in re.finditer(r"RETURNING (.*?)(?: \)|$|;)", text):
        for column in match[1].split(","):
            if not re.fullmatch(r"own\.\*|\w+\.\w+(?: AS \w+)?", column.strip()):
                yield f"RETURNING {column.strip()} does not say of which row"


def _clock(text: str) -> Iterator[str]:
    for match in re.finditer(r"(CASE\b.*?\bEND|coalesce\([^()]*(?:\([^()]*\)[^()]*)*\)|RETURNING [^)]*\))", text):
        if "clock()" in match[0]:
            yield "the clock is read inside CASE, coalesce or RETURNING"
    if re.search(r"\b(now\(\)|current_timestamp|localtimestamp|statement_timestamp)", text, re.IGNORECASE):
        yield "a clock that tests cannot replace"


def _volatile(text: str) -> Iterator[str]:
    for name in _VOLATILE:
        if re.search(rf"\b{name}\s*\(", text):
            yield f"{name} is volatile: ids are parameters"
    if re.search(r"\bCASE (?!WHEN\b)(?!%\(\w+\)s WHEN)\S+ WHEN", text):
        yield "CASE x WHEN looks its operator up each time"


def _locks(text: str) -> Iterator[str]:
    """A SELECT that locks reads one relation, so that the lock order is that of the text.

    It compares with no subquery by IN, which Citus cannot run under a lock. ANY(ARRAY(SELECT …)) does the same.
    """
    for select in selects(text):
        if re.search(r"FOR (?:NO KEY )?UPDATE|FOR (?:KEY )?SHARE", select):
            outer = select
            for _ in range(3):  # a parameter, in a function, in a subquery
                outer = re.sub(r"\([^()]*\)", "", outer)
            if len(re.findall(r"\b(?:FROM|JOIN)\b", outer)) > 1 or re.search(r"FROM [\w.]+(?: AS \w+)?\s*,", outer):
                yield "a SELECT that locks reads several relations"
            if re.search(r"\bIN \(\s*SELECT\b", select):
                yield "a SELECT that locks has IN (SELECT"


def _columns(text: str) -> Iterator[str]:
    """Citus cannot propagate the rows of a common table expression, or of a subquery in FROM, that has no columns."""
    if re.search(r"(?:\bAS (?:NOT )?(?:MATERIALIZED )?|\b(?:FROM|JOIN|LATERAL) )\(\s*SELECT FROM\b", text):
        yield "an expression has no columns"


def _views(text: str) -> Iterator[str]:
    """Citus changes no rows through a view: `for_cluster` names the table, so the query has the view's condition.

    The statements of the eraser are not checked here: they find the rows in its views.
    """
    changed = re.search(r"(?:DELETE FROM|INSERT INTO|UPDATE) (visible\w*|deleted_\w+) AS (\w+)", text)
    if changed and changed[1] != "deleted_item":
        yield f"{changed[1]} is a view"
    elif changed and f"{changed[2]}.delete_time IS NOT NULL" not in text:
        yield "deleted_item is changed without its condition"


def selects(text: str) -> Iterator[str]:
    """The bodies of CTEs, and what is left of the text."""
    depth, start, rest = 0, 0, []
    for place, character in enumerate(text):
        if character == "(":
            if depth == 0:
                rest.append(text[start:place])
                start = place + 1
            depth += 1
        elif character == ")":
            depth -= 1
            if depth == 0:
                yield text[start:place]
                start = place + 1
    yield "".join(rest) + text[start:]


def _forbidden(text: str) -> Iterator[str]:
    for pattern, why in (
        (r"\bOFFSET\b", "pages are found by key, never by number"),
        (r"\bSET (?:LOCAL )?ROLE\b", "the login is the role"),
        (r"pg_(?:try_)?advisory", "no advisory locks: any role may take any"),
        (r"\bSET TRANSACTION|ISOLATION LEVEL\b", "READ COMMITTED only"),
        (r"\bTRUNCATE\b", "nothing is lost"),
    ):
        if re.search(pattern, text, re.IGNORECASE):
            yield why
