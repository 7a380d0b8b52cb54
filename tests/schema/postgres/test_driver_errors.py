"""What becomes of each SQLSTATE, and of failures without one."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from psycopg import errors

from muniment_server.domain.errors import Conflict, DeadlineExceeded, StorageDamaged, StorageFull, Unavailable
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.postgres.driver_errors import DECISIONS, domain_error, storage_advice
from tests.support.databases import Database
from tests.support.each import for_each

APPENDIX = {
    error.sqlstate: error
    for error in vars(errors).values()
    if isinstance(error, type) and issubclass(error, psycopg.Error) and isinstance(error.sqlstate, str)
}
"""Every SQLSTATE that psycopg knows from the appendix of Postgres's manual, and its exception."""
NO_FAULTS = {
    "08": Unavailable,
    "28": Unavailable,
    "40": Unavailable,
    "53": Unavailable,
    "55": Unavailable,
    "57": Unavailable,
    "58": Unavailable,
    "25006": Unavailable,
    "25P03": Unavailable,
    "25P04": Unavailable,
    "40001": Conflict,
    "40P01": Conflict,
    "53100": StorageFull,
    "54000": Unavailable,
    "57014": DeadlineExceeded,
    "XX001": StorageDamaged,
    "XX002": StorageDamaged,
}
"""What is no fault of the server, which callers get as INTERNAL; and damage."""


def test_the_appendix_is_there():
    assert {"22P02", "25P04", "42501", "58030", "XX001"} <= APPENDIX.keys()
    assert len(APPENDIX) > 250


@for_each("sqlstate", APPENDIX)
def test_every_sqlstate_is_decided(sqlstate):
    assert {sqlstate, sqlstate[:2]} & DECISIONS.keys(), "decide whether a retry can heal it"


@for_each("sqlstate", APPENDIX)
def test_a_failure_becomes_what_its_sqlstate_says(sqlstate):
    error = APPENDIX[sqlstate]("CANARY")
    expected = NO_FAULTS.get(sqlstate, NO_FAULTS.get(sqlstate[:2], type(error)))
    found = domain_error(error)

    assert type(found) is expected
    assert found is error or getattr(found, "cause", None) == sqlstate
    assert found is error or "CANARY" not in repr(found)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (psycopg.OperationalError("the connection is closed"), Unavailable),
        (psycopg.InterfaceError("the cursor is closed"), psycopg.InterfaceError),
        (psycopg.DataError("cannot be adapted"), psycopg.DataError),
    ],
)
def test_without_a_sqlstate_only_a_lost_connection_is_no_fault(error, expected):
    assert type(domain_error(error)) is expected


@pytest.mark.plain_postgres("a file of the one Postgres is taken away")
@pytest.mark.skipif(os.geteuid() != 0, reason="Postgres is to lack a right that only root can give back")
@pytest.mark.parametrize("take", ["chmod", "remove"])
def test_a_file_that_cannot_be_opened_is_no_fault(database: Database, take):
    """Its SQLSTATE, 42501, is otherwise that of a missing grant."""
    with database.connect("postgres") as admin:
        (name,) = admin.execute("SELECT pg_relation_filepath('muniment_public.item')").fetchone() or ("",)
    assert isinstance(database.postgres, EmbeddedPostgres)
    file = Path(database.postgres._directory, "data", name)
    if take == "chmod":
        file.chmod(0)
        os.chown(file, 0, 0)
    else:
        file.rename(file.with_suffix(".gone"))
    with database.connect("muniment_public") as session, pytest.raises(psycopg.Error) as raised:
        session.execute("SELECT count(*) FROM muniment_public.revision JOIN muniment_public.item USING (tenant)")
    if take == "remove":
        file.with_suffix(".gone").rename(file)

    assert type(domain_error(raised.value)) is Unavailable
    assert "Postgres cannot use its files" in (storage_advice(raised.value) or "")


def test_a_control_file_that_cannot_be_opened_is_no_fault():
    """Each log-in reads it. Taken away for real, it would end the Postgres of all tests at the next checkpoint."""
    error = _Unopened("CANARY")

    assert type(domain_error(error)) is Unavailable
    assert "Postgres cannot use its files" in (storage_advice(error) or "")


class _Unopened(errors.InsufficientPrivilege):
    diag = SimpleNamespace(source_file="controldata_utils.c")  # type: ignore[assignment]


def test_a_missing_grant_is_a_fault(database):
    with database.connect("muniment_public") as session, pytest.raises(errors.InsufficientPrivilege) as raised:
        session.execute("SELECT FROM muniment_internal.item")

    assert domain_error(raised.value) is raised.value
    assert storage_advice(raised.value) is None
