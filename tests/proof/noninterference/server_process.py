"""A server in a process of its own, which serves one world after the other.

What a process remembers outside of its server would make two worlds in one process alike, and hide a leak.
"""

from __future__ import annotations

import functools
import logging
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, TypeAlias, cast

import pytest
from psycopg import conninfo as libpq

from tests.proof.noninterference.process_state import state
from tests.proof.noninterference.programs.alphabets import CANARY
from tests.proof.noninterference.replay import replayed
from tests.support.databases import Database

_SPAWN = multiprocessing.get_context("spawn")
Change: TypeAlias = Callable[[pytest.MonkeyPatch], None]
"""Changes the code of a process, where it runs. A function of a module, or a partial of one: it is sent by name."""


class Noticed(NamedTuple):
    """What the server has logged since it was last asked."""

    egress: int
    """Alarms of the egress filter."""
    canaries: int


class ServerProcess:
    """A process, and what it is asked to do."""

    def __init__(self) -> None:
        self._pipe, there = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_main, args=(there,), daemon=True)
        self._process.start()
        there.close()

    @contextmanager
    def serving(self, admin: str) -> Iterator[int]:
        """Serve the database to which *admin* connects the superuser, on the port that is returned."""
        port = self._ask("serve", admin)
        try:
            yield port
        finally:
            self._ask("stop", admin)

    @contextmanager
    def changed(self, change: Change) -> Iterator[None]:
        """The code of the process is changed, until the block ends."""
        self._ask("change", change)
        try:
            yield
        finally:
            self._ask("restore")

    def noticed(self) -> Noticed:
        """What was logged since this was last asked."""
        return cast(Noticed, self._ask("noticed"))

    def state(self) -> Mapping[str, str]:
        """What its modules and classes hold."""
        return cast("Mapping[str, str]", self._ask("state"))

    def _ask(self, what: str, *arguments: Any) -> Any:
        self._pipe.send((what, arguments))
        answer = self._pipe.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer


@functools.cache
def server_process(number: int) -> ServerProcess:
    """The process of the first or the second world. It ends with this one."""
    return ServerProcess()


class _Alarms(logging.Handler):
    """What the server logs: the egress filter's alarms, and canaries that have no business there."""

    def __init__(self) -> None:
        super().__init__()
        self._noticed = Noticed(0, 0)

    def emit(self, record: logging.LogRecord) -> None:
        said = CANARY in record.getMessage() or CANARY in str(record.exc_info)
        egress, canaries = self._noticed
        self._noticed = Noticed(egress + (record.levelno >= logging.CRITICAL), canaries + said)

    def noticed(self) -> Noticed:
        """What was logged since this was last asked."""
        noticed, self._noticed = self._noticed, Noticed(0, 0)
        return noticed


class _There:
    """What a database is to its server: how a role connects."""

    def __init__(self, admin: str) -> None:
        self._admin = admin

    def conninfo(self, role: str) -> str:
        return libpq.make_conninfo(self._admin, user=role)


class _Served:
    """The other side: what the process does when it is asked."""

    def __init__(self) -> None:
        self._alarms = _Alarms()
        logger = logging.getLogger("muniment")
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        logger.addHandler(self._alarms)
        self._served: dict[str, ExitStack] = {}
        self._monkeypatch = pytest.MonkeyPatch()

    def serve(self, admin: str) -> int:
        self._served[admin] = stack = ExitStack()
        return stack.enter_context(replayed(cast(Database, _There(admin)))).port

    def stop(self, admin: str) -> None:
        self._served.pop(admin).close()

    def change(self, change: Change) -> None:
        change(self._monkeypatch)

    def restore(self) -> None:
        self._monkeypatch.undo()

    def noticed(self) -> Noticed:
        return self._alarms.noticed()

    def state(self) -> Mapping[str, str]:
        return state()


def _main(pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tests end it
    served = _Served()
    with suppress(EOFError):  # the tests have ended
        while True:
            what, arguments = pipe.recv()
            try:
                answer = getattr(served, what)(*arguments)
            except Exception as error:  # noqa: BLE001 - the tests raise it
                answer = error
            pipe.send(answer)
