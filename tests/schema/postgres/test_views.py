"""The level views: what a level's connection can see and do, even with SQL of an attacker's choice."""

from __future__ import annotations

import uuid

import psycopg
import pytest

from muniment_server.domain.classification import Label
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from tests.support.databases import cloned
from tests.support.labels import FLOWS, FORBIDDEN
from tests.support.services import serving

BARRED = ("session", "agent", "link")


@pytest.fixture(scope="module")
def filled(postgres):
    """A database with a session and a memory `plan` of two agents at every label, with a canary for each label."""
    with cloned(postgres) as database:
        with serving(database) as service:
            for agent_id in ("alice", "bob"):
                for label in Label:
                    service.session(label, agent_id=agent_id).save_memory(key="plan", content=f"CANARY-{label.name}")
        yield database


def rows(connection, statement, *arguments):
    return connection.execute(statement.encode(), arguments or None).fetchall()


@pytest.mark.parametrize("view", ["visible", "visible_revision"])
@pytest.mark.parametrize("label", Label)
def test_c01_the_items_a_connection_sees_are_those_that_may_flow_to_its_label(filled, label, view):
    """Without any WHERE: no statement can be written that reads more. Each row says what it is, and tells the truth."""
    with filled.connect(label.role) as connection:
        found = {
            (Label(row.label), row.level, row.content)
            for row in rows(connection, f"SELECT label, level, content FROM {view}")
            if row.content  # first blocks have none
        }

    assert found == {(own, own.level, f"CANARY-{own.name}") for own in FLOWS[label]}


@pytest.mark.parametrize(("label", "other"), FORBIDDEN)
def test_c07_a_view_with_its_owners_rights_would_leak(filled, label, other):
    """Why `security_invoker` is pinned: the same view without it shows any table to a role without any grant."""
    with filled.as_admin() as admin, admin.transaction(force_rollback=True):
        admin.execute("SET LOCAL ROLE muniment_owner")
        for name, option in (("leak", "false"), ("wall", "true")):
            admin.execute(
                f"CREATE VIEW {label.role}.{name} WITH (security_invoker = {option}) AS"
                f" SELECT content FROM {other.role}.item".encode()
            )
            admin.execute(f"GRANT SELECT ON {label.role}.{name} TO {label.role}".encode())
        admin.execute(f"SET LOCAL ROLE {label.role}".encode())
        leaked = {content for (content,) in rows(admin, f"SELECT content FROM {label.role}.leak") if content}
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            rows(admin, f"SELECT content FROM {label.role}.wall")

    assert leaked == {f"CANARY-{other.name}"}


HOSTILE = """
CREATE FUNCTION pg_temp.tell(session_id uuid) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS
$$ BEGIN RAISE NOTICE 'heard %', session_id; RETURN true; END $$
"""


def heard(admin, role):
    """The sessions that a cheap, talkative predicate of *role* hears of."""
    output = []

    def handler(notice: psycopg.errors.Diagnostic) -> None:
        output.append(notice.message_primary or "")

    admin.add_notice_handler(handler)
    try:
        admin.execute(HOSTILE)
        admin.execute(f"SET LOCAL ROLE {role}".encode())
        admin.execute(f"SET LOCAL search_path = {role}, pg_temp".encode())
        admin.execute("SELECT FROM session WHERE pg_temp.tell(session_id)")
    finally:
        admin.remove_notice_handler(handler)
    return {uuid.UUID(message.removeprefix("heard ")) for message in output if message.startswith("heard ")}


def sessions_at(admin, *labels):
    """The sessions of these labels."""
    found = rows(
        admin,
        "SELECT session_id FROM vault.session JOIN vault.conversation USING (tenant, agent, conversation_id)"
        " WHERE 2 * taint - conversation.trusted::integer = ANY(%s)",
        [label.value for label in labels],
    )
    return {session_id for (session_id,) in found}


