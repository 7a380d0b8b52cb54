"""The texts of the named queries keep to the rules, and whatever does not is found."""

from __future__ import annotations

import re
from pathlib import Path

import muniment_server
from muniment_server.monitor.queries import HOST_FILES, SESSION_FILES
from muniment_server.postgres import queries
from tests.support.each import for_each
from tests.support.named_queries import EMBEDDER, FILES, RELATIONS, SCOPE, SERVED, once
from tests.support.query_lint import main_statement, problems, problems_of_hosts, problems_of_sessions, selects

SERVED_ONCE = once(SERVED)
SESSIONS = once(SESSION_FILES)
HOSTS = once(HOST_FILES)
PREDICATE = (
    "SELECT session.*, vault.clock() AS time FROM session"
    " WHERE session.tenant = %(tenant)s AND session.session_id = %(session_id)s"
)

BAD = {
    "SELECT item.name FROM item WHERE item.name = %(name)s": "item is not held to the tenant",
    "SELECT session.session_id FROM session JOIN visible ON visible.tenant = session.tenant"
    " WHERE session.tenant = %(tenant)s": "visible is not held to the tenant",
    "SELECT agent.agent FROM vault.agent WHERE tenant = %(tenant)s": "vault.agent is not held to the tenant",
    "UPDATE vault.session AS closed SET close_time = NULL WHERE closed.session_id = %(session_id)s":
        "vault.session is not held to the tenant",
    "DELETE FROM vault.agent AS gone WHERE gone.agent_id = %(agent_id)s": "vault.agent is not held to the tenant",
    "INSERT INTO audit (tenant, event_id) VALUES (%(tenant)s, %(id)s)": "the insert into audit has no alias",
    "INSERT INTO audit AS a (event_id, tenant) VALUES (%(id)s, %(tenant)s)": "does not begin with the tenant",
    "INSERT INTO audit AS a (tenant, agent) SELECT session.tenant, session.agent FROM session"
    " WHERE session.tenant = %(tenant)s": "takes its tenant from elsewhere",
    "INSERT INTO audit AS a (tenant, agent) VALUES (%(tenant)s, 1) RETURNING agent": "RETURNING agent does not say",
    "INSERT INTO audit AS a (tenant, x) VALUES (%(tenant)s, 1) RETURNING a.x, *": "RETURNING * does not say",
    "SELECT CASE WHEN i.x THEN vault.clock() ELSE i.t END FROM item AS i"
    " WHERE i.tenant = %(tenant)s": "the clock is read",
    "SELECT coalesce(i.t, vault.clock()) FROM item AS i WHERE i.tenant = %(tenant)s": "the clock is read",
    "SELECT now() FROM item WHERE item.tenant = %(tenant)s": "a clock that tests cannot replace",
    "INSERT INTO item AS i (tenant, id) SELECT %(tenant)s, gen_random_uuid()": "gen_random_uuid is volatile",
    "SELECT CASE i.kind WHEN 1 THEN 2 END FROM item AS i WHERE i.tenant = %(tenant)s": "CASE x WHEN",
    "SELECT session.* FROM session JOIN item ON TRUE WHERE session.tenant = %(tenant)s AND item.tenant = %(tenant)s"
    " FOR NO KEY UPDATE": "reads several relations",
    "WITH f AS (SELECT a.x FROM a, b WHERE a.tenant = %(tenant)s AND b.tenant = %(tenant)s FOR SHARE)"
    " SELECT f.x FROM f":
        "reads several relations",
    "WITH f AS (SELECT a.x FROM a WHERE a.tenant = %(tenant)s AND a.x IN (SELECT given.x FROM given) FOR NO KEY UPDATE)"
    " SELECT f.x FROM f":
        "a SELECT that locks has IN (SELECT",
    "WITH f AS (SELECT FROM a WHERE a.tenant = %(tenant)s FOR NO KEY UPDATE) SELECT a.x FROM a"
    " WHERE a.tenant = %(tenant)s AND EXISTS (SELECT FROM f)": "an expression has no columns",
    "SELECT count(*) FROM (SELECT FROM a WHERE a.tenant = %(tenant)s LIMIT 9) AS f": "an expression has no columns",
    "DELETE FROM deleted_item AS d WHERE d.tenant = %(tenant)s": "changed without its condition",
    "DELETE FROM visible AS d WHERE d.tenant = %(tenant)s": "visible is a view",
    "WITH item AS (SELECT item.* FROM item) SELECT item.name FROM item": "item is not held to the tenant",
    "WITH item AS (SELECT item.* FROM item WHERE item.tenant = %(tenant)s) SELECT i.name FROM item AS i"
    " WHERE EXISTS (SELECT FROM vault.item)": "vault.item is not held to the tenant",
    "WITH own AS (SELECT item.* FROM item WHERE item.tenant = %(tenant)s) SELECT item.name FROM item":
        "item is not held to the tenant",
    "SELECT item.name FROM item WHERE item.tenant = %(tenant)s OFFSET 10": "never by number",
    "SELECT pg_advisory_xact_lock(1) FROM item WHERE item.tenant = %(tenant)s": "no advisory locks",
}  # fmt: skip


@for_each("query", SERVED_ONCE)
def test_a_query_keeps_to_the_rules(query):
    assert list(problems(query.text)) == []


@for_each("text", BAD)
def test_a_text_that_breaks_a_rule_is_found(text):
    assert [found for found in problems(text) if BAD[text] in found] != []


