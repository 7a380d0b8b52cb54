"""Damaged pages: what the doctor, other commands and the server say of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from muniment.cli.failures import Failure
from muniment_server.admin import dumps
from muniment_server.admin.audit import verify_audit
from muniment_server.admin.checks import Verdict, check_database
from muniment_server.admin.connection import connect_operator
from muniment_server.admin.database import report_database_errors
from muniment_server.background.census import Census
from muniment_server.postgres.driver_errors import AFTER_DAMAGE, UNUSABLE_FILES
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.runtime import databases
from tests.support.answers import PUBLIC
from tests.support.clock import StoppedClock
from tests.support.databases import Database, cloned
from tests.support.log_lines import lines_of, text_of
from tests.support.services import failure_of, reason_of, serving

pytestmark = pytest.mark.plain_postgres("a file of the one Postgres is overwritten")
RELATIONS = (
    "muniment_public.item_pkey",
    "muniment_public.audit",
    "muniment_auditor.seal",
    "muniment_public.item",
    "muniment_public.revision",
    "vault.agent",
)
_PAGE = 8192


@pytest.fixture(scope="module")
def written(postgres) -> Iterator[Database]:
    """A database with an item, and with a seal, so that each of the tables has a page."""
    with cloned(postgres) as database:
        with serving(database) as service:
            service.session(PUBLIC).save_memory(key="plan", content="CANARY")
        with database.as_owner() as owner:
            owner.execute(b"INSERT INTO muniment_auditor.seal VALUES (1, 1, 1, now(), false, 1, '', '')")
        yield database


@pytest.fixture
def whole(postgres, written) -> Iterator[Database]:
    """A copy of which Postgres has read no page but those of catalogs."""
    with cloned(postgres, written.name) as database:
        yield database


@pytest.fixture
def damage(whole):
    """Overwrites the last page of a relation."""

    def overwrite(relation):
        with whole.as_admin() as admin:
            (file,) = admin.execute("SELECT pg_relation_filepath(%s::regclass)", [relation]).fetchone()
        path = Path(whole.postgres._directory, "data", file)
        with path.open("r+b") as pages:
            pages.seek(path.stat().st_size - _PAGE)
            pages.write(os.urandom(_PAGE))
        return whole

    return overwrite


def problems_of(database: Database, *, admin: str = "", deep: bool = False) -> list[str]:
    """What the doctor finds wrong, besides that the Postgres of tests is without fsync."""
    admin = admin or database.admin
    found = check_database(databases.without(admin, "user"), admin=admin, connections=0, deep=deep)
    return [finding.text for finding in found if finding.verdict is Verdict.BAD and "fsync" not in finding.text]


def advice_about(command) -> tuple[str, str]:
    """How a *command* fails, and what it advises."""
    with pytest.raises(Failure) as failed, report_database_errors():
        command()
    return failed.value.message, failed.value.hint


def test_an_undamaged_database_has_no_problem(whole):
    assert problems_of(whole, deep=True) == []


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_deep_check_names_what_is_damaged_and_says_what_to_do(damage, relation):
    found = problems_of(damage(relation), deep=True)

    assert [text for text in found if text.startswith(f"{relation} is damaged (invalid page in block ")]
    assert [text for text in found if not text.endswith(AFTER_DAMAGE)] == []
    assert [text for text in found if "migrate" in text] == []


def test_damage_that_was_read_is_found_without_the_deep_check(damage):
    database = damage("muniment_auditor.seal")
    assert problems_of(database) == []
    with database.as_owner() as owner, pytest.raises(psycopg.errors.DataCorrupted):
        owner.execute(b"SELECT count(*) FROM muniment_auditor.seal")

    assert problems_of(database) == [f"Postgres has read damaged pages (reads: 1): {AFTER_DAMAGE}"]


def test_damage_that_keeps_the_ledgers_from_being_checked_is_named(damage):
    ledgers, checksums = problems_of(damage("muniment_public.item"))

    assert ledgers.startswith("the ledgers cannot be checked (invalid page in block 0")
    assert ledgers.endswith(f"the database is damaged: {AFTER_DAMAGE}")
    assert checksums.startswith("Postgres has read damaged pages")


@pytest.mark.parametrize(("other", "count"), [("chunk", 4), ("revision", 1)])
def test_no_advice_would_remove_what_is_left_of_items_whose_table_is_empty(whole, other, count):
    """As after the loss of a file. Blocks have revisions only, and passages only entries in the search index."""
    with whole.as_owner() as owner:
        owner.execute(f"DELETE FROM muniment_public.{other}".encode())
        owner.execute(b"DELETE FROM muniment_public.item")

    found = problems_of(whole)

    assert f"{count} items at PUBLIC are lost, or have lost versions: {AFTER_DAMAGE}" in found
    assert [text for text in found if not text.endswith(AFTER_DAMAGE)] == []


def test_an_item_that_was_replaced_after_it_had_expired_is_not_lost(whole):
    columns = "revision, change_id, kind, name, content, tags, update_time"
    with whole.as_owner() as owner:
        owner.execute(
            "WITH new AS (UPDATE muniment_public.item SET item_id = gen_random_uuid() WHERE name = 'plan' RETURNING *)"
            f" INSERT INTO muniment_public.revision (tenant, agent, item_id, {columns})"
            f" SELECT tenant, agent, (SELECT item_id FROM new), {columns}"
            " FROM muniment_public.revision WHERE name = 'plan'".encode()
        )
    assert any("are lost" in text for text in problems_of(whole))
    with whole.as_owner() as owner:
        owner.execute(
            b"UPDATE muniment_public.revision SET expire_time = vault.clock() WHERE name = 'plan'"
            b" AND item_id NOT IN (SELECT item_id FROM muniment_public.item)"
        )

    assert not any("are lost" in text for text in problems_of(whole))


def test_a_login_that_fails_for_a_file_is_not_advised_to_migrate(whole):
    """Such an error has no SQLSTATE."""
    with whole.as_admin() as admin:
        (database,) = admin.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()
    file = Path(whole.postgres._directory, "data", "base", str(database), "pg_filenode.map")
    file.rename(file.with_suffix(".gone"))
    try:
        found = problems_of(whole)
        _, advice = advice_about(lambda: connect_operator(whole.admin).__enter__())
    finally:
        file.with_suffix(".gone").rename(file)

    assert [text for text in found if not text.endswith(UNUSABLE_FILES)] == []
    assert advice == UNUSABLE_FILES
    assert found


def test_the_deep_check_needs_the_rights_to_amcheck(whole):
    with whole.as_admin() as admin:
        admin.execute(b"CREATE ROLE powerless LOGIN")
        admin.execute(b"GRANT muniment_owner TO powerless")
    try:
        *_, found = problems_of(whole, admin=whole.conninfo("powerless"), deep=True)
    finally:
        with whole.as_admin() as admin:
            admin.execute(b"DROP ROLE powerless")

    assert found.startswith("the tables and indexes cannot be checked (permission denied to create extension")
    assert "`CREATE EXTENSION amcheck`" in found


def test_the_deep_check_changes_nothing(whole):
    problems_of(whole, deep=True)

    with whole.as_admin() as admin:
        assert admin.execute(b"SELECT FROM pg_extension WHERE extname = 'amcheck'").fetchall() == []


def test_a_backup_says_what_is_damaged_and_what_to_do(damage):
    database = damage("muniment_public.audit")
    with Path(os.devnull).open("wb") as target:
        message, advice = advice_about(lambda: dumps.dump(database.admin, target))

    assert "invalid page in block 0" in message
    assert advice == f"the database is damaged: {AFTER_DAMAGE}"
    assert "CANARY" not in message


def test_a_command_says_what_is_damaged_and_what_to_do(damage):
    database = damage("muniment_public.audit")
    with connect_operator(database.admin) as operator:
        message, advice = advice_about(lambda: list(verify_audit(operator, "acme", ())))

    assert "invalid page in block 0" in message
    assert advice == f"the database is damaged: {AFTER_DAMAGE}"


def test_a_call_that_meets_damage_is_a_fault_and_the_log_says_what_to_do(damage, caplog):
    with serving(damage("muniment_public.item_pkey")) as service:
        outcome = failure_of(service.session(PUBLIC).save_memory, key="other", content="CANARY")

    assert (outcome.code.name, reason_of(outcome)) == ("INTERNAL", "INTERNAL")
    assert [line["cause"] for line in lines_of(caplog, "fault")] == ["XX001"]
    assert lines_of(caplog, f"the database is damaged: {AFTER_DAMAGE} (SQLSTATE XX001)")
    assert "invalid page" not in text_of(caplog)
    assert "CANARY" not in text_of(caplog)


def test_the_metrics_count_damage_even_if_it_keeps_the_census_from_counting(damage):
    clock = StoppedClock()
    census = Census(RoleDatabase(damage("vault.agent").conninfo, pool_sizes=SINGLE), None, lambda: 60 + clock.seconds)
    try:
        census.ask().join()
        clock.seconds += 2
        values = {family.name: family.samples[0].value for family in census.families()}
    finally:
        census.close()

    assert "muniment_agents" not in values
    assert values["muniment_database_checksum_failures"] >= 1
