"""What operators do with host keys."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from muniment_server.admin.connection import Count, Operator, Tenant
from muniment_server.admin.tenants import create_tenant
from muniment_server.domain import tokens
from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import HostKeyId, IdSource, TenantNumber
from muniment_server.domain.tokens import TokenKind


@dataclass(frozen=True, slots=True)
class HostKey:
    """A host key, without the secret."""

    host_key_id: HostKeyId
    tenant: str
    ceiling: Classification
    only_service: str | None
    create_time: datetime
    expire_time: datetime | None
    freeze_time: datetime | None
    revoke_time: datetime | None


class TenantMoves(RuntimeError):
    """The tenant with that name is moving to another database server, or has not arrived from one."""


@dataclass(frozen=True, slots=True)
class _HostKeyId:
    host_key_id: HostKeyId


@dataclass(frozen=True, slots=True)
class _IsMoving:
    is_moving: bool


def create_host_key(
    operator: Operator,
    *,
    tenant: str,
    ceiling: Classification,
    lifetime: timedelta | None = None,
    only_service: str | None = None,
    taken: Collection[TenantNumber] = (),
    ids: IdSource,
) -> tuple[UUID, str]:
    """Create a key for *tenant*, which is created if it does not exist; return the key's id and the key.

    It expires after *lifetime*, and may call the methods of *only_service* only, unless those are None. A new
    tenant gets none of the numbers *taken*.
    """
    with operator.connection.transaction():
        number = operator.find_tenant(tenant) or create_tenant(operator, tenant, taken)
        found = operator.first("is_moving", _IsMoving, tenant=number)
        if found is None or found.is_moving:  # None: the tenant moved away while this waited for the lock
            raise TenantMoves
        key = tokens.mint(TokenKind.HOST, tenant=number, secret=ids.new_secret())
        host_key_id = ids.new_uuid()
        operator.execute(
            "create_host_key",
            tenant=number,
            host_key_id=host_key_id,
            key_hash=tokens.digest(key),
            ceiling=ceiling,
            lifetime=lifetime,
            only_service=only_service,
        )
    return host_key_id, key


def list_host_keys(operator: Operator) -> list[HostKey]:
    """All keys, including revoked ones."""
    return operator.rows("list_host_keys", HostKey)


def revoke_host_key(operator: Operator, host_key_id: UUID) -> bool:
    """Revoke a key. False if there is no such key, or it is already revoked."""
    return operator.first("revoke_host_key", Tenant, host_key_id=host_key_id) is not None


def accepts_host_key(operator: Operator, key: str) -> bool:
    """Whether *key* is valid now."""
    token = tokens.parse(key)
    if token is None or token.kind is not TokenKind.HOST:
        return False
    return operator.first("accepts_host_key", _HostKeyId, tenant=token.tenant, key_hash=token.hash) is not None


def freeze_host_keys(operator: Operator, tenant: str) -> int:
    """Refuse the keys of *tenant* until they are thawed; return how many there were. Raises NoSuchTenant."""
    return operator.one("freeze_host_keys", Count, tenant=operator.tenant(tenant)).rows


def thaw_host_keys(operator: Operator, tenant: str) -> int:
    """Accept the frozen keys of *tenant* again; return how many there were. Raises NoSuchTenant."""
    return operator.one("thaw_host_keys", Count, tenant=operator.tenant(tenant)).rows
