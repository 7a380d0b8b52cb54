"""The grants are the policy: as the catalog says them, compared with the matrix; and every fault is found."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.rows import namedtuple_row

from muniment_server.monitor import grants

FAULTS = {
    "GRANT SELECT ON muniment_restricted.item TO muniment_public": "SELECT on muniment_restricted.item",
    "GRANT SELECT (content) ON muniment_restricted.item TO muniment_public": "SELECT (content) on",
    "GRANT SELECT ON muniment_internal.revision TO muniment_public": "SELECT on muniment_internal.revision",
    "GRANT SELECT ON muniment_restricted.item TO PUBLIC": "PUBLIC: SELECT on muniment_restricted.item",
    "GRANT INSERT ON muniment_public.item TO muniment_restricted": "INSERT on muniment_public.item",
    "GRANT UPDATE (content) ON muniment_public.item TO muniment_restricted": "UPDATE (content) on muniment_public",
    "GRANT DELETE ON muniment_public.item TO muniment_public": "DELETE on muniment_public.item",
    "GRANT TRUNCATE ON muniment_public.audit TO muniment_control": "TRUNCATE on muniment_public.audit",
    "GRANT REFERENCES ON muniment_restricted.item TO muniment_public": "REFERENCES on muniment_restricted.item",
    "GRANT TRIGGER ON muniment_restricted.item TO muniment_public": "TRIGGER on muniment_restricted.item",
    "GRANT UPDATE (level) ON muniment_public.item TO muniment_public": "UPDATE (level) on muniment_public.item",
    "GRANT UPDATE ON muniment_public.session TO muniment_public": "UPDATE on muniment_public.session",
    "GRANT UPDATE (taint) ON vault.conversation TO muniment_public": "UPDATE (taint) on vault.conversation",
    "GRANT SELECT ON vault.session TO muniment_public": "SELECT on vault.session",
    "GRANT UPDATE ON vault.tenant_tenant_seq TO muniment_control": "UPDATE on vault.tenant_tenant_seq",
    "GRANT USAGE ON SCHEMA muniment_restricted TO muniment_public": "USAGE on schema muniment_restricted",
    "REVOKE INSERT ON muniment_public.audit FROM muniment_public": "missing: muniment_public: INSERT on",
    "REVOKE SELECT ON muniment_public.item FROM muniment_restricted": "missing: muniment_restricted: SELECT on",
    "REVOKE UPDATE (fence) ON muniment_internal.session FROM muniment_internal": "missing: muniment_internal: UPDATE",
    "GRANT muniment_restricted TO muniment_public": "is a member of muniment_restricted",
    "GRANT muniment_owner TO muniment_control": "is a member of muniment_owner",
    "GRANT pg_read_all_data TO muniment_internal": "is a member of pg_read_all_data",
    "CREATE ROLE spy; GRANT muniment_restricted TO spy": "spy: is a member of muniment_restricted",
    "CREATE ROLE spy; GRANT SELECT ON muniment_restricted.item TO spy": "spy: SELECT on muniment_restricted.item",
    "GRANT TEMP ON DATABASE {database} TO PUBLIC": "PUBLIC: TEMPORARY on database",
    "GRANT CONNECT ON DATABASE {database} TO PUBLIC": "PUBLIC: CONNECT on database",
    "GRANT CREATE ON DATABASE {database} TO muniment_public": "muniment_public: CREATE on database",
    "GRANT CREATE ON SCHEMA public TO PUBLIC": "PUBLIC: CREATE on schema public",
    "GRANT CREATE ON SCHEMA muniment_public TO muniment_public": "CREATE on schema muniment_public",
    "ALTER ROLE muniment_public SUPERUSER": "muniment_public: superuser",
    "ALTER ROLE muniment_public BYPASSRLS": "muniment_public: bypasses row security",
    "ALTER ROLE muniment_control CREATEROLE": "muniment_control: creates roles",
    "ALTER ROLE muniment_control REPLICATION": "muniment_control: replicates",
    "ALTER TABLE muniment_public.item OWNER TO muniment_public": "muniment_public: owns on muniment_public.item",
    "ALTER SCHEMA muniment_restricted OWNER TO muniment_control": "owns on schema muniment_restricted",
    "ALTER VIEW muniment_public.visible RESET (security_invoker)": "missing: view: security_invoker=true",
    "ALTER VIEW muniment_public.visible SET (security_invoker = false)": "security_invoker=false",
    "ALTER VIEW muniment_public.session RESET (security_barrier)": "missing: view: security_barrier=true",
    "ALTER TABLE muniment_public.item DROP CONSTRAINT item_is_public": "missing: pinned: CHECK ((level = 1))",
    "ALTER TABLE muniment_public.audit DROP CONSTRAINT audit_is_public": "missing: pinned: CHECK ((level = 1))",
    "ALTER TABLE muniment_public.item DROP CONSTRAINT item_is_public,"
    " ADD CONSTRAINT item_is_public CHECK (level = 1) NOT VALID": "missing: pinned: CHECK ((level = 1))",
    "CREATE VIEW muniment_public.leak AS SELECT * FROM muniment_restricted.item": "owns on muniment_public.leak",
    "CREATE FUNCTION vault.leak() RETURNS text LANGUAGE sql SECURITY DEFINER"
    " RETURN (SELECT content FROM muniment_restricted.item LIMIT 1)": "EXECUTE on function vault.leak",
    "ALTER DEFAULT PRIVILEGES FOR ROLE muniment_owner GRANT SELECT ON TABLES TO muniment_public": "muniment_public",
    "CREATE VIEW public.leak AS SELECT * FROM muniment_restricted.item;"
    " GRANT SELECT ON public.leak TO muniment_public": "public.leak",
    "CREATE FUNCTION public.leak() RETURNS text LANGUAGE sql SECURITY DEFINER"
    " RETURN (SELECT content FROM muniment_restricted.item LIMIT 1)": "public.leak",
    "GRANT SET ON PARAMETER session_replication_role TO muniment_public": "session_replication_role",
}
"""What spoils the grants, and a part of what must be said of it."""


def test_on_a_migrated_database_the_grants_equal_the_matrix(migrated):
    with migrated.as_admin() as admin:
        assert grants.differences(admin) == []


@pytest.mark.parametrize("role", ["muniment_control", "muniment_auditor", "muniment_public"])
def test_every_serving_role_may_compare_them(migrated, role):
    """The server looks as the role that it is."""
    with migrated.connect(role) as connection:
        assert grants.differences(connection) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_c75_a_fault_in_the_grants_is_found(migrated, fault):
    with migrated.as_admin() as admin, admin.transaction(force_rollback=True):
        admin.execute(fault.format(database=migrated.name).encode())
        found = grants.differences(admin)

    assert [difference for difference in found if FAULTS[fault] in difference] != []


def test_a_database_without_the_schema_is_refused(postgres):
    conninfo = postgres.conninfo(user="postgres", dbname="postgres")
    with psycopg.connect(conninfo, row_factory=namedtuple_row) as bare:
        found = grants.problems(bare, connections=1, durable=False)

    assert [problem for problem in found if "muniment migrate" in problem] != []


@pytest.mark.parametrize("connections", [190, 191])
def test_more_connections_than_the_server_has_are_refused(migrated, connections):
    with migrated.as_admin() as admin:
        found = grants.problems(admin, connections=connections, durable=False)

    assert len(found) == (connections > 190)


def test_a_database_without_fsync_is_refused(migrated):
    """That of the tests does, on purpose."""
    with migrated.as_admin() as admin:
        assert [problem for problem in grants.problems(admin, connections=1) if "fsync" in problem] != []


def test_another_version_of_the_schema_is_refused(migrated):
    with migrated.as_admin() as admin, admin.transaction(force_rollback=True):
        admin.execute("INSERT INTO vault.migration (version, name) VALUES (9999, 'from the future')")
        found = grants.problems(admin, connections=1, durable=False)

    assert [problem for problem in found if "schema is at version 9999" in problem] != []
