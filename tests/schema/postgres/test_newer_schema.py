"""A schema that is newer than the server: accepted if its migration allows it, and if its grants are those recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import psycopg
import pytest

from muniment_server.monitor import grants
from muniment_server.postgres import migrate
from muniment_server.postgres.migrate import Migration
from muniment_server.runtime import schema
from tests.support.databases import Database

_OWN = migrate.newest_version()
_ALLOWS_US = f"-- oldest server: {_OWN}\n"
_OF_0_1_0 = 6
"""The schema version of 0.1.0."""
_CHANGE = """
CREATE TABLE vault.later (number integer);
GRANT SELECT ON vault.later TO muniment_control;
REVOKE INSERT ON muniment_public.stat FROM muniment_public;
"""
_NEW_GRANTS = {"muniment_owner: owns on vault.later", "muniment_control: SELECT on vault.later"}
_OLD_GRANT = "muniment_public: INSERT on muniment_public.stat"


@contextmanager
def _later_version(text: str) -> Iterator[None]:
    """The code of the next version, which has one more migration."""
    later = (*migrate.migrations(), Migration(_OWN + 1, "9999_later.sql", text))
    names = {*grants.grant_names(), *_NEW_GRANTS} - {_OLD_GRANT}
    with patch.object(migrate, "migrations", lambda: later), patch.object(grants, "grant_names", lambda: names):
        yield


def _problems(database: Database) -> list[str]:
    with database.connect("muniment_control") as connection:
        return grants.problems(connection, connections=1, durable=False)


@pytest.fixture
def upgraded(database: Database) -> Callable[[str], list[str]]:
    """Upgrade the database with a migration; return the problems that this version finds."""

    def upgrade(text: str) -> list[str]:
        with _later_version(text):
            schema.migrate(database.admin)
        return _problems(database)

    return upgrade


def test_a_newer_schema_that_allows_this_server_is_accepted(upgraded, database):
    assert upgraded(_ALLOWS_US + _CHANGE) == []

    assert schema.migrate(database.admin) == []
    assert _problems(database) == []  # the older version's command has not replaced the record


def test_a_newer_schema_that_does_not_allow_it_is_refused_with_the_right_advice(upgraded):
    (problem,) = upgraded(_CHANGE)

    assert problem == f"the schema is at version {_OWN + 1}, this server needs {_OWN}: upgrade this server"


def test_an_older_schema_is_refused_with_the_right_advice(database):
    with database.as_owner() as owner:
        owner.execute("DELETE FROM vault.migration WHERE version = %s", [_OWN])

    assert [f"this server needs {_OWN}: run `muniment migrate`" in problem for problem in _problems(database)] == [True]


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("GRANT SELECT ON muniment_restricted.item TO muniment_public", "SELECT on muniment_restricted.item"),
        ("GRANT UPDATE ON vault.later TO muniment_control", "UPDATE on vault.later"),
        ("GRANT INSERT ON muniment_public.stat TO muniment_public", "INSERT on muniment_public.stat"),
        ("REVOKE INSERT ON muniment_public.audit FROM muniment_public", "missing: muniment_public: INSERT on"),
        ("UPDATE vault.migration SET grants = '{}'", "not in the matrix"),
    ],
)
def test_faults_in_the_grants_of_a_newer_schema_are_found(upgraded, database, fault, found):
    upgraded(_ALLOWS_US + _CHANGE)
    with database.as_owner() as owner:
        owner.execute(fault.encode())

    assert any(found in problem for problem in _problems(database))


_AGENTS_OF_0_1_0 = """
INSERT INTO vault.tenant (name) VALUES ('mixed'), ('low'), ('without keys');
INSERT INTO vault.host_key (tenant, host_key_id, key_hash, ceiling, revoke_time)
VALUES (1, gen_random_uuid(), 'a', 3, now()), (1, gen_random_uuid(), 'b', 1, NULL),
       (2, gen_random_uuid(), 'c', 2, NULL);
INSERT INTO vault.agent (tenant, agent, agent_id, display_name, language, memory_enabled, user_profile_enabled,
                         memory_char_limit, user_char_limit)
SELECT tenant, tenant, name, '', '', true, true, 1, 1 FROM vault.tenant
"""


def _schema_of_0_1_0(postgres, name) -> Database:
    """A database as 0.1.0 made it. Its servers recorded nothing."""
    of_0_1_0 = migrate.migrations()[:_OF_0_1_0]
    with psycopg.connect(postgres.conninfo(user="postgres", dbname="postgres"), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
    old = Database(postgres, name)
    with patch.object(migrate, "migrations", lambda: of_0_1_0), patch.object(migrate, "_record"):
        migrate.migrate(old.admin)
    return old


def test_agents_of_0_1_0_get_the_highest_ceiling_that_a_key_of_their_tenant_has_had(postgres):
    old = _schema_of_0_1_0(postgres, "agents_of_0_1_0")
    with old.as_owner() as owner:
        owner.execute(_AGENTS_OF_0_1_0)
    schema.migrate(old.admin)

    with old.as_owner() as owner:
        found = owner.execute("SELECT agent_id, ceiling FROM vault.agent").fetchall()
    assert dict(found) == {"mixed": 3, "low": 2, "without keys": 4}


def test_the_schema_of_0_1_0_is_upgraded(postgres):
    old = _schema_of_0_1_0(postgres, "of_0_1_0")

    before = _problems(old)
    assert before == [] if _OWN == _OF_0_1_0 else "muniment migrate" in before[0]
    schema.migrate(old.admin)
    assert _problems(old) == []
    with old.as_owner() as owner:
        recorded = owner.execute("SELECT grants FROM vault.migration ORDER BY version DESC LIMIT 1").fetchall()
    assert recorded == [(grants.grant_names(),)]
