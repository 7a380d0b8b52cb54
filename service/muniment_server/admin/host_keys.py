"""What operators do with host keys."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from uuid import UUID

from muniment.cli.failures import Failure
from muniment_server.admin.connection import Operator
from muniment_server.admin.tenants import create_tenant
from muniment_server.domain import tokens
from muniment_server.domain.classification import Classification, Integrity
from muniment_server.domain.ids import HostKeyId, IdSource, TenantNumber
from muniment_server.domain.tokens import TokenKind


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom an issuer must vouch for: the claims of its tokens, and where its public keys are."""

    issuer: str
    audience: str
    subject: str
    keys: str


@dataclass(frozen=True, slots=True)
class HostKey:
    """A host key, without the secret. Without an issuer, it is no identity."""

    host_key_id: HostKeyId
    name: str | None
    tenant: str
    ceiling: Classification
    only_service: str | None
    integrity: Integrity
    may_declassify: bool
    may_endorse: bool
    create_time: datetime
    expire_time: datetime | None
    freeze_time: datetime | None
    revoke_time: datetime | None
    issuer: str | None
    audience: str | None
    subject: str | None
    keys: str | None


def create_host_key(
    operator: Operator,
    *,
    tenant: str,
    ceiling: Classification,
    name: str | None = None,
    lifetime: timedelta | None = None,
    only_service: str | None = None,
    integrity: Integrity = Integrity.TRUSTED,
    may: Collection[str] = (),
    identity: Identity | None = None,
    taken: Collection[TenantNumber] = (),
    ids: IdSource,
) -> tuple[UUID, str]:
    """Create a key for *tenant*, which is created if it does not exist; return the key's id and the key.

    It expires after *lifetime*, and may call the methods of *only_service* only, unless those are None. One of the
    *integrity* UNTRUSTED is for SessionService only, and for sessions that are not trusted. *may* has its rights at the
    release desk: `declassify`, `endorse`. If it stands for an *identity*, the caller must throw the key away. A new
    tenant gets none of the numbers *taken*.
    """
    with operator.connection.transaction():
        number = operator.find_tenant(tenant) or create_tenant(operator, tenant, taken)
        if operator.values("is_moving", tenant=number) != [False]:  # []: it moved away while this waited for the lock
            raise Failure("the tenant is moving to another server", "end the move: muniment tenant move")
        key = tokens.mint(TokenKind.HOST, tenant=number, secret=ids.new_secret())
        host_key_id = ids.new_uuid()
        operator.execute(
            "create_host_key",
            tenant=number,
            host_key_id=host_key_id,
            key_hash=tokens.digest(key),
            name=name,
            ceiling=ceiling,
            lifetime=lifetime,
            only_service=only_service,
            trusted=integrity is Integrity.TRUSTED,
            may_declassify="declassify" in may,
            may_endorse="endorse" in may,
            **(asdict(identity) if identity else dict.fromkeys(Identity.__slots__)),
        )
    return host_key_id, key


def list_host_keys(operator: Operator) -> list[HostKey]:
    """All keys, including revoked ones."""
    return operator.rows("list_host_keys", HostKey)


def revoke_host_key(operator: Operator, host_key_id: UUID) -> bool:
    """Revoke a key. False if there is no such key, or it is already revoked."""
    return bool(operator.values("revoke_host_key", host_key_id=host_key_id))


def accepts_host_key(operator: Operator, key: str) -> bool:
    """Whether *key* is valid now."""
    token = tokens.parse(key)
    if token is None or token.kind is not TokenKind.HOST:
        return False
    return bool(operator.values("accepts_host_key", tenant=token.tenant, key_hash=token.hash))


def freeze_host_keys(operator: Operator, tenant: str) -> int:
    """Refuse the keys of *tenant* until they are thawed; return how many there were. Raises NoSuchTenant."""
    return int(operator.values("freeze_host_keys", tenant=operator.tenant(tenant))[0])


def thaw_host_keys(operator: Operator, tenant: str) -> int:
    """Accept the frozen keys of *tenant* again; return how many there were. Raises NoSuchTenant."""
    return int(operator.values("thaw_host_keys", tenant=operator.tenant(tenant))[0])
