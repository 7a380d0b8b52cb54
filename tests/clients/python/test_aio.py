"""What is particular to the asyncio client. All else is tested by the other files, which test both clients."""

from __future__ import annotations

import asyncio
import inspect
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

import muniment
from muniment import Classification, NewPassage, aio
from muniment._channel import CONNECTIONS
from muniment.v1 import memory_service_pb2
from muniment.v1.classification_pb2 import CLASSIFICATION_PUBLIC
from tests.clients.python.scripted import ScriptedServer, error_info, status
from tests.support.examples import HOST_KEY, MEMORY, SESSION_ID, TOKEN

ROOT = Path(__file__).parents[3]
RAISED = status(grpc.StatusCode.ABORTED, error_info("TAINT_CHANGED"))
FIRST_PAGE = memory_service_pb2.ListMemoriesResponse(
    memories=[MEMORY], next_page_token="second", classification=CLASSIFICATION_PUBLIC
)


class Held:
    """Holds every call of a scripted server until it is let go, or is over."""

    def __init__(self, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ended = threading.Event()
        self.let_go = threading.Event()
        self.peers: set[str] = set()
        self._begun = 0
        self._changed = threading.Condition()
        self._answer = server._answer
        monkeypatch.setattr(server, "_answer", self._hold)

    def _hold(self, method: str, context: grpc.ServicerContext) -> Any:
        context.add_callback(self._end)
        with self._changed:
            self.peers.add(context.peer())
            self._begun += 1
            self._changed.notify_all()
        self.let_go.wait(20)
        return self._answer(method, context)

    def _end(self) -> None:
        self.ended.set()
        self.let_go.set()

    async def begun(self, number: int = 1) -> None:
        """Wait until so many calls have arrived."""

        def wait() -> None:
            with self._changed:
                assert self._changed.wait_for(lambda: self._begun >= number, timeout=20)

        await asyncio.to_thread(wait)


@pytest.fixture
def held(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(server, monkeypatch)


def test_a_canceled_task_cancels_its_call(running, held):
    async def main() -> None:
        async with aio.connect(running.address, token=TOKEN) as session:
            call = asyncio.create_task(session.get_memory("tea", timeout=60))
            await held.begun()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert await asyncio.to_thread(held.ended.wait, 20)
            channel: Any = session._calls.channel
            assert channel._under_way == [0] * CONNECTIONS

    asyncio.run(main())


def test_a_timeout_of_asyncio_cancels_the_call(running, held):
    async def main() -> None:
        async with aio.connect(running.address, token=TOKEN) as session:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await session.get_memory("tea", timeout=60)
            assert await asyncio.to_thread(held.ended.wait, 20)

    asyncio.run(main())


def test_a_canceled_import_is_canceled_on_the_server(running):
    running.scripted.cancel_timeout = 20

    async def endless() -> AsyncIterator[NewPassage]:
        yield NewPassage("first")
        await asyncio.Event().wait()

    async def main() -> None:
        async with aio.connect(running.address, token=TOKEN) as session:
            call = asyncio.create_task(session.import_passages(endless(), timeout=60))
            assert await asyncio.to_thread(running.scripted.wait_until, lambda: bool(running.scripted.asked))
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    asyncio.run(main())
    assert running.scripted.wait_until(lambda: running.scripted.ended == ["canceled"])


def test_a_call_under_way_when_the_client_is_closed_fails_and_its_task_is_not_canceled(running, held):
    async def main() -> None:
        session = aio.connect(running.address, token=TOKEN)
        call = asyncio.create_task(session.get_memory("tea", timeout=60))
        await held.begun()
        await session.disconnect()
        with pytest.raises(muniment.MunimentError, match="closed during the call") as caught:
            await call
        assert caught.value.code is grpc.StatusCode.CANCELLED

    asyncio.run(main())


def test_an_import_under_way_when_the_client_is_closed_fails_and_its_task_is_not_canceled(running):
    """The server reads one passage only, so the client waits in the middle of the next."""
    running.scripted.reads, running.scripted.cancel_timeout = 1, 20

    async def main() -> None:
        session, is_next = aio.connect(running.address, token=TOKEN), asyncio.Event()

        async def passages() -> AsyncIterator[NewPassage]:
            yield NewPassage("first")
            is_next.set()
            yield NewPassage("x" * 50_000_000)

        call = asyncio.create_task(session.import_passages(passages(), timeout=60))
        await is_next.wait()
        await session.disconnect()
        with pytest.raises(muniment.MunimentError, match="closed during the call") as caught:
            await call
        assert caught.value.code is grpc.StatusCode.CANCELLED

    asyncio.run(main())


def test_an_import_that_is_broken_off_at_its_very_end_says_why(running, monkeypatch):
    """So does gRPC if the call ends while its last bytes wait to be sent, which chance alone brings about."""
    running.scripted.script("ImportPassages", RAISED)

    async def done_writing(_: object) -> None:
        raise grpc.aio.InternalError

    monkeypatch.setattr("grpc.aio._call.StreamUnaryCall.done_writing", done_writing)
    running.scripted.reads = 1

    async def main() -> None:
        async with aio.connect(running.address, token=TOKEN) as session:
            with pytest.raises(muniment.TaintChanged):
                await session.import_passages([NewPassage("first")])

    asyncio.run(main())


def test_a_canceled_import_ends_while_there_is_no_connection_yet():
    async def main(address: str) -> None:
        session, is_next = aio.connect(address, token=TOKEN), asyncio.Event()

        async def passages() -> AsyncIterator[NewPassage]:
            is_next.set()
            yield NewPassage("first")

        call = asyncio.create_task(session.import_passages(passages(), timeout=60))
        await is_next.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(5):
                await call
        await session.disconnect()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        asyncio.run(main(f"127.0.0.1:{silent.getsockname()[1]}"))


@pytest.mark.parametrize("was_called", [False, True], ids=["never called", "called before"])
def test_a_call_after_the_close_says_so(running, was_called):
    async def main() -> None:
        async with aio.connect(running.address, token=TOKEN) as session:
            if was_called:
                await session.get_memory("tea")
        with pytest.raises(ValueError, match="this client is closed"):
            await session.get_memory("tea")
        with pytest.raises(ValueError, match="this client is closed"):
            await session.import_passages([NewPassage("booked")])

    asyncio.run(main())


def test_two_hundred_calls_at_once_are_answered(running):
    async def main() -> None:
        async with aio.connect(running.address, token=TOKEN, timeout=60) as session:
            saved = await asyncio.gather(*(session.save_memory(f"tea {number}", "Assam") for number in range(200)))
        assert len(saved) == 200

    asyncio.run(main())
    assert len(running.scripted.requests("SaveMemory")) == 200


def test_two_hundred_saves_at_once_are_stored_by_a_real_server(service):
    async def main() -> list[str]:
        async with aio.connect(service.address, host_key=service.host().token, timeout=60) as host:
            agent = await host.create_agent()
            async with await host.open_session(agent.agent_id, Classification.INTERNAL) as session:
                await asyncio.gather(*(session.save_memory(f"tea {number:03}", "Assam") for number in range(200)))
                return [memory.key for memory in await session.list_memories().all()]

    assert asyncio.run(main()) == [f"tea {number:03}" for number in range(200)]


@pytest.mark.parametrize("at_once", [1, 2, 4])
def test_calls_at_once_have_up_to_four_connections(running, held, at_once):
    async def main() -> None:
        async with aio.connect(running.address, token=TOKEN) as session:
            calls = [asyncio.create_task(session.get_memory("tea")) for _ in range(at_once)]
            await held.begun(at_once)
            held.let_go.set()
            await asyncio.gather(*calls)
            await session.get_memory("tea")

    asyncio.run(main())
    assert len(held.peers) == at_once


def test_an_import_takes_an_asynchronous_iterable(running):
    async def lines() -> AsyncIterator[NewPassage]:
        for line in ("Graz by bus.", "Never again."):
            await asyncio.sleep(0)
            yield NewPassage(line)

    async def main() -> None:
        async with aio.connect(running.address, token=TOKEN) as session:
            await session.import_passages(lines())

    asyncio.run(main())
    assert [each.passage.content for each in running.scripted.requests("ImportPassages")] == [
        "Graz by bus.",
        "Never again.",
    ]


def test_a_session_by_token_says_how_to_learn_its_id(running):
    async def main() -> None:
        async with aio.connect(running.address, host_key=HOST_KEY) as host, host.session(TOKEN) as session:
            with pytest.raises(ValueError, match="get_session"):
                _ = session.session_id
            with pytest.raises(ValueError, match="get_session"):
                await host.close_session(session)
            await session.get_session()
            assert session.session_id == SESSION_ID
            await host.close_session(session)

    asyncio.run(main())


@pytest.mark.parametrize("name", ["HostClient", "SessionClient", "Listing"])
def test_the_surface_is_that_of_the_synchronous_client(name):
    """The same methods with the same parameters, and the same documents but for what waits."""

    def surface(kind: type) -> dict[str, list[str]]:
        public = {each: value for each, value in inspect.getmembers(kind) if not each.startswith("_")}
        return {
            each: list(inspect.signature(value).parameters) if callable(value) else [] for each, value in public.items()
        }

    assert surface(getattr(aio, name)) == surface(getattr(muniment, name))


def test_what_makes_a_call_is_a_coroutine():
    returned = {"list_": aio.Listing, "session": aio.SessionClient}
    for kind in (aio.HostClient, aio.SessionClient):
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if not (name.startswith(("_", *returned)) and not name.endswith("_page")):
                assert inspect.iscoroutinefunction(method), name


def test_the_generated_half_is_up_to_date(tmp_path):
    """And the check fails when it is not."""
    assert check_generated(ROOT).returncode == 0
    for each in ("clients/python/src", "clients/python/tools"):
        shutil.copytree(ROOT / each, tmp_path / each)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    changed = tmp_path / "clients/python/src/muniment/_memories.py"
    changed.write_text(changed.read_text().replace("def get_memory", "def recall"))

    failed = check_generated(tmp_path)

    assert failed.returncode == 1
    assert "aio/_memories.py is not what _memories.py makes of it: make aio" in failed.stderr


def check_generated(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "clients/python/tools/aio.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False)
