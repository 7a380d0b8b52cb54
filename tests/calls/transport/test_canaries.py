"""What is remembered shows in no log."""

from __future__ import annotations

import logging

import pytest

from tests.support.canaries import break_everything, new_canary, postgres_log, use_everything
from tests.support.methods import METHODS


@pytest.fixture
def listening(caplog):
    """Every logger of the process, as loud as it can be."""
    for name in list(logging.root.manager.loggerDict):
        caplog.set_level(logging.DEBUG, logger=name)
    caplog.set_level(logging.DEBUG)
    return caplog


def test_c60_no_log_of_the_server_shows_what_was_remembered(service, listening):
    """And no token either."""
    canary = new_canary()
    use_everything(service, canary)
    break_everything(service, canary)
    said = "\n".join([listening.text, *(repr(record.__dict__) for record in listening.records)])

    assert [
        method for method in METHODS if method.startswith(("Save", "Add", "Edit", "Import")) and method not in said
    ] == []
    assert [line for line in said.splitlines() if canary in line or "mun_s_" in line or "mun_h_" in line] == []


def test_c63_no_log_of_the_database_shows_what_was_remembered(service, postgres):
    canary = new_canary()
    use_everything(service, canary)
    break_everything(service, canary)

    log = postgres_log(postgres)

    assert "database system is ready" in log
    assert canary not in log


def test_c63_what_the_postgres_of_the_tests_logs_is_what_the_embedded_one_logs(database):
    with database.as_admin() as admin:
        found = dict(
            admin.execute(
                "SELECT name, setting FROM pg_settings WHERE name IN ('log_statement', 'log_error_verbosity',"
                " 'log_min_error_statement', 'log_parameter_max_length', 'log_parameter_max_length_on_error')"
            ).fetchall()
        )

    assert found == {
        "log_statement": "none",
        "log_error_verbosity": "terse",
        "log_min_error_statement": "panic",
        "log_parameter_max_length": "0",
        "log_parameter_max_length_on_error": "0",
    }
