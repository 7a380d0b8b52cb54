"""Development mode: a host key for the data directory, kept where the other commands and the examples find it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from muniment_server.admin.operator import operating
from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import RandomIds

FILE = "development.json"
TENANT = "development"


def write_credentials(data_dir: Path, *, address: str, admin: str) -> str:
    """Write the address and a host key to `DIR/development.json` (0600); return the key, the old one if it is good."""
    path = data_dir / FILE
    with operating(admin) as operator:
        key = _known_key(path)
        if key is None or not operator.accepts_host_key(key):
            _, key = operator.create_host_key(tenant=TENANT, ceiling=Classification.RESTRICTED, ids=RandomIds())
    part = path.with_name(FILE + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"address": address, "host_key": key}, file)
    part.replace(path)
    return key


def _known_key(path: Path) -> str | None:
    try:
        return str(json.loads(path.read_text())["host_key"])
    except (OSError, ValueError, KeyError):
        return None