@for_each("query", SERVED_ONCE)
def test_c03_a_query_that_forgot_its_tenant_is_found(query):
    """Each rule is one predicate away from being broken: taking any one of them away shows."""
    predicate = ".tenant = %(tenant)s"
    places = [place for place in range(len(query.text)) if query.text.startswith(predicate, place)]
    silent = [
        query.text[max(0, place - 40) : place]
        for place in places
        if not list(problems(query.text[:place] + ".tenant = 1" + query.text[place + len(predicate) :]))
    ]

    assert silent == []


@for_each("query", HOSTS)
def test_a_query_of_hosts_finds_no_agent_above_the_ceiling(query):
    """Taking any one of the predicates away shows."""
    assert list(problems_of_hosts(query.text)) == []

    places = [at.span() for at in re.finditer(r"(?:ceiling|known_from) <= %\(ceiling\)s", query.text)]
    changed = [f"{query.text[:start]}TRUE{query.text[end:]}" for start, end in places]
    assert [text for text in changed if not list(problems_of_hosts(text))] == []


_KNOWN = re.compile(r"monitor/host\.sql|sessions/queries\.sql|agents/queries\.sql (?:get_|list_agents)")
"""The queries for keys that know an agent, and need not reach its ceiling."""


@for_each("query", HOSTS)
def test_c25_only_reads_and_conversations_are_for_keys_that_know_an_agent(query):
    package, file = query.file
    place = f"{package.removeprefix('muniment_server.')}/{file} {query.name}"
    assert _KNOWN.match(place) or "known_from <= " not in query.text


_AGENT = re.compile(r"\b\w+\.agent(?= (?:=|IS NOT DISTINCT FROM) \(SELECT session)|(?<=\()\w+\.agent(?=, [^)]*\) = )")


@for_each("query", [*SESSIONS, *once({SCOPE: RELATIONS[SCOPE]})])
def test_c03_a_query_of_a_session_reads_the_items_of_its_agent_only(query):
    """Taking any one of the predicates away shows."""
    assert list(problems_of_sessions(query.text)) == []

    changed = [
        query.text[: at.start()] + "session.agent" + query.text[at.end() :] for at in _AGENT.finditer(query.text)
    ]
    assert [text for text in changed if not list(problems_of_sessions(text))] == []


@for_each("query", SESSIONS)
def test_c03_every_query_of_a_session_passes_the_session_predicate(query):
    """By the literal predicate: any function on the column would lock every open session of the level."""
    assert query.text.startswith(f"WITH session AS MATERIALIZED ({PREDICATE}")
    assert re.search(r"\bFROM session\b", main_statement(query.text)), (
        "select FROM session, and put what else is read beside it, such as an aggregate, into a LATERAL subquery"
    )


@for_each("relation", once(RELATIONS))
def test_a_relation_alone_keeps_to_the_rules(relation):
    """In front of a query, its name hides the view that it reads."""
    assert list(problems(relation.text.replace("SELECT session.agent FROM session", "SELECT 1"))) == []


@for_each("relation", once(RELATIONS))
def test_a_relation_reads_a_view_and_the_session_only(relation):
    """The name of a relation in front of it would hide the view, and with it another plan."""
    names = list(queries.load(*relation.file))
    before = set(names[: names.index(relation.name)])

    assert before & set(re.findall(r"FROM (\w+)", relation.text)) <= {"session"}


def test_what_passes_no_predicate_names_no_level_and_changes_vectors_only():
    """The embedder works for all agents of one level, in no session: the stated exception."""
    texts = {query.name: query.text.replace("vault.clock()", "CLOCK") for query in once(EMBEDDER)}

    assert [name for name, text in texts.items() if "muniment_" in text or "vault." in text] == []
    writes = re.compile(
        "(INSERT INTO|DELETE FROM) (?!(remote_embedding|embedding_list) AS)"
        "|(?<!NO KEY )UPDATE (?!(meaning|remote_embedding|embedding_list) AS|OF meaning)"
    )
    assert [name for name, text in texts.items() if writes.search(text)] == []
    assert [name for name, text in texts.items() if "DELETE" in text] == ["drop_lists"]


@for_each("query", once(FILES))
def test_a_select_that_locks_is_for_one_tenant(query):
    """Citus locks no rows of several tenants."""
    locking = re.compile(r"\bFOR (?:NO KEY )?UPDATE|\bFOR (?:KEY )?SHARE")
    text = query.text.replace("%(tenant)s", "TENANT")  # without the parentheses that `selects` looks for
    locks = [select for select in selects(text) if locking.search(select)]

    is_held = re.compile(r"\.tenant = TENANT|\(\w+\.tenant, [\w., ]*\) = \(TENANT")
    assert [select for select in locks if not is_held.search(select)] == []


@for_each("query", SESSIONS)
def test_c01_a_query_on_items_names_no_level(query):
    """The same text serves every level, by the search path of its role."""
    assert "muniment_" not in query.text


def test_c66_nothing_listens_or_notifies():
    """Notifications pass between all roles of a database, whatever they may read."""
    package = Path(muniment_server.__file__).parent
    uses = re.compile(r"(?i)\b(LISTEN|NOTIFY|UNLISTEN|pg_notify)\b")
    files = list(package.rglob("*.sql"))

    assert len(files) > len(SERVED)
    assert [str(file) for file in files if uses.search(file.read_text())] == []
