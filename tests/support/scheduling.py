"""Which proofs stay on one worker: a pytest plugin for `--dist loadscope`.

The mark `xdist_group` groups nothing: xdist 3.8.0 stores the group in an attribute that pytest 9.2 does not read.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

_TOGETHER = {
    "tests/operations/citus/test_added_nodes.py": "nodes",  # in the order of what happens to a cluster
    "tests/operations/citus/test_distribute.py": "distribution",  # likewise
    "tests/clients/frameworks/": "clients",
    "tests/clients/conformance/": "clients",  # they build clients anew, which the others in this group run
    "tests/calls/endtoend/test_locomo.py": "facts",
    "tests/proof/faults/test_clients_across_restarts.py": "clients",
    "tests/proof/faults/test_silence.py": "clients",
    "tests/proof/noninterference/test_two_worlds.py": "worlds",  # the longest: what is a group begins early
    "tests/proof/taint_model/": "taint",  # as a group they begin early
    "tests/tools/tour/test_java.py": "clients",
    "tests/tools/tour/test_other_tools.py": "tools",  # Go compiles grpcurl and ghz once, while one worker waits
    "tests/tools/tour/test_readme.py::test_the_tour": "tools",
    "tests/tools/tour/test_typescript.py": "clients",
}
"""By the beginning of their ids, the tests that share what takes long to make, or would change it while another runs.
Others are each for themselves."""


class Proofs(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Sends the tests of a group to one worker, the largest group first."""

    def _split_scope(self, nodeid: str) -> str:
        return next((group for prefix, group in _TOGETHER.items() if nodeid.startswith(prefix)), "") or nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    return Proofs(config, log) if config.getoption("dist") == "loadscope" else None
