"""Hosts of the server in development, agents to show, and their pages."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

import muniment
from muniment import Agent, Classification, HostClient
from tests.clients.cli.page.looking import Look
from tests.support.command_fixtures import dev, folder, made_before, root_folder
from tests.support.commands import Done, Server, line_of, run

__all__ = ["dev", "folder", "made_before", "root_folder"]

_numbers = itertools.count(1)

Keys = Callable[..., str]
Show = Callable[..., Look]


@pytest.fixture
def key_of(dev: Server) -> Keys:
    """Make a host key of a tenant, up to a level, with more options."""

    def make(tenant: str, ceiling: Classification, *options: str) -> str:
        named = ("--tenant", tenant, "--ceiling", ceiling.name, "--data-dir", ".muniment", "--quiet")
        return line_of(run(dev.folder, "host-key", "create", *named, *options))

    return make


@pytest.fixture
def connected(dev: Server) -> Iterator[Callable[[str], HostClient]]:
    """Connect with a host key."""
    with ExitStack() as stack:
        yield lambda key: stack.enter_context(muniment.connect(dev.address, host_key=key))


@pytest.fixture
def host(dev: Server, connected: Callable[[str], HostClient]) -> HostClient:
    """The host of the server in development, up to RESTRICTED."""
    written = json.loads((dev.folder / ".muniment" / "development.json").read_text())
    return connected(written["host_key"])


@pytest.fixture
def ada(host: HostClient) -> Agent:
    """An agent of one test, up to CONFIDENTIAL, with one empty block."""
    name, blocks = f"ada-{next(_numbers)}", {"personality": ""}
    return host.create_agent(name, ceiling=Classification.CONFIDENTIAL, initial_blocks=blocks)


@pytest.fixture
def attempt(dev: Server) -> Callable[..., Done]:
    """Run `muniment agent show` to standard output; with *key*, as that host."""

    def attempted(agent_id: str, *, key: str = "") -> Done:
        environment = {"MUNIMENT_ADDRESS": dev.address, "MUNIMENT_HOST_KEY": key} if key else {}
        return run(dev.folder, "agent", "show", agent_id, "--html", "-", **environment)

    return attempted


@pytest.fixture
def show(attempt: Callable[..., Done]) -> Show:
    """The page of an agent."""

    def shown(agent_id: str, *, key: str = "") -> Look:
        done = attempt(agent_id, key=key)
        assert done.returncode == 0, done.stderr
        return Look(done.stdout)

    return shown