@pytest.mark.parametrize("label", Label)
def test_c08_a_hostile_predicate_sees_no_session_of_another_label(filled, label):
    with filled.as_admin() as admin, admin.transaction(force_rollback=True):
        own = sessions_at(admin, label)

        assert heard(admin, label.role) == own


@pytest.mark.parametrize("label", Label)
def test_c08_without_the_barrier_a_hostile_predicate_would(filled, label):
    """Why `security_barrier` is pinned."""
    with filled.as_admin() as admin, admin.transaction(force_rollback=True):
        everybody = sessions_at(admin, *Label)
        admin.execute(f"ALTER VIEW {label.role}.session RESET (security_barrier)".encode())

        assert heard(admin, label.role) == everybody


@pytest.mark.parametrize("label", Label)
def test_c08_the_view_on_sessions_shows_no_token(filled, label):
    with filled.connect(label.role) as connection:
        columns = rows(
            connection,
            "SELECT attname FROM pg_attribute WHERE attrelid = 'session'::regclass AND attnum > 0 ORDER BY attnum",
        )
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            rows(connection, "SELECT token_hash FROM vault.session")

    assert [name for (name,) in columns] == [
        "tenant", "agent", "session_id", "conversation_id", "taint", "create_time", "expire_time", "fence",
        "ceiling", "label", "read_only",
    ]  # fmt: skip


@pytest.mark.parametrize("label", Label)
@pytest.mark.parametrize("view", BARRED)
def test_c08_a_view_shows_only_what_concerns_open_sessions_of_its_label(filled, label, view):
    with filled.as_owner() as owner:
        own = sessions_at(owner, label)
    with filled.connect(label.role) as connection:
        found = {session_id for (session_id,) in rows(connection, f"SELECT session_id FROM {view}")}

    assert found <= own
    assert found == (set() if view == "link" else own)


@pytest.mark.parametrize("label", Label)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE session SET taint = 1",
        "UPDATE session SET fence = 1",
        "UPDATE session SET fence = 0, taint = 1",
        "UPDATE session SET expire_time = now() + interval '9 days'",
        "UPDATE session SET conversation_id = 'other'",
        "UPDATE session SET label = 1",
        "UPDATE vault.conversation SET taint = 1",
        "UPDATE vault.conversation SET trusted = true",
        "UPDATE vault.session SET trusted = true",
        "UPDATE vault.session SET close_time = NULL",
        "DELETE FROM session",
        "INSERT INTO session (tenant) VALUES (1)",
    ],
)
def test_c49_the_right_that_row_locks_need_cannot_change_a_session(filled, label, statement):
    with filled.connect(label.role) as connection, pytest.raises(psycopg.Error):
        connection.execute(statement.encode())


@pytest.mark.parametrize("label", Label)
def test_c49_the_right_that_row_locks_need_does_lock(filled, label):
    with filled.connect(label.role) as one, filled.connect(label.role) as other:
        (session,) = rows(one, "SELECT tenant, session_id FROM session ORDER BY session_id LIMIT 1")
        lock = "SELECT FROM session WHERE tenant = %s AND session_id = %s FOR NO KEY UPDATE NOWAIT"
        with one.transaction():
            rows(one, lock, *session)
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute(lock, session)


def test_c49_a_right_on_the_whole_view_could_lower_the_taint(filled):
    """Why UPDATE is granted on one meaningless column: on all of a plain view the taint falls."""
    with filled.as_admin() as admin, admin.transaction(force_rollback=True):
        admin.execute("SET LOCAL ROLE muniment_owner")
        admin.execute(
            "CREATE VIEW muniment_internal.plain WITH (security_barrier) AS SELECT * FROM vault.conversation"
            " WHERE taint = 2"
        )
        admin.execute("GRANT SELECT, UPDATE ON muniment_internal.plain TO muniment_internal")
        admin.execute("SET LOCAL ROLE muniment_internal")
        lowered = admin.execute("UPDATE muniment_internal.plain SET taint = 1").rowcount

    assert lowered == 4


