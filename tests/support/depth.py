"""Which tests are proofs, how many cases of a test run, and how often tests repeat what depends on chance: a plugin.

A test that asks for one of the counts here is marked `scales`: it runs in `make test`, unless it is a proof, and at
scale in `make prove`. Of the tests that are marked `sampled`, only those run that are in the share that `--share`
names. A test that starts a server of its own is a proof: it takes seconds, and most of what it shows is shown without.
"""

from __future__ import annotations

import pytest

_COUNTS = {
    "runs": (10, "How often each pair of acts in tests/proof/races meets."),
    "kills": (4, "How many parts of a server are killed in tests/proof/faults."),
    "programs": (6, "How many programs run in two worlds in tests/proof/noninterference."),
    "queries": (600, "How many random queries are searched for in tests/calls/search."),
    "messages": (500, "How many random requests are sent in tests/proof/fuzz."),
}
"""By its name, the default of each count, and what is counted."""
_SERVERS = {
    "tests/operations/admin/": {"other_postgres", "serving"},
    "tests/operations/servers/": {"both", "serving"},
    "tests/proof/faults/": {"pair", "server"},
}
"""By the folder, the fixtures that start `muniment serve` or further databases for one test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("depth", "how often tests repeat what they do")
    for name, (default, what) in _COUNTS.items():
        group.addoption(f"--{name}", type=int, default=default, metavar="N", help=f"{what} Default: {default}.")
    group.addoption("--seed", type=int, default=1, metavar="N", help="The seed of these programs. Default: 1.")
    group.addoption(
        "--share",
        type=_share,
        default=(1, 1),
        metavar="K/N",
        help="Of the tests marked `sampled`, run one in N, from the K-th on. Default: 1/1, which is all of them.",
    )


def pytest_report_header(config: pytest.Config) -> str:
    which, shares = config.getoption("share")
    return f"share {which}/{shares} of the sampled tests"


@pytest.hookimpl(tryfirst=True)  # before `-m` selects by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if _COUNTS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker("scales")
        if _starts_a_server(item):
            item.add_marker("proof")
    _keep_share(config, items)


def _starts_a_server(item: pytest.Item) -> bool:
    asked = set(getattr(item, "fixturenames", ()))
    return any(item.nodeid.startswith(folder) and asked & fixtures for folder, fixtures in _SERVERS.items())


def _share(text: str) -> tuple[int, int]:
    which, shares = (int(part) for part in text.split("/"))
    if not 1 <= which <= shares:
        raise ValueError(text)  # argparse says which option it was
    return which, shares


def _keep_share(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the sampled tests that are in other shares."""
    which, shares = config.getoption("share")
    sampled = [item for item in items if item.get_closest_marker("sampled")]
    dropped = {item for number, item in enumerate(sampled) if number % shares != which - 1}
    if dropped:
        config.hook.pytest_deselected(items=list(dropped))
        items[:] = [item for item in items if item not in dropped]


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
