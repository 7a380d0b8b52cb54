"""The schema as the catalog says it keeps to the rules, and whatever does not is found."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

LINT = Path(__file__).with_name("catalog.sql").read_bytes()
INTERNAL_ITEM = "muniment_internal.item"

FAULTS = {
    "CREATE TABLE vault.t (x int)": "vault.t has no tenant that is never null",
    "CREATE TABLE vault.t (tenant bigint, x int)": "vault.t has no tenant that is never null",
    "CREATE TABLE vault.t (tenant integer NOT NULL)": "vault.t has no tenant that is never null",
    "CREATE TABLE vault.t (tenant bigint NOT NULL)": "vault.t has no primary key",
    "CREATE TABLE vault.t (tenant bigint NOT NULL, x int PRIMARY KEY)": "vault.t has a unique index that",
    "CREATE UNIQUE INDEX ON muniment_internal.item (item_id)": f"{INTERNAL_ITEM} has a unique index that",
    "CREATE INDEX ON muniment_internal.item (agent)": f"{INTERNAL_ITEM} has an index that does not begin",
    "CREATE TABLE vault.t (tenant bigint NOT NULL, x bigint, PRIMARY KEY (tenant, x));"
    " ALTER TABLE vault.t ADD FOREIGN KEY (x) REFERENCES vault.tenant": "at both ends",
    "ALTER TABLE vault.session ADD FOREIGN KEY (tenant, agent) REFERENCES vault.agent ON DELETE SET NULL": "sets null",
    "CREATE FUNCTION vault.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
    " CREATE TRIGGER t BEFORE INSERT ON muniment_internal.item FOR EACH ROW"
    " EXECUTE FUNCTION vault.f()": "has a trigger",
    "CREATE RULE r AS ON DELETE TO muniment_internal.item DO INSTEAD NOTHING": "has a rule",
    "ALTER TABLE muniment_internal.item ENABLE ROW LEVEL SECURITY": "has row-level security",
    "CREATE POLICY p ON muniment_internal.item": "has row-level security",
    "ALTER TABLE muniment_internal.shelf ADD EXCLUDE USING gist (int8range(tenant, agent) WITH &&)": "exclusion",
    "ALTER TABLE muniment_internal.item ALTER COLUMN item_id SET DEFAULT gen_random_uuid()": "makes an id",
    "ALTER TABLE muniment_internal.item ALTER COLUMN update_time SET DEFAULT clock_timestamp()": "cannot replace",
    "ALTER TABLE muniment_internal.item ALTER COLUMN update_time SET DEFAULT now()": "cannot replace",
    "ALTER TABLE muniment_internal.shelf ADD COLUMN n bigint GENERATED ALWAYS AS IDENTITY": "numbers its rows",
    "ALTER VIEW muniment_internal.visible RESET (security_invoker)": "is a window with rights of its owner",
    "ALTER VIEW muniment_internal.session RESET (security_barrier)": "is a window with rights of its owner",
    "CREATE VIEW muniment_internal.all_items AS SELECT * FROM muniment_restricted.item": "rights of its owner",
    "GRANT UPDATE ON muniment_internal.session TO muniment_internal": "somebody may write: UPDATE",
    "GRANT UPDATE (taint) ON muniment_internal.session TO muniment_internal": "other than its fence: taint",
    "GRANT INSERT (tenant) ON muniment_internal.item TO muniment_internal": "has INSERT on columns",
    "GRANT UPDATE (name) ON muniment_internal.item TO muniment_internal": "lets a key be updated: name",
    "GRANT UPDATE (agent) ON vault.agent TO muniment_control": "lets a key be updated: agent",
    "GRANT UPDATE (agent_id) ON vault.agent TO muniment_internal": "lets a key be updated: agent_id",
    "ALTER VIEW muniment_internal.erasable_item RESET (security_barrier)": "is a window with rights of its owner",
    "GRANT DELETE ON muniment_internal.erasable_item TO muniment_internal": "somebody may write: DELETE",
    "GRANT DELETE ON muniment_internal.visible TO muniment_eraser": "somebody may write: DELETE",
    "ALTER TABLE muniment_internal.item DROP CONSTRAINT item_is_internal": "does not pin its level",
    "ALTER TABLE vault.shared_block ALTER COLUMN label TYPE text COLLATE \"default\"": "by a collation",
    "ALTER TABLE vault.agent ADD COLUMN nick varchar(10)": "cuts texts short: nick",
    "ALTER TABLE muniment_internal.revision ADD COLUMN read_time timestamp": "a time without a zone",
    "ALTER TABLE muniment_internal.shelf SET UNLOGGED": "is not durable",
}  # fmt: skip


def faults(connection):
    return [f"{what} {fault}" for what, fault in connection.execute(LINT).fetchall()]


def test_the_schema_keeps_to_the_rules(migrated):
    with migrated.as_owner() as owner:
        assert faults(owner) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_schema_is_found(migrated, fault):
    with migrated.as_admin() as admin, admin.transaction(force_rollback=True):
        admin.execute(fault.encode())
        found = faults(admin)

    assert [each for each in found if FAULTS[fault] in each] != []


@pytest.mark.parametrize(
    "row",
    [
        {"level": 1}, {"level": 3}, {"kind": 0}, {"kind": 5}, {"content": "''"}, {"tier": 2}, {"tier": 3},
        {"expire_time": "now() - interval '1 day'"}, {"thread": "'t'"}, {"event_time": "now()"},
        {"kind": 2, "expire_time": "now() + interval '1 day'"}, {"kind": 4}, {"tenant": 10**9}, {"content": "NULL"},
    ],
    ids=str,
)  # fmt: skip
def test_a_row_that_breaks_a_rule_cannot_be_written_by_anybody(migrated, row):
    """The level is pinned, like everything that later code relies on."""
    columns = {
        "tenant": 0, "agent": 1, "kind": 1, "name": "'n'", "item_id": "gen_random_uuid()",
        "change_id": "gen_random_uuid()", "content": "'text'", "update_time": "now()",
    }  # fmt: skip
    with migrated.as_owner() as owner, owner.transaction(force_rollback=True):
        tenant = owner.execute("INSERT INTO vault.tenant (name) VALUES ('rules') RETURNING tenant").fetchone()[0]
        owner.execute(
            "INSERT INTO vault.agent (tenant, agent, agent_id, display_name, language, memory_enabled,"
            " user_profile_enabled, memory_char_limit, user_char_limit) VALUES (%s, 1, 'a', '', '', true, true, 1, 1)",
            [tenant],
        )
        columns["tenant"] = tenant
        written = [_written(owner, columns), _written(owner, columns | row)]

    assert written == [True, False]


def _written(owner, columns):
    names, values = ", ".join(columns), ", ".join(map(str, columns.values()))
    try:
        with owner.transaction(force_rollback=True):
            owner.execute(f"INSERT INTO {INTERNAL_ITEM} ({names}) VALUES ({values})".encode())
            owner.execute("SET CONSTRAINTS ALL IMMEDIATE")
    except psycopg.IntegrityError:
        return False
    return True
