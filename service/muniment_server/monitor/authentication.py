"""Who is calling: the bearer token in the metadata, looked up in the database."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable

from muniment_server.domain import tokens
from muniment_server.domain.errors import Unauthenticated
from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.domain.tokens import Token, TokenKind
from muniment_server.monitor.scopes import Scopes
from muniment_server.postgres.deadline import Deadline

_SCHEME = "bearer "
"""Compared without case: RFC 9110, section 11.1."""
_MAX_CACHED = 10_000


class Credential:
    """Finds the token that stands for a credential in the database, or None. A subclass knows identities, too."""

    def of_text(self, text: str) -> Token | None:
        """Of what a caller has sent."""
        return tokens.parse(text)

    def of_certificate(self, certificate: bytes) -> Token | None:
        """Of the certificate of a caller, in PEM, which TLS has verified."""
        return None


def bearer_token(
    metadata: Iterable[tuple[str, str | bytes]], credential: Credential, certificate: Callable[[], bytes | None]
) -> Token | None:
    """The token of a call. None unless the metadata has exactly one credential, or the certificate alone is one."""
    values = [value for name, value in metadata if name == "authorization"]
    if not values and (shown := certificate()) is not None:
        return credential.of_certificate(shown)
    if len(values) != 1 or not isinstance(values[0], str) or values[0][: len(_SCHEME)].lower() != _SCHEME:
        return None
    return credential.of_text(values[0][len(_SCHEME) :])


class Credentials:
    """Looks tokens up, and remembers the holders of valid ones.

    What is remembered of a session is for speed only: each statement checks the session again. What is remembered of a
    host key chooses the threads for its calls, and nothing else: each call looks the key up, so a revoked one fails at
    once. A miss is never remembered: a token that was guessed early must work once it exists.
    """

    def __init__(self, scopes: Scopes, credential: Credential) -> None:
        self._scopes = scopes
        self.credential = credential
        self._holders: OrderedDict[Token, tuple[HostIdentity | SessionIdentity, float]] = OrderedDict()
        """The holder of each token, and when it was looked up, in seconds of the monotonic clock."""
        self._lock = threading.Lock()

    def remembered(self, token: Token, *, seconds: float) -> HostIdentity | SessionIdentity | None:
        """The holder of *token*, as looked up within the last *seconds*; it may be outdated. Asks no database."""
        holder, since = self._holders.get(token, (None, 0.0))
        return holder if since >= time.monotonic() - seconds else None

    def principal(self, token: Token, deadline: Deadline) -> HostIdentity | SessionIdentity:
        """The holder of *token*; a session may be outdated. Raises Unauthenticated."""
        if token.kind is TokenKind.SESSION and (known := self._holders.get(token)) is not None:
            return known[0]
        return self.current(token, deadline)

    def current(self, token: Token, deadline: Deadline) -> HostIdentity | SessionIdentity:
        """The holder of *token*, as the database has it now. Raises Unauthenticated."""
        found = self.look_up({token}, deadline)[token]
        if isinstance(found, Unauthenticated):
            raise found
        return found

    def look_up(
        self, wanted: Collection[Token], deadline: Deadline
    ) -> dict[Token, HostIdentity | SessionIdentity | Unauthenticated]:
        """The holders of those tokens, as the database has them now, or what to refuse the tokens with."""
        found = self._scopes.find_holders(wanted, deadline)
        with self._lock:
            for token, holder in found.items():
                if isinstance(holder, Unauthenticated):
                    self._holders.pop(token, None)
                else:
                    self._holders[token] = holder, time.monotonic()
            while len(self._holders) > _MAX_CACHED:
                self._holders.popitem(last=False)
        return found