_INSERT = (
    "INSERT INTO {} (tenant, agent, kind, name, level, item_id, change_id, content)"
    " VALUES (%s, %s, 1, 'x', {}, %s, %s, 'x')"
)


@pytest.mark.parametrize("label", Label)
def test_a_row_is_written_at_the_own_label_only(filled, label):
    """An insert that names another level is refused by the CHECK of the table, and one into another table by grant."""
    with filled.connect(label.role) as connection:
        (row,) = rows(connection, "SELECT tenant, agent FROM session LIMIT 1")
        values = [row.tenant, row.agent, uuid.uuid4(), uuid.uuid4()]
        for level in {other.level for other in Label} - {label.level}:
            with pytest.raises(psycopg.errors.CheckViolation):
                connection.execute(_INSERT.format("item", level.value).encode(), values)
        for other in set(Label) - {label}:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(_INSERT.format(f"{other.role}.item", other.level.value).encode(), values)


@pytest.mark.parametrize("label", Label)
def test_nothing_that_was_written_can_be_read_back_from_the_audit(filled, label):
    with filled.connect(label.role) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        rows(connection, "SELECT count(*) FROM audit")


@pytest.mark.parametrize(("label", "other"), FORBIDDEN)
def test_c01_the_ledger_of_a_label_that_does_not_flow_here_cannot_be_read(filled, label, other):
    with filled.connect(label.role) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        rows(connection, f"SELECT count(*) FROM {other.role}.revision")


def test_the_control_role_reads_no_content(filled):
    with filled.connect("muniment_control") as connection:
        for label in Label:
            for column in (
                "item.content",
                "item.name",
                "item.tags",
                "chunk.stems",
                "chunk.grams",
                "chunk.name",
                "stat.language",
            ):
                table = column.partition(".")[0]
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    rows(connection, f"SELECT {column} FROM {label.role}.{table}")


def test_the_auditor_reads_no_item_and_no_token(filled):
    with filled.connect("muniment_auditor") as connection:
        for statement in (
            "SELECT content FROM muniment_public.item", "SELECT token_hash FROM vault.session",
            "SELECT key_hash FROM vault.host_key", "SELECT display_name FROM vault.agent",
        ):  # fmt: skip
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                rows(connection, statement)
        assert rows(connection, "SELECT count(*) FROM audit")[0][0] > 0


_BOUNDS = {
    "jit": "off",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "5s",
    "synchronous_commit": "on",
    "default_transaction_read_only": "off",
    "search_path": '"$user"',
}
_BOUNDS_SINCE_17 = {"transaction_timeout": "1min"}
_POSTGRES_17 = 17_00_00


@pytest.mark.parametrize("role", ["muniment_public", "muniment_restricted", "muniment_public_trusted"])
def test_a_level_has_the_settings_that_bound_it(filled, role):
    """Whatever the role has set for itself: injected SQL may do that."""
    with filled.connect(role) as connection:
        connection.execute("ALTER ROLE CURRENT_USER SET synchronous_commit = off")
        connection.execute("ALTER ROLE CURRENT_USER SET lock_timeout = 0")
    served = RoleDatabase(filled.conninfo, pool_sizes=SINGLE)
    try:
        with served.connection(role, Deadline()) as connection:
            bounds = _BOUNDS if connection.info.server_version < _POSTGRES_17 else {**_BOUNDS, **_BOUNDS_SINCE_17}
            found = {name: rows(connection, f"SHOW {name}")[0][0] for name in bounds}
    finally:
        served.close()
        with filled.connect(role) as connection:
            connection.execute("ALTER ROLE CURRENT_USER RESET ALL")

    assert found == bounds


@pytest.mark.parametrize("role", ["muniment_public", "muniment_restricted", "muniment_public_trusted"])
def test_no_level_reaches_large_objects(filled, role):
    """They belong to no schema: one level could leave there what a lower one reads."""
    with filled.connect(role) as connection:
        for statement in ("SELECT lo_create(0)", "SELECT lo_from_bytea(0, 'x')", "SELECT lo_get(1)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
