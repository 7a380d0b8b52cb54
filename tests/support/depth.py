"""How often the tests that meet chance repeat what they do: a pytest plugin.

A test that asks for one of the counts here is marked `scales`: it runs in `make test`, and at scale in `make prove`.
"""

from __future__ import annotations

import pytest

_COUNTS = {
    "runs": (20, "How often each pair of acts in tests/races meets."),
    "kills": (4, "How many parts of a server are killed in tests/faults."),
    "programs": (8, "How many programs run in two worlds in tests/noninterference."),
    "queries": (600, "How many random queries are searched for in tests/search."),
    "messages": (1000, "How many random requests are sent in tests/fuzz."),
}
"""By its name, the default of each count, and what is counted."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("depth", "how often tests repeat what they do")
    for name, (default, what) in _COUNTS.items():
        group.addoption(f"--{name}", type=int, default=default, metavar="N", help=f"{what} Default: {default}.")
    group.addoption("--seed", type=int, default=1, metavar="N", help="The seed of these programs. Default: 1.")


@pytest.hookimpl(tryfirst=True)  # before `-m` selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _COUNTS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker("scales")


@pytest.fixture(scope="session")
def runs(pytestconfig: pytest.Config) -> int:
    return int(pytestconfig.getoption("runs"))


@pytest.fixture(scope="session")
def kills(pytestconfig: pytest.Config) -> int:
    return int(pytestconfig.getoption("kills"))


@pytest.fixture(scope="session")
def programs(pytestconfig: pytest.Config) -> int:
    return int(pytestconfig.getoption("programs"))


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    return int(pytestconfig.getoption("seed"))


@pytest.fixture(scope="session")
def queries(pytestconfig: pytest.Config) -> int:
    return int(pytestconfig.getoption("queries"))


@pytest.fixture(scope="session")
def messages(pytestconfig: pytest.Config) -> int:
    return int(pytestconfig.getoption("messages"))
