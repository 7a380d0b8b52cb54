"""Settings with which Postgres would log parameters: the doctor names each, and the gate closes for what is certain."""

from __future__ import annotations

import psycopg
import pytest

from muniment_server.monitor import gate, log_settings
from muniment_server.postgres import roles
from muniment_server.postgres.placement import Databases
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.runtime import databases
from tests.support.databases import Database, cloned, unpinned_postgres
from tests.support.services import serving

CERTAIN, POSSIBLE = True, False
SETTINGS = {
    "log_statement": {"all": CERTAIN, "mod": CERTAIN, "ddl": POSSIBLE},
    "log_min_duration_statement": {"0": CERTAIN, "250": CERTAIN, "32768": CERTAIN, "60000": POSSIBLE},
    "log_min_duration_sample": {"0": CERTAIN, "60000": POSSIBLE},
    "log_transaction_sample_rate": {"0.01": CERTAIN},
    "log_parameter_max_length_on_error": {"64": CERTAIN, "-1": CERTAIN},
    "auto_explain.log_min_duration": {"0": CERTAIN, "60000": POSSIBLE},
}
CASES = [(name, value, certain) for name, values in SETTINGS.items() for value, certain in values.items()]
AUDITED = {"pgaudit.log": "write", "pgaudit.log_parameter": "on"}


@pytest.fixture(scope="module")
def external():
    """A Postgres with the settings for logs that it comes with."""
    with unpinned_postgres(durable=True) as server:  # or the gate stays closed
        yield server


@pytest.fixture
def database(external):
    with cloned(external) as clone:
        yield clone


@pytest.fixture
def admin(database):
    """A session whose settings may be changed."""
    with database.as_admin() as connection:
        if not connection.execute("SELECT FROM pg_available_extensions WHERE name = 'auto_explain'").fetchone():
            connection.execute("LOAD 'auto_explain'")
        yield connection


def choose(connection: psycopg.Connection, **settings: str) -> None:
    for name, value in settings.items():
        connection.execute("SELECT set_config(%s, %s, false)", [name, value])


def test_the_defaults_log_nothing(admin):
    assert log_settings.findings(admin) == []


@pytest.mark.parametrize(("name", "value", "certain"), CASES)
def test_each_setting_is_found(admin, name, value, certain):
    choose(admin, **{name: value})
    (found,) = log_settings.findings(admin)

    assert name.partition(".")[0] in found.text
    assert found.closes_gate is certain
    assert gate.problems_of(admin, connections=1)["log_settings"] == ([found.text] if certain else [])


@pytest.mark.parametrize(("name", "value", "_"), [case for case in CASES if not case[0].endswith("on_error")])
def test_without_parameters_a_statement_may_be_logged(admin, name, value, _):
    choose(admin, **{name: value, "log_parameter_max_length": "0", "auto_explain.log_parameter_max_length": "0"})

    assert log_settings.findings(admin) == []


def test_a_sample_of_nothing_is_nothing(admin):
    choose(admin, log_min_duration_sample="0", log_statement_sample_rate="0")

    assert log_settings.findings(admin) == []


def test_a_library_that_is_not_loaded_is_not_asked(admin):
    """Its settings may be set all the same: then they are placeholders."""
    choose(admin, **AUDITED)

    assert log_settings.findings(admin) == []


@pytest.mark.parametrize(("log", "certain"), [("write", CERTAIN), ("none", POSSIBLE)])
def test_pgaudit_with_parameters_is_found(admin, monkeypatch, log, certain):
    """In a table in the place of the settings: no Postgres here has the library."""
    admin.execute("CREATE TEMP TABLE loaded (name text, setting text, unit text)")
    for name, setting in {"pgaudit.log": log, "pgaudit.log_parameter": "on"}.items():
        admin.execute("INSERT INTO loaded VALUES (%s, %s)", [name, setting])
    text = log_settings._QUERIES["log_findings"].replace("pg_catalog.pg_settings", "loaded")
    monkeypatch.setattr(log_settings, "_QUERIES", {"log_findings": text})

    (found,) = log_settings.findings(admin)

    assert "set pgaudit.log_parameter = off" in found.text
    assert found.closes_gate is certain


@pytest.fixture
def logging_all(database: Database):
    """Switches a setting of the whole database on, for connections to come."""
    with database.as_admin() as admin:
        yield lambda setting: admin.execute(f"ALTER DATABASE {database.name} SET {setting}".encode())


def test_the_gate_closes(database, logging_all):
    with serving(database) as service:
        for setting, open_after in (("log_statement = 'all'", False), ("log_statement = 'none'", True)):
            logging_all(setting)
            connections = RoleDatabase(database.conninfo, pool_sizes=SINGLE)
            service.server.check(Databases.of_one(connections), connections=10)
            connections.close()
            assert service.server.gate.open is open_after


def test_a_server_does_not_start(database, logging_all):
    logging_all("log_min_duration_statement = 100")
    found = databases.problems_of(databases.without(database.admin, "user"), connections=10)

    assert [problem for problem in found if "log_min_duration_statement is 100 ms" in problem] != []


def test_the_serving_roles_log_no_parameters_of_what_fails(database, logging_all):
    """Whatever the database's setting: theirs is their own."""
    logging_all("log_parameter_max_length_on_error = -1")
    found = databases.problems_of(databases.without(database.admin, "user"), connections=10)

    assert [problem for problem in found if "log_parameter" in problem] == []
    with database.connect(roles.CONTROL) as plain:
        assert [finding.closes_gate for finding in log_settings.findings(plain)] == [True]
