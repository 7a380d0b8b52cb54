"""The server that scenarios are played against: one of our own, over every transport, or another's."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString

from muniment_server.admin.connection import Operator, connect_operator
from muniment_server.admin.host_key import RIGHTS
from muniment_server.admin.host_keys import create_host_key
from muniment_server.domain.classification import Classification, Integrity
from muniment_server.domain.ids import RandomIds
from muniment_server.runtime import databases
from muniment_server.runtime.configuration import DatabaseConfig
from tests.support.commands import WORDS_ALONE, Server, environment_in

JSON = Any

TRANSPORTS = ("tls", "plaintext", "unix")
OTHERS_KEYS = ("internal_host", "desk_host", "bound_host", "other_host", "expired_host")
"""What a scenario calls the key that reaches up to INTERNAL only, that of another tenant, and one that has expired."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The host keys of one run."""

    own: str = field(repr=False)
    others: dict[str, str] = field(repr=False)
    """By the names that scenarios have for them."""


# What could depend on the way there: credentials, details of errors, a stream, a call after a call.
_EVERY_WAY = frozenset({"credentials", "notes_budget", "passages_imported", "taint_raised"})


class Target(ABC):
    """A server at an address."""

    def __init__(self, transport: str, address: str, ca_file: str | None) -> None:
        self.transport = transport
        self.address = address
        self._ca_file = ca_file

    def environment(self, keys: Keys) -> dict[str, str]:
        """The environment variables of a runner."""
        variables = {"MUNIMENT_ADDRESS": self.address, "MUNIMENT_HOST_KEY": keys.own}
        return variables | ({"MUNIMENT_TLS_CA": self._ca_file} if self._ca_file else {})

    @abstractmethod
    def keys(self) -> Keys:
        """The host keys for the next client."""

    def plays(self, file: str) -> bool:
        """Whether the scenario of this file is played against it."""
        return True

    def log_of(self, request_ids: Set[str]) -> dict[str, JSON] | None:
        """The lines of the server's log about these calls. None if the log cannot be read."""
        return None


class Elsewhere(Target):
    """A server that others run, with the keys that the environment names."""

    def __init__(self, address: str, ca_file: str | None) -> None:
        super().__init__("tls" if ca_file else "plaintext", address, ca_file)

    def keys(self) -> Keys:
        own = os.environ.get("MUNIMENT_HOST_KEY", "")
        named = {name: os.environ.get(f"MUNIMENT_{name.upper()}_KEY", "") for name in OTHERS_KEYS}
        return Keys(own, {name: key for name, key in named.items() if key})


_tenants = itertools.count(1)


class Ours(Target):
    """A server of ours. Each client gets a tenant of its own."""

    def __init__(
        self, transport: str, address: str, ca_file: str | None, folder: Path, log_file: Path, everything: bool
    ) -> None:
        super().__init__(transport, address, ca_file)
        self._data_dir = folder / "data"
        self._log_file = log_file
        self._everything = everything or transport == "tls"

    def keys(self) -> Keys:
        tenant = f"run{next(_tenants)}"
        with databases.operators_database(DatabaseConfig(self._data_dir)) as admin, connect_operator(admin) as operator:
            return Keys(
                own=_key(operator, tenant, Classification.RESTRICTED, may=RIGHTS),
                others={
                    "internal_host": _key(operator, tenant, Classification.INTERNAL),
                    "desk_host": _key(operator, tenant, Classification.RESTRICTED, may=RIGHTS),
                    "bound_host": _key(operator, tenant, Classification.RESTRICTED, integrity=Integrity.UNTRUSTED),
                    "other_host": _key(operator, f"{tenant}-neighbor", Classification.RESTRICTED),
                    "expired_host": _key(operator, tenant, Classification.RESTRICTED, lifetime=timedelta()),
                },
            )

    def expire_sessions(self) -> None:
        """Make all sessions expire now."""
        self._change_sessions("UPDATE vault.session SET expire_time = vault.clock()")

    def make_sessions_read_only(self) -> None:
        """Make all sessions what they would be if they had been opened to read only."""
        self._change_sessions("UPDATE vault.session SET read_only = TRUE")

    def _change_sessions(self, statement: LiteralString) -> None:
        with databases.operators_database(DatabaseConfig(self._data_dir)) as admin, connect_operator(admin) as operator:
            operator.connection.execute(statement)

    def plays(self, file: str) -> bool:
        return self._everything or file in _EVERY_WAY

    def log_of(self, request_ids: Set[str]) -> dict[str, JSON]:
        """Waits for lines that are being written; what is missing after a minute is not there."""
        end = time.monotonic() + 60
        while not request_ids <= (log := self._log()).keys() and time.monotonic() < end:
            time.sleep(0.05)
        return log

    def _log(self) -> dict[str, JSON]:
        lines = (json.loads(line) for line in self._log_file.read_text().splitlines() if line.endswith("}"))
        return {line["request_id"]: line for line in lines if "request_id" in line}


