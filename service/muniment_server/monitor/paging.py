"""Page tokens: opaque to callers, and valid only for the caller, call, filters and taint they were made for."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass

from muniment_server.domain import base64url
from muniment_server.domain.classification import Label
from muniment_server.domain.errors import InvalidPageToken, TaintChanged

_MAC_BYTES = 16


@dataclass(frozen=True, slots=True)
class Pager:
    """Makes and reads the page tokens of one method, filter, credential and taint."""

    credential: bytes
    """The hash of the caller's bearer token: the HMAC key, equal in every worker, with nothing to configure."""
    method: str
    filters: Sequence[object]
    taint: Label | None = None

    def token(self, *last: str) -> str:
        """The token for the page after the item that *last* names."""
        body = json.dumps([self._taint(), *last], ensure_ascii=False, separators=(",", ":")).encode()
        return base64url.encode(self._mac(body) + body)

    def last(self, token: str) -> list[str] | None:
        """What the token names, or None for the first page. Raises InvalidPageToken or TaintChanged."""
        if not token:
            return None
        raw = base64url.decode(token) or b""
        mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(body)):
            raise InvalidPageToken
        taint, *last = json.loads(body)
        if taint != self._taint():
            raise TaintChanged
        return [str(part) for part in last]

    def _taint(self) -> int | None:
        return None if self.taint is None else self.taint.chain

    def _mac(self, body: bytes) -> bytes:
        context = json.dumps([self.method, *self.filters], ensure_ascii=False).encode()
        return hmac.digest(self.credential, hashlib.sha256(context).digest() + body, "sha256")[:_MAC_BYTES]
