"""What Postgres keeps instead of a password (RFC 5802, SCRAM)."""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode

_VERIFIER = re.compile(r"SCRAM-SHA-256\$(?P<rounds>\d+):(?P<salt>[^$]+)\$(?P<stored_key>[^:]+):.+")


def is_password(password: str, verifier: str) -> bool:
    """Whether *verifier* was made from *password*."""
    found = _VERIFIER.fullmatch(verifier)
    if found is None:
        return False
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b64decode(found["salt"]), int(found["rounds"]))
    stored_key = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    return hmac.compare_digest(stored_key, b64decode(found["stored_key"]))
