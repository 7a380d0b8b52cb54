"""What must be refused: for its form, whoever asks, or for who asks."""

from __future__ import annotations

from typing import Any

from tests.proof.noninterference.programs.alphabets import CANARY
from tests.proof.noninterference.programs.operations import Fields
from tests.rpcs import RPCS, World
from tests.support.methods import FOR_HOSTS, FOR_SESSIONS

_WORLD = World(CANARY)
OUT_OF_FORM: list[tuple[str, dict[str, Any]]] = [
    (rpc, fields) for rpc, row in RPCS.items() for fields in row.refused(_WORLD)
]
NO_MESSAGE = b"\xff\xff\xff"
"""Bytes that do not parse."""


def wrong_calls(session: str, session_id: str, host: str) -> tuple[tuple[tuple[str, str, Fields], ...], ...]:
    """Callers with what is not for them: tokens, each with RPCs and their requests."""
    requests = {rpc: row.request(World(CANARY, session_id)) for rpc, row in RPCS.items()}
    imports = requests["ImportPassages"]
    return (
        tuple((session, rpc, requests[rpc]) for rpc in sorted(FOR_HOSTS)),
        tuple((host, rpc, requests[rpc]) for rpc in sorted(FOR_SESSIONS)),
        ((session, "Nothing", b""), (host, "Nothing", b"")),
        ((session[:-2] + "AA", "GetMemory", requests["GetMemory"]), (session[:-2] + "AA", "RenderPrompt", b"")),
        (("nonsense", "ListMemories", {}), ("nonsense", "ImportPassages", imports)),
    )
