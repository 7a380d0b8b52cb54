"""What a caller learns by the time of a refusal about credentials that it does not have (C84).

Half of the calls, by chance, have a token that never existed. The other half have one of those below. A call is a slot.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import cycle, islice, repeat

import grpc

import muniment
from muniment import Classification
from muniment.v1.memory_service_pb2 import GetMemoryRequest
from muniment.v1.memory_service_pb2_grpc import MemoryServiceStub
from muniment_server.domain.ids import SECRET_BYTES, TenantNumber
from muniment_server.domain.tokens import TokenKind, digest, mint, parse
from tests.proof.faults.processes import ServerProcess
from tests.proof.timing import capacity
from tests.proof.timing.capacity import Capacity

_HASH_BYTES = 2
"""How many bytes of a stored hash a token shares. They are found by trying: a byte more takes 256 times as long."""
_ALIKE = 3
NO_TENANT = "of a tenant that does not exist"
_UNUSED = TenantNumber(2**62)
_WAIT = 5.0
_WARM_UP = 20

Tokens = Iterator[str]


def measure(server: ServerProcess, calls: int, *, seed: int) -> Mapping[str, tuple[Capacity, float]]:
    """For each kind of token, the bits that one call tells about which of two tokens it had; and for shuffled bits."""
    with muniment.connect(server.address, host_key=server.host_key) as host:
        host.create_agent("nobody")
        valid = host.open_session("nobody", Classification.PUBLIC).token
        closed = host.open_session("nobody", Classification.CONFIDENTIAL)
        closed.close()
    parsed = parse(valid)
    assert parsed is not None
    stored = parsed.hash[:_HASH_BYTES]
    alike = islice((token for token in _tokens(parsed.tenant) if digest(token).startswith(stored)), _ALIKE)
    kinds = {
        "of a session that is closed": repeat(closed.token),
        f"its hash has the first {8 * _HASH_BYTES} bits of a valid one's": cycle(list(alike)),
        NO_TENANT: _tokens(_UNUSED),
    }
    return {name: _compared(server.address, parsed.tenant, kind, calls, seed) for name, kind in kinds.items()}


def _compared(address: str, tenant: TenantNumber, kind: Tokens, calls: int, seed: int) -> tuple[Capacity, float]:
    dice, unknown = random.Random(seed), _tokens(tenant)
    with grpc.insecure_channel(address) as channel:
        get = MemoryServiceStub(channel).GetMemory
        for _ in range(_WARM_UP):
            _refused(get, next(unknown))
        bits = [dice.random() < 0.5 for _ in range(calls)]
        took = {"call": [_refused(get, next(kind if bit else unknown)) for bit in bits]}
    return capacity.capacity(took, bits), capacity.shuffled(took, bits)


def _tokens(tenant: TenantNumber) -> Tokens:
    """Well-formed session tokens that were never issued."""
    while True:
        yield mint(TokenKind.SESSION, tenant=tenant, secret=secrets.token_bytes(SECRET_BYTES))


def _refused(get: Callable[..., object], token: str) -> float:
    """Seconds until a call with *token* is refused."""
    begun, code = time.perf_counter(), grpc.StatusCode.OK
    try:
        get(GetMemoryRequest(key="plan"), metadata=(("authorization", f"Bearer {token}"),), timeout=_WAIT)
    except grpc.RpcError as refusal:
        code = refusal.code()
    took = time.perf_counter() - begun
    assert code is grpc.StatusCode.UNAUTHENTICATED
    return took
