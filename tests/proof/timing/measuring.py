"""One measurement: a server, a sender above or beside the receiver, and what is learned."""

from __future__ import annotations

import multiprocessing
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import muniment
from muniment import Classification
from tests.proof.faults.processes import ServerProcess
from tests.proof.timing import capacity, channels
from tests.proof.timing.channels import Slots

_BEFORE = 3.0
"""Seconds until the first slot: processes start."""
RELATIONS = ("same agent, above", "another agent", "another tenant")


class Found(NamedTuple):
    """What one measurement found."""

    capacity: capacity.Capacity
    shuffled: float
    """Bits in each slot that the estimate finds for shuffled bits."""
    calls: int
    refused: int
    slots: Slots
    load: int
    """Calls of the honest load."""


class Parties:
    """The sessions: the receiver at PUBLIC; the senders at CONFIDENTIAL; and those of an honest load."""

    def __init__(self, server: ServerProcess) -> None:
        self.address = server.address
        self._hosts = {"ours": server.host_key, "another": _host_key(server, "another")}
        self.receiver = self._token("ours", "alice", Classification.PUBLIC)
        self.senders = {
            RELATIONS[0]: self._token("ours", "alice", Classification.CONFIDENTIAL),
            RELATIONS[1]: self._token("ours", "bob", Classification.CONFIDENTIAL),
            RELATIONS[2]: self._token("another", "eve", Classification.CONFIDENTIAL),
        }
        self.honest = [self._token("another", f"honest{number}", Classification.PUBLIC) for number in range(4)]

    def _token(self, tenant: str, agent: str, level: Classification) -> str:
        with muniment.connect(self.address, host_key=self._hosts[tenant]) as host:
            if agent not in [each.agent_id for each in host.list_agents()]:
                host.create_agent(agent)
            session = host.open_session(agent, level)
            session.save_memory("plan", "ship on Friday")
            return session.token


def measure(
    parties: Parties, relation: str, sender: str, slots: int, seconds: float, *, loaded: bool, seed: int
) -> Found:
    """Send so many bits by chance, in slots of so many *seconds*."""
    dice = random.Random(seed)
    bits = [dice.random() < 0.5 for _ in range(slots)]
    when = Slots(time.monotonic() + _BEFORE, seconds, slots)
    with ProcessPoolExecutor(3, multiprocessing.get_context("spawn")) as pool:
        received = pool.submit(channels.receive, parties.address, parties.receiver, when)
        sent = pool.submit(channels.send, parties.address, parties.senders[relation], sender, when, bits)
        honest = loaded and pool.submit(channels.work, parties.address, parties.honest, when.end - time.monotonic())
        seen = channels.features(received.result(), when)
        calls, refused = sent.result()
        load = honest.result() if honest else 0
    return Found(capacity.capacity(seen, bits), capacity.shuffled(seen, bits), calls, refused, when, load)


def _host_key(server: ServerProcess, tenant: str) -> str:
    command = [str(Path(sys.executable).parent / "muniment"), "host-key", "create", "--tenant", tenant]
    options: Sequence[str] = ["--ceiling", "restricted", "--quiet", "--data-dir", str(server.data_dir)]
    return subprocess.run([*command, *options], check=True, capture_output=True, text=True).stdout.strip()
