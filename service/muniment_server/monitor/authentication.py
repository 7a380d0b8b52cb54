"""Who is calling: the bearer token in the metadata, looked up in the database."""

from __future__ import annotations

import threading
from collections import OrderedDict

import grpc

from muniment_server.domain import tokens
from muniment_server.domain.errors import Unauthenticated
from muniment_server.domain.records import HostIdentity, SessionIdentity
from muniment_server.domain.tokens import Token, TokenKind
from muniment_server.monitor.store import Store
from muniment_server.postgres.deadline import Lifetime

_SCHEME = "Bearer "
_MOST_CACHED = 10_000


def bearer_token(context: grpc.ServicerContext) -> Token:
    """The one bearer token of a call. Raises Unauthenticated, for whatever reason, always alike."""
    values = [value for name, value in context.invocation_metadata() or () if name == "authorization"]
    if len(values) != 1 or not isinstance(values[0], str) or not values[0].startswith(_SCHEME):
        raise Unauthenticated
    token = tokens.parse(values[0].removeprefix(_SCHEME))
    if token is None:
        raise Unauthenticated
    return token


class Credentials:
    """Looks tokens up. Remembers sessions, for speed only: the fence checks each again in every statement.

    Never remembers a miss (an id guessed early must work once it is real) nor a host key (revoked is revoked).
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sessions: OrderedDict[Token, SessionIdentity] = OrderedDict()
        self._lock = threading.Lock()

    def principal(self, token: Token, lifetime: Lifetime) -> HostIdentity | SessionIdentity:
        """Who holds *token*; for a session perhaps as it was a while ago. Raises Unauthenticated."""
        if token.kind is TokenKind.SESSION:
            return self._sessions.get(token) or self.fresh_session(token, lifetime)
        host = self._store.find_host(token, lifetime)
        if host is None:
            raise Unauthenticated
        return host

    def fresh_session(self, token: Token, lifetime: Lifetime) -> SessionIdentity:
        """The session that holds *token*, as it is now. Raises Unauthenticated."""
        session = self._store.find_session(token, lifetime)
        with self._lock:
            if session is None:
                self._sessions.pop(token, None)
                raise Unauthenticated
            self._sessions[token] = session
            if len(self._sessions) > _MOST_CACHED:
                self._sessions.popitem(last=False)
        return session
