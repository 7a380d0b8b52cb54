"""A scripted server and clients of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import muniment
from muniment import HostClient, SessionClient, aio
from tests.clients.python.blocking import made_blocking
from tests.clients.python.scripted import ScriptedServer, serve
from tests.support.examples import HOST_KEY, TOKEN


@dataclass(frozen=True)
class Running:
    """A scripted server at an address."""

    scripted: ScriptedServer
    address: str


@pytest.fixture
def running() -> Iterator[Running]:
    scripted = ScriptedServer()
    server, port = serve(scripted, "127.0.0.1:0")
    yield Running(scripted, f"127.0.0.1:{port}")
    server.stop(None).wait()


@pytest.fixture
def server(running: Running) -> ScriptedServer:
    return running.scripted


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muniment.retries.FIRST_PAUSE", 0.001)


@pytest.fixture(params=["synchronous", "asyncio"])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """The function `connect` of either client."""
    if request.param == "synchronous":
        yield muniment.connect
        return
    with asyncio.Runner() as runner:
        yield lambda *arguments, **named: made_blocking(aio.connect(*arguments, **named), runner)


@pytest.fixture
def host(running: Running, connect: Callable[..., Any]) -> Iterator[HostClient]:
    with connect(running.address, host_key=HOST_KEY) as client:
        yield client


@pytest.fixture
def session(running: Running, connect: Callable[..., Any]) -> Iterator[SessionClient]:
    with connect(running.address, token=TOKEN) as client:
        yield client
