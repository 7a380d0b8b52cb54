"""The file that names the database servers and says which tenant is where: `--servers FILE`.

[servers]
a = "postgresql://db-a.example/muniment?passfile=/etc/muniment/passfile-a"
b = "postgresql://db-b.example/muniment?passfile=/etc/muniment/passfile-b"

[tenants]
1000000000001 = "b"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import psycopg
from psycopg import conninfo as libpq

from muniment_server.domain.ids import TenantNumber
from muniment_server.postgres.placement import Placement
from muniment_server.process.input_files import read_file
from muniment_server.runtime.configuration import ConfigError
from muniment_server.runtime.passfile import with_passfile

_TABLES = {"servers", "tenants"}
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}", re.ASCII)
_MAX_TENANT = 2**63 - 1


def read(file: Path) -> Placement:
    """The placement that *file* states. Raises ConfigError, which quotes no URL, PassfileError or OSError."""
    try:
        stated = tomllib.loads(read_file(file).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:  # its text may quote a line, and so a password
        where = re.search(r"at line \d+", str(error))
        raise ConfigError(f"{file} is not TOML{f', {where[0]}' if where else ''}: correct it") from None
    unknown = sorted(set(stated) - _TABLES)
    if unknown:
        raise ConfigError(f"{file} has {unknown[0]!r}: it may have the tables [servers] and [tenants]")
    servers = _servers(file, stated.get("servers"))
    return Placement(servers, _tenants(file, stated.get("tenants", {}), servers))


def _servers(file: Path, stated: object) -> Mapping[str, str]:
    if not isinstance(stated, dict) or not stated:
        raise ConfigError(f'{file} names no server: write [servers], and below it lines like a = "postgresql://…"')
    for name, url in stated.items():
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{file}: the name of a server has 1 to 63 characters of a-z, 0-9, _ and -: rename {name!r}"
            )
        if not isinstance(url, str) or is_misread(url):
            raise ConfigError(f"{file}: the server {name} has no connection URL: give postgresql://host:port/database")
    return {str(name): str(url) for name, url in stated.items()}


def _tenants(file: Path, stated: object, servers: Mapping[str, str]) -> Mapping[TenantNumber, str]:
    if not isinstance(stated, dict):
        raise ConfigError(f'{file}: [tenants] has lines like 17 = "b"')
    for number, name in stated.items():
        if not re.fullmatch("[1-9][0-9]{0,18}", number, re.ASCII) or int(number) > _MAX_TENANT:
            raise ConfigError(f"{file}: {number!r} in [tenants] is not the number of a tenant")
        if name not in servers:
            raise ConfigError(f"{file}: the tenant {number} is at a server that is not in [servers]: name one of those")
    return {TenantNumber(int(number)): str(name) for number, name in stated.items()}


def line_to_write(tenant: TenantNumber, server: str) -> str:
    """What to do so that the calls of *tenant* go to *server*."""
    return (
        f'Write {tenant} = "{server}" below [tenants] in the file of servers (add the section if it is missing), on '
        "each machine that serves, and reload there"
    )


def as_served(placement: Placement) -> Placement:
    """The same *placement*, with each server as the serving roles reach it. Raises PassfileError."""
    return Placement({name: with_passfile(url, None) for name, url in placement.servers.items()}, placement.tenants)


def is_misread(url: str) -> bool:
    """Whether libpq cannot read *url*, or would mistake part of a password for a host or a port."""
    try:
        given = libpq.conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return True
    ports = str(given.get("port") or 0).split(",")
    return "@" in str(given.get("host", "")) or not all(port.isdecimal() for port in ports)