def _key(
    operator: Operator,
    tenant: str,
    ceiling: Classification,
    *,
    lifetime: timedelta | None = None,
    may: Collection[str] = (),
    integrity: Integrity = Integrity.TRUSTED,
) -> str:
    return create_host_key(
        operator,
        tenant=tenant,
        ceiling=ceiling,
        lifetime=lifetime,
        may=may,
        integrity=integrity,
        only_service="SessionService" if integrity is Integrity.UNTRUSTED else None,
        ids=RandomIds(),
    )[1]


@contextmanager
def data_folder() -> Iterator[Path]:
    """Where servers keep their data, one after the other. Root's Postgres, of another account, must come in."""
    with tempfile.TemporaryDirectory(prefix="muniment-conformance-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


@contextmanager
def serving(transport: str, folder: Path, *, everything: bool = False) -> Iterator[Ours]:
    """A server over *transport*, with its data in *folder*.

    Everything is played over TLS, and if *everything* says so; over the others what could depend on the way.
    """
    listen = f"unix:{folder}/muniment.sock" if transport == "unix" else "127.0.0.1:0"
    tls = ("--tls-cert", "server.pem", "--tls-key", "server.key") if transport == "tls" else ()
    if tls:
        _make_certificates(folder)
    log = ("--log-format", "json", "--access-log")
    options = ("--data-dir", "data", "--workers", "1", "--listen", listen, *log, *tls)
    # Vectors are made when there is time: with them, answers to the same calls may differ.
    server = Server(folder, *options, environment=environment_in(folder, PYTHONPATH=str(WORDS_ALONE)))
    try:
        address = server.address.replace("127.0.0.1", "localhost") if tls else server.address
        ca_file = str(folder / "ca.pem") if tls else None
        yield Ours(transport, address, ca_file, folder, server.errors, everything)
    finally:
        server.end()


def _make_certificates(folder: Path) -> None:
    """An authority (`ca.pem`) and a server's certificate by it, for `localhost` and 127.0.0.1."""
    _certificate(folder, "ca", "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign")
    signed = (
        "basicConstraints=critical,CA:FALSE\nsubjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth"
    )
    _certificate(folder, "server", signed, "-CA", "ca.pem", "-CAkey", "ca.key")


def _certificate(folder: Path, name: str, extensions: str, *options: str) -> None:
    (folder / f"{name}.cnf").write_text(
        f"[req]\ndistinguished_name=name\nx509_extensions=extensions\nprompt=no\n[name]\nCN={name}\n"
        f"[extensions]\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n{extensions}\n"
    )
    files = ["-config", f"{name}.cnf", "-keyout", f"{name}.key", "-out", f"{name}.pem"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    subprocess.run(["openssl", "req", "-x509", *kind, *files, *options], cwd=folder, check=True, capture_output=True)
