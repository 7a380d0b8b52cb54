"""A scripted server and clients of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import muniment
from muniment import HostClient, SessionClient
from tests.clients.python.scripted import HOST_KEY, TOKEN, ScriptedServer, serve


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


@pytest.fixture
def host(running: Running) -> Iterator[HostClient]:
    with muniment.connect(running.address, host_key=HOST_KEY) as client:
        yield client


@pytest.fixture
def session(running: Running) -> Iterator[SessionClient]:
    with muniment.connect(running.address, token=TOKEN) as client:
        yield client
