"""Who is calling: the bearer token in the metadata, looked up in the database."""

from __future__ import annotations

import threading
from collections import OrderedDict

import grpc

from muniment_server.domain import tokens
from muniment_server.domain.errors import Unauthenticated
from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.domain.tokens import Token, TokenKind
from muniment_server.monitor.scopes import Scopes
from muniment_server.postgres.deadline import Deadline

_SCHEME = "Bearer "
_MAX_CACHED = 10_000


def bearer_token(context: grpc.ServicerContext) -> Token:
    """The one bearer token of a call. Raises Unauthenticated, always alike."""
    values = [value for name, value in context.invocation_metadata() or () if name == "authorization"]
    if len(values) != 1 or not isinstance(values[0], str) or not values[0].startswith(_SCHEME):
        raise Unauthenticated
    token = tokens.parse(values[0].removeprefix(_SCHEME))
    if token is None:
        raise Unauthenticated
    return token


class Credentials:
    """Looks tokens up. Caches sessions, for speed only: each statement checks the session again.

    Never caches a miss (a token guessed early must work once it exists) nor a host key (revoked keys fail at once).
    """

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._sessions: OrderedDict[Token, SessionIdentity] = OrderedDict()
        self._lock = threading.Lock()

    def principal(self, token: Token, deadline: Deadline) -> HostIdentity | SessionIdentity:
        """The holder of *token*; a session may be outdated. Raises Unauthenticated."""
        if token.kind is TokenKind.SESSION:
            return self._sessions.get(token) or self.fresh_session(token, deadline)
        host = self._scopes.find_host(token, deadline)
        if host is None:
            raise Unauthenticated
        return host

    def fresh_session(self, token: Token, deadline: Deadline) -> SessionIdentity:
        """The session that holds *token*, as the database has it now. Raises Unauthenticated."""
        session = self._scopes.find_session(token, deadline)
        with self._lock:
            if session is None:
                self._sessions.pop(token, None)
                raise Unauthenticated
            self._sessions[token] = session
            if len(self._sessions) > _MAX_CACHED:
                self._sessions.popitem(last=False)
        return session
