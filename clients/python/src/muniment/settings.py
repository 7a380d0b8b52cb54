"""Finds the address and the credential if the program does not give them.

The environment comes first: MUNIMENT_ADDRESS with MUNIMENT_HOST_KEY or MUNIMENT_TOKEN; if both are set, the host key
counts. If none of them is set, `development.json` in the folder that MUNIMENT_DATA_DIR names, or in `.muniment` in the
working directory, as `muniment serve --dev` writes it; its host key is also used if MUNIMENT_ADDRESS alone is set and
names the same server.
With either, MUNIMENT_TLS_CA names the file of the authority to trust with TLS.
A key is never sent to a server that it was not set for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DEVELOPMENT_FILE = Path(".muniment", "development.json")
VARIABLES = ("MUNIMENT_ADDRESS", "MUNIMENT_TOKEN", "MUNIMENT_HOST_KEY")


@dataclass(frozen=True, slots=True)
class Settings:
    """An address, exactly one credential, and the file of an authority, if any, which turns on TLS."""

    address: str
    host_key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca: str | None = None

    def __post_init__(self) -> None:
        if not self.address:
            raise ValueError("an address is needed")
        if bool(self.host_key) == bool(self.token):
            raise ValueError(
                "exactly one credential is needed, a host key or a session's token: "
                + ("both are set, so unset one" if self.token else "neither is set")
            )

    @property
    def credential(self) -> str:
        """The credential that is set."""
        return self.host_key or self.token or ""


def named_development_file(environment: Mapping[str, str]) -> Path | None:
    """The development file in the data directory that MUNIMENT_DATA_DIR names. None if it is not set."""
    data_dir = environment.get("MUNIMENT_DATA_DIR", "").strip()
    return Path(data_dir, DEVELOPMENT_FILE.name) if data_dir else None


def in_development_file(file: Path) -> tuple[str, str]:
    """The address and the host key in *file*. Raises ValueError if it does not contain them, or OSError."""
    if file.is_fifo():  # which may never be written
        raise ValueError(f"{file} is not a regular file")
    try:
        written = json.loads(file.read_text(encoding="utf-8"))
        address, host_key = written["address"], written["host_key"]
    except (ValueError, LookupError, TypeError, RecursionError):
        address = host_key = None
    if isinstance(address, str) and isinstance(host_key, str) and address and host_key:
        return address, host_key
    raise ValueError(f"{file} does not contain an address and a host_key")


def find_settings(environment: Mapping[str, str] = os.environ, file: Path | None = None) -> Settings:
    """The settings of this process. ValueError: there are none, or they are incomplete.

    *file* is the development file; by default, it is the one that `muniment serve --dev` writes.
    """
    file = file or named_development_file(environment) or DEVELOPMENT_FILE
    ca = environment.get("MUNIMENT_TLS_CA", "").strip() or None
    address, token, host_key = (environment.get(name, "").strip() for name in VARIABLES)
    if not (token or host_key) and file.exists():
        written = _from_file(file, ca)
        if address in ("", written.address):
            return written
    if not (address or token or host_key):
        raise ValueError(
            "no server is named: set MUNIMENT_ADDRESS and either MUNIMENT_TOKEN or MUNIMENT_HOST_KEY,"
            " or start one here with `muniment serve --dev`"
        )
    return _of_environment(address, host_key, "" if host_key else token, ca)


def find_host_settings(environment: Mapping[str, str] = os.environ, file: Path | None = None) -> Settings:
    """The settings of a host, whether or not there is a session's token too. *file* as in `find_settings`."""
    return find_settings({**environment, "MUNIMENT_TOKEN": ""}, file)


def find_session_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a session, MUNIMENT_ADDRESS and MUNIMENT_TOKEN, whether or not there is a host key too."""
    ca = environment.get("MUNIMENT_TLS_CA", "").strip() or None
    address, token, _ = (environment.get(name, "").strip() for name in VARIABLES)
    return _of_environment(address, "", token, ca)


def _of_environment(address: str, host_key: str, token: str, ca: str | None) -> Settings:
    try:
        return Settings(address, host_key=host_key or None, token=token or None, ca=ca)
    except ValueError as error:
        raise ValueError(f"{error}: see {', '.join(VARIABLES)}") from None


def _from_file(file: Path, ca: str | None) -> Settings:
    address, host_key = in_development_file(file)
    return Settings(address, host_key=host_key, ca=ca)
