"""The sender and the receiver, each in a process of its own, and an honest load beside them.

All slots begin at times that both know. In a slot whose bit is 1 the sender acts; else it does nothing.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any, NamedTuple

import grpc

from muniment.v1.memory_service_pb2 import GetMemoryRequest, SaveMemoryRequest, SearchMemoriesRequest
from muniment.v1.memory_service_pb2_grpc import MemoryServiceStub
from muniment.v1.passage_service_pb2 import StorePassageRequest
from muniment.v1.passage_service_pb2_grpc import PassageServiceStub
from tests.support.raw_http2 import refused_at_once, unread, without_message

_PAUSE = 0.01
"""Seconds between two calls of the receiver of one kind."""
_SENDING = 0.8
"""The part of a slot in which the sender begins calls, so that they do not reach into the next one."""
_FLOOD = 16
_LOAD_PAUSE = 0.05
_LOAD_THREADS = 8
_WAIT = 5.0
_GET, _SAVE, _LIST, _SEARCH = (
    f"/muniment.v1.MemoryService/{name}" for name in ("GetMemory", "SaveMemory", "ListMemories", "SearchMemories")
)
_KEPT = 30
_CONNECTIONS = 4
"""So that each worker has some of them."""
_KEPT_SECONDS = 0.3
_PROBES = 200
_TOO_LONG = b"\x0a\x04plan\x12\x90\xd0\x0f" + b"x" * 256_016
"""A memory that is refused once it has its turn."""
_LONG = "The committee met on Tuesday to discuss the budget of the northern office and its staff. "


class Slots(NamedTuple):
    """When the slots are: *number* of them, from *begin* on, by the clock that all processes share."""

    begin: float
    seconds: float
    number: int

    @property
    def end(self) -> float:
        return self.begin + self.seconds * self.number

    def of(self, moment: float) -> int:
        """The number of the slot at a moment; it may be outside."""
        return int((moment - self.begin) // self.seconds)


class Sample(NamedTuple):
    """One call of the receiver, or one item from its write until it was found."""

    kind: str
    begun: float
    seconds: float
    refused: bool = False
    by_words: bool = False
    """Whether a search had to answer without embeddings."""
    refused_calls: int = 0
    """Of many calls that were made at once."""


class Client:
    """The calls of one session."""

    def __init__(self, address: str, token: str) -> None:
        self._address, self._token = address, token
        self._channel = grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)])
        self._memories, self._passages = MemoryServiceStub(self._channel), PassageServiceStub(self._channel)
        self._has_long_answers = False
        self._options: dict[str, Any] = {"metadata": (("authorization", f"Bearer {token}"),), "timeout": _WAIT}

    def get(self) -> None:
        self._memories.GetMemory(GetMemoryRequest(key="plan"), **self._options)

    def save(self, key: str = "plan") -> None:
        content = f"ship on Friday, {random.random()}"
        self._memories.SaveMemory(SaveMemoryRequest(key=key, content=content), **self._options)

    def store_long(self) -> None:
        self._passages.StorePassage(StorePassageRequest(content=f"{random.random()} {_LONG * 11}"), **self._options)

    def save_found(self) -> None:
        content = f"Bruno barks at the postman, {random.random()}"
        self._memories.SaveMemory(SaveMemoryRequest(key="dog", content=content), **self._options)

    def search(self) -> tuple[bool, int]:
        """Whether embeddings were compared, and how many results there are."""
        request = SearchMemoriesRequest(query=f"my hound makes noise {random.random()}")
        answer = self._memories.SearchMemories(request, **self._options)
        return answer.semantic, len(answer.results)

    def keep_calls(self, seconds: float) -> None:
        """Keep calls of searches without a message."""
        self._keep(partial(without_message, path=_SEARCH), seconds)

    def keep_bytes(self, seconds: float) -> None:
        """Keep large messages: each is too long for a memory, and waits for its turn."""
        save: Any = self._channel.unary_unary(_SAVE)
        calls = [save.future(_TOO_LONG, **self._options) for _ in range(_KEPT)]
        time.sleep(seconds)
        for call in calls:
            call.cancel()

    def keep_answers(self, seconds: float) -> None:
        """Keep long answers unread."""
        if not self._has_long_answers:
            for number in range(50):
                self._memories.SaveMemory(
                    SaveMemoryRequest(key=f"k{number}", content="word " * 13_000), **self._options
                )
            self._has_long_answers = True
        self._keep(partial(unread, path=_LIST), seconds)

    def _keep(self, calls: Callable[..., AbstractContextManager[object]], seconds: float) -> None:
        with ExitStack() as stack:
            for _ in range(_CONNECTIONS):
                stack.enter_context(calls(self._token, self._address, count=_KEPT))
            time.sleep(seconds)

    def refused(self) -> int:
        """How many calls without a message are refused, of more than a session is let in."""
        return refused_at_once(self._token, self._address, _GET, count=_PROBES)


Act = Callable[[Client], object]
SENDERS: dict[str, tuple[Act, int]] = {
    "one save": (Client.save, 0),
    "one search": (Client.search, 0),
    "one long passage": (Client.store_long, 0),
    "saves, 16 at once": (Client.save, _FLOOD),
    "searches, 16 at once": (Client.search, _FLOOD),
    "calls without a message, kept open": (partial(Client.keep_calls, seconds=_KEPT_SECONDS), 0),
    "large messages, kept open": (partial(Client.keep_bytes, seconds=_KEPT_SECONDS), 0),
    "answers left unread": (partial(Client.keep_answers, seconds=_KEPT_SECONDS), 0),
}
"""What is done in a slot: an act, and how many threads repeat it all through the slot; 0 for once."""
CHEAP = ["one save", "one search", "one long passage", "calls without a message, kept open"]
"""What costs the sender nothing: one call in a slot, or none that is counted."""


def send(address: str, token: str, name: str, slots: Slots, bits: Sequence[bool]) -> tuple[int, int]:
    """Send *bits*; return how many calls that took, and how many of them were refused."""
    act, threads = SENDERS[name]
    calls = [0, 0]

    def repeat(once: bool) -> None:
        client = Client(address, token)
        for number, bit in enumerate(bits):
            begin = slots.begin + number * slots.seconds
            _sleep_until(begin)
            while bit and time.monotonic() < begin + slots.seconds * _SENDING:
                calls[0] += 1
                if not _succeeds(lambda: act(client)):
                    calls[1] += 1
                if once:
                    break

    _run([lambda: repeat(not threads)] * (threads or 1))
    return calls[0], calls[1]


def receive(address: str, token: str, slots: Slots) -> list[Sample]:
    """Get, search, write and find, and ask for room, on four threads, until the last slot ends."""
    samples: list[Sample] = []

    def repeat(measure: Callable[[Client], Sample]) -> None:
        client = Client(address, token)
        _sleep_until(slots.begin)
        while time.monotonic() < slots.end:
            samples.append(measure(client))
            time.sleep(_PAUSE)

    def find(client: Client) -> Sample:
        begun = time.monotonic()
        _succeeds(client.save_found)
        while not _finds(client) and time.monotonic() < min(begun + _WAIT, slots.end):
            time.sleep(_PAUSE)
        return Sample("found", begun, time.monotonic() - begun)

    _run([partial(repeat, measure) for measure in (_get, _search, find, _ask_for_room)])
    return samples


def work(address: str, tokens: Sequence[str], seconds: float) -> int:
    """An honest load: saves, reads and searches of other sessions; return how many calls were made."""
    end, calls = time.monotonic() + seconds, [0]

    def repeat(number: int) -> None:
        client, dice = Client(address, tokens[number % len(tokens)]), random.Random(number)
        while time.monotonic() < end:
            act = dice.choice((client.get, client.get, client.get, client.save, client.save, client.search))
            _succeeds(act)
            calls[0] += 1
            time.sleep(dice.expovariate(1 / _LOAD_PAUSE))

    _run([partial(repeat, number) for number in range(_LOAD_THREADS)])
    return calls[0]


def features(samples: Sequence[Sample], slots: Slots) -> dict[str, list[float]]:
    """What the receiver saw in each slot: how long calls took, how many there were, and how many failed.

    What the sender does may outlast its slot, so each is also taken from the next one.
    """
    found: dict[str, list[float]] = defaultdict(lambda: [0.0] * slots.number)
    each: dict[tuple[str, int], list[Sample]] = defaultdict(list)
    for sample in samples:
        each[sample.kind, slots.of(sample.begun)].append(sample)
    for kind in ("get", "search", "found", "room"):
        for slot in range(slots.number):
            those = each[kind, slot]
            took = [sample.seconds for sample in those] or [0.0]
            found[f"{kind}: median"][slot] = statistics.median(took)
            found[f"{kind}: slowest"][slot] = max(took)
            found[f"{kind}: mean"][slot] = statistics.fmean(took)
            found[f"{kind}: calls"][slot] = len(those)
            found[f"{kind}: refused"][slot] = sum(sample.refused for sample in those)
            found[f"{kind}: by words"][slot] = sum(sample.by_words for sample in those)
            found[f"{kind}: refused calls"][slot] = max((sample.refused_calls for sample in those), default=0)
    later = {f"{name}, a slot later": [*values[1:], values[-1]] for name, values in found.items()}
    return {**found, **later}


def _get(client: Client) -> Sample:
    begun = time.monotonic()
    succeeded = _succeeds(client.get)
    return Sample("get", begun, time.monotonic() - begun, refused=not succeeded)


def _search(client: Client) -> Sample:
    begun = time.monotonic()
    try:
        semantic, _ = client.search()
    except grpc.RpcError:
        return Sample("search", begun, time.monotonic() - begun, refused=True)
    return Sample("search", begun, time.monotonic() - begun, by_words=not semantic)


def _ask_for_room(client: Client) -> Sample:
    begun = time.monotonic()
    refused = client.refused()
    return Sample("room", begun, time.monotonic() - begun, refused_calls=refused)


def _finds(client: Client) -> bool:
    try:
        return client.search()[1] > 0
    except grpc.RpcError:
        return False


def _succeeds(call: Callable[[], object]) -> bool:
    try:
        call()
    except grpc.RpcError:
        return False
    return True


def _run(targets: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))
