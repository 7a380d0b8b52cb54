"""What a run of 96 programs must compare at least once: RPC, level of the caller, status."""

from __future__ import annotations

from muniment_server.domain.classification import Classification
from tests.rpcs import RPCS
from tests.support.methods import POLICIES

BY_SESSION = {rpc: row.outcomes for rpc, row in RPCS.items() if POLICIES[rpc].for_sessions and rpc != "CloseSession"}
"""CloseSession is in `REACHABLE` by itself: programs close a session at PUBLIC only."""
_BY_HOST = {rpc: row.outcomes for rpc, row in RPCS.items() if POLICIES[rpc].for_hosts}
LEVELS = [level.name for level in Classification]
REACHABLE = frozenset(
    (
        *((rpc, level, each) for rpc, own in BY_SESSION.items() for each in own.everywhere for level in LEVELS[:3]),
        *((rpc, level, each) for rpc, own in BY_SESSION.items() for each in own.above_public for level in LEVELS[1:3]),
        *((rpc, "RESTRICTED", "OK") for rpc in BY_SESSION),
        *((rpc, "HOST", each) for rpc, own in _BY_HOST.items() for each in own.everywhere),
        ("CloseSession", "PUBLIC", "OK"),
        ("GetMemory", "HOST", "PRINCIPAL_NOT_ALLOWED"),
        ("Nothing", "HOST", "METHOD_UNKNOWN"),
        ("ListMemories", "NOBODY", "CREDENTIAL_INVALID"),
        ("GetMemory", "NOBODY", "CREDENTIAL_INVALID"),
    )
)
SOMEWHERE = frozenset((rpc, each) for rpc, row in RPCS.items() for each in row.outcomes.somewhere)


def missing(coverage: set[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """What *coverage* lacks."""
    somewhere = {(rpc, status) for rpc, _, status in coverage}
    return sorted(REACHABLE - coverage) + sorted((rpc, "ANYBODY", status) for rpc, status in SOMEWHERE - somewhere)
