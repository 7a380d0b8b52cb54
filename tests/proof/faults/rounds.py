"""Callers that call every RPC, round after round, on connections that last or that are new each time."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc

import muniment
from muniment import NewPassage
from tests.proof.faults.load import channel_to
from tests.support.services import Caller

_IMPORTED = 250
"""Passages of one import: three batches."""
_IMPORT_SECONDS = 5.0


class Recorder(Caller):
    """A caller of generated stubs, which retry nothing. Records what it called."""

    def __init__(self, channel: grpc.Channel, token: str, called: Counter[str], session_id: str = "") -> None:
        super().__init__(channel, token, session_id)
        self._called = called

    def call(self, rpc: str, *, timeout: float = 20.0, **fields: Any) -> Any:
        self._called[rpc] += 1
        return super().call(rpc, timeout=timeout, **fields)

    def session(self, opened: Any) -> Recorder:
        """The caller of a session that was opened or reset."""
        return Recorder(self.channel, opened.token, self._called, opened.session.session_id)


class Rounds:
    """Threads that call, what they called, and what failed or was written twice."""

    def __init__(self, address: str, host_key: str) -> None:
        self._address = address
        self._host_key = host_key
        self._over = threading.Event()
        self.called: Counter[str] = Counter()
        self.rounds: Counter[str] = Counter()
        self.wrong: list[str] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Call with bare stubs and with the Python client, as long as the block lasts."""
        callers: list[Callable[[], None]] = [
            *(self._bare for _ in range(3)), self._reconnecting, *(self._client for _ in range(2)), self._slow_import
        ]  # fmt: skip
        threads = [threading.Thread(target=self._repeat, args=[caller]) for caller in callers]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _repeat(self, caller: Callable[[], None]) -> None:
        name = caller.__name__
        try:
            caller()
        except (grpc.RpcError, muniment.MunimentError, AssertionError) as error:
            code = error.code() if isinstance(error, grpc.RpcError) else type(error)
            self.wrong.append(f"{name}, round {self.rounds[name]}: {code}: {error}")

    def _goes_on(self, name: str) -> bool:
        self.rounds[name] += 1
        return not self._over.is_set()

    def _bare(self) -> None:
        with channel_to(self._address) as channel:
            while self._goes_on("_bare"):
                self._round(Recorder(channel, self._host_key, self.called))

    def _reconnecting(self) -> None:
        """A new connection for each call."""
        while self._goes_on("_reconnecting"):
            with channel_to(self._address) as channel:
                Recorder(channel, self._host_key, self.called).list_agents()

    def _round(self, host: Recorder) -> None:
        """Every RPC, for an agent that exists only for this round."""
        agent, other = f"a{uuid.uuid4()}", f"b{uuid.uuid4()}"
        for agent_id in (agent, other):
            host.create_agent(agent_id=agent_id)
        host.get_agent(agent_id=agent)
        host.list_agents()
        host.update_agent(agent_id=agent, display_name="x")
        host.erase_items(agent_id=agent, kind=1, name="erased")
        session = host.session(host.open_session(agent_id=agent, taint=1))
        self._memories(session)
        host.undelete_item(agent_id=agent, kind=1, name="plan", classification=1)
        self._notes(session)
        self._blocks(host, session, agent, other)
        self._passages(session)
        session.render_prompt()
        self._sessions(host, session, agent)
        for agent_id in (agent, other):
            host.delete_agent(agent_id=agent_id)

    def _memories(self, session: Recorder) -> None:
        session.save_memory(key="plan", content="ship on Friday")
        session.get_memory(key="plan")
        session.search_memories(query="friday")
        assert len(session.list_memories().memories) == 1
        session.delete_memory(key="plan")
        session.save_memories(memories=[{"key": "tea", "content": "Assam", "tags": ["taste"]}])
        session.rename_memory(key="tea", new_key="chai")
        assert session.delete_memories(tag="taste").deleted_count == 1

    def _notes(self, session: Recorder) -> None:
        note = session.add_note(content="likes tea").note
        session.update_note(note_id=note.note_id, content="likes coffee")
        session.search_notes(query="coffee")
        session.edit_notes(edits=[{"add": {"content": "is called Ada"}}])
        assert len(session.list_notes().notes) == 2
        session.delete_note(note_id=note.note_id)

    def _blocks(self, host: Recorder, session: Recorder, agent: str, other: str) -> None:
        session.update_block(label="lines", content="one")
        session.edit_block(label="lines", append={"content": "two"})
        assert session.get_block(label="lines").block.content == "one\ntwo"
        session.list_blocks()
        session.delete_block(label="lines")
        shared = {"owner_agent_id": agent, "label": "shared"}
        host.create_shared_block(**shared)
        host.attach_block(**shared, agent_id=other)
        host.list_block_consumers(**shared)
        host.detach_block(**shared, agent_id=other)
        host.delete_shared_block(**shared)

    def _passages(self, session: Recorder) -> None:
        passage = session.store_passage(content="the first passage").passage
        session.get_passage(passage_id=passage.passage_id)
        session.search_passages(query="first")
        self.called["ImportPassages"] += 1
        imported = session.import_passages(*({"content": f"passage {number}"} for number in range(_IMPORTED)))
        assert imported.stored_count == _IMPORTED
        assert len(session.list_passages(page_size=250).passages) == 250
        rest = session.list_passages(page_size=250, page_token=session.list_passages(page_size=250).next_page_token)
        assert len(rest.passages) == 1
        session.delete_passage(passage_id=passage.passage_id)
        session.delete_passages(thread="none")

    def _sessions(self, host: Recorder, session: Recorder, agent: str) -> None:
        host.get_session(session_id=session.session_id)
        host.list_sessions(agent_id=agent)
        host.raise_taint(session_id=session.session_id, taint=3)
        again = host.session(host.reset_session(session_id=session.session_id))
        again.close_session()
        host.list_audit_events(page_size=5)
        host.get_audit_checkpoint(classification=1)

    def _client(self) -> None:
        """Writes without ids, which the client does not repeat."""
        agent = f"c{uuid.uuid4()}"
        with muniment.connect(self._address, host_key=self._host_key) as host:
            host.create_agent(agent)
            with host.open_session(agent, taint=muniment.Classification.PUBLIC) as session:
                while self._goes_on("_client"):
                    note = session.add_note("likes tea").note
                    assert len(list(session.list_notes())) == 1
                    session.delete_note(note.note_id)
                    stored = session.store_passage("the first passage")
                    counts = session.import_passages(NewPassage(f"passage {number}") for number in range(3))
                    assert counts.stored_count == 3
                    passages = list(session.list_passages())
                    assert len(passages) == 4, stored
                    for passage in passages:
                        session.delete_passage(passage.passage_id)

    def _slow_import(self) -> None:
        """Streams that last, with a passage now and then."""
        agent = f"d{uuid.uuid4()}"

        def passages(count: int) -> Iterator[dict[str, str]]:
            for number in range(count):
                yield {"content": f"passage {number}"}
                self._over.wait(_IMPORT_SECONDS / count)

        with channel_to(self._address) as channel:
            host = Recorder(channel, self._host_key, self.called)
            host.create_agent(agent_id=agent)
            session = host.session(host.open_session(agent_id=agent, taint=1))
            while self._goes_on("_slow_import"):
                assert session.import_stream(passages(5)).stored_count == 5
