"""Development mode: stores a host key in the data directory, where other commands and the examples find it."""

from __future__ import annotations

import json
from pathlib import Path

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.dumps import new_file
from muniment_server.admin.host_keys import accepts_host_key, create_host_key
from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import RandomIds
from muniment_server.process.input_files import read_file

FILE = "development.json"
TENANT = "development"


def write_credentials(data_dir: Path, *, address: str, admin: str) -> str:
    """Write the address and a host key to `DIR/development.json` (0600); return the key. A valid key is kept."""
    path = data_dir / FILE
    with connect_operator(admin) as operator:
        key = _stored_key(path)
        if key is None or not accepts_host_key(operator, key):
            _, key = create_host_key(operator, tenant=TENANT, ceiling=Classification.RESTRICTED, ids=RandomIds())
    with new_file(path, replaces=True) as file:
        file.write(json.dumps({"address": address, "host_key": key}).encode())
    return key


def _stored_key(path: Path) -> str | None:
    """The host key in the file. None if it has none, or something else than this module writes."""
    try:
        found = json.loads(read_file(path))["host_key"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
