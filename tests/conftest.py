"""Fixtures for all tests."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from muniment_server.domain.classification import Classification, Label
from muniment_server.embedded_postgres import EmbeddedPostgres
from tests.operations.citus.clones import ClusterPostgres, running_cluster
from tests.support.databases import Database, cloned, running_postgres
from tests.support.memory_disk import use_memory_disk
from tests.support.services import Caller, Service, serving

pytest_plugins = ["tests.support.depth", "tests.support.scheduling", "tests.support.tenants"]


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        _refuse_missing_paths(config)
    use_memory_disk()
    _restore_ctrl_c()
    gc.disable()


def _restore_ctrl_c() -> None:
    """A script that runs the tests in the background has Ctrl-C ignored, and what the tests start inherits that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _refuse_missing_paths(config: pytest.Config) -> None:
    """Raises UsageError. Workers would raise it too, but it is not shown: all that they print is `no tests ran`."""
    folder = config.invocation_params.dir
    paths = [argument.partition("[")[0].partition("::")[0] for argument in config.args]
    if missing := [path for path in paths if not (folder / path).exists()]:
        raise pytest.UsageError(f"there is no {', '.join(missing)} in {folder}")


def pytest_collection_finish() -> None:
    """No garbage is collected while tests are collected, nor later from what that made: it takes 0.4 s each time."""
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bindir", type=Path, help="The programs of another Postgres than the wheel's, for `postgres`.")
    parser.addoption(
        "--cluster", action="store_true", help="A Citus cluster in the place of `postgres`: see tests/operations/citus."
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On a cluster, skip the tests that are marked `plain_postgres`, with the reason that each names."""
    if config.getoption("cluster"):
        for item in items:
            for marker in item.iter_markers("plain_postgres"):
                (reason,) = marker.args
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def postgres(pytestconfig: pytest.Config) -> Iterator[EmbeddedPostgres | ClusterPostgres]:
    """A Postgres for this run. Without fsync: what kill -9 and power may do is tested elsewhere."""
    bindir = pytestconfig.getoption("bindir")
    with running_cluster() if pytestconfig.getoption("cluster") else running_postgres(bindir) as server:
        yield server


@pytest.fixture
def database(postgres: EmbeddedPostgres) -> Iterator[Database]:
    """A database for this test."""
    with cloned(postgres) as clone:
        yield clone


@pytest.fixture
def service(database: Database) -> Iterator[Service]:
    """A real server over this test's database."""
    with serving(database) as served:
        yield served


@pytest.fixture
def at(service: Service) -> Callable[[Classification | Label], Caller]:
    """A session of the agent `alice` at a level or a label: the same one each time it is asked for."""
    sessions: dict[Classification | Label, Caller] = {}

    def session_at(taint: Classification | Label) -> Caller:
        if taint not in sessions:
            sessions[taint] = service.session(taint)
        return sessions[taint]

    return session_at


@pytest.fixture
def host(service: Service) -> Caller:
    """A host of the tenant `acme` up to RESTRICTED."""
    return service.host()
