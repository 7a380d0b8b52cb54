"""The passwords of the serving roles, in a libpq password file that only its owner may read."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from psycopg import conninfo as libpq
from psycopg import pq

from muniment_server.postgres import roles
from muniment_server.postgres.migrate import missing_roles
from muniment_server.runtime.schema import migrate

_ROOT = 0
_BALANCING_LIBPQ = 160000


class PassfileError(RuntimeError):
    """The passfile does not match the roles. The text says what to do."""


def migrate_with_passfile(admin: str, passfile: Path, *, rotate: bool = False) -> list[str]:
    """Migrate the database of the conninfo *admin*, and write *passfile* for the server; return what was done.

    Existing roles keep their passwords unless *rotate*. Raises PassfileError or CannotMigrate.
    """
    missing = missing_roles(admin)
    known = _roles_in(passfile)
    unknown = set(roles.SERVING) - missing - known
    if unknown and not rotate:
        raise PassfileError(
            f"{passfile} has no password for the existing roles {', '.join(sorted(unknown))}: "
            "name the passfile that has them, or give them new passwords with --rotate"
        )
    changing = roles.SERVING if rotate else tuple(role for role in roles.SERVING if role in missing)
    if not changing:
        return migrate(admin)
    passwords = {role: secrets.token_urlsafe(32) for role in changing}
    part = _write(passfile, passwords, _lines(passfile))
    done = migrate(admin, passwords=passwords)
    part.replace(passfile)
    return [*done, f"wrote {passfile}"]


def with_passfile(url: str, passfile: Path | None) -> str:
    """The conninfo of the server: *url*, which names a host and a database but no user, with *passfile*."""
    given = libpq.conninfo_to_dict(url)
    if "user" in given or "password" in given:
        raise PassfileError("the URL must name a host and a database, but no user: the server logs in as its own roles")
    primary = libpq.make_conninfo(url, target_session_attrs="read-write")  # if there are several hosts
    if "," in str(given.get("host", "")) and pq.version() >= _BALANCING_LIBPQ:
        # An old primary that came back also accepts writes, and is refused. The next attempt must not begin with it.
        primary = libpq.make_conninfo(primary, load_balance_hosts="random")
    return libpq.make_conninfo(primary, passfile=str(passfile)) if passfile else primary


def _write(passfile: Path, passwords: Mapping[str, str], lines: list[str]) -> Path:
    """Write the new file beside the old one, so that a complete file exists at all times. It keeps its owner."""
    lines = [line for line in lines if _role(line) not in passwords]
    lines += [f"*:*:*:{role}:{password}" for role, password in passwords.items()]
    part = passfile.with_name(passfile.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        if passfile.exists() and os.geteuid() == _ROOT:  # or the server's account could not read it any more
            kept = passfile.stat()
            os.fchown(file.fileno(), kept.st_uid, kept.st_gid)
        file.write("\n".join(lines) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return part


def _lines(passfile: Path) -> list[str]:
    return passfile.read_text().splitlines() if passfile.exists() else []


def _roles_in(passfile: Path) -> set[str]:
    return {_role(line) for line in _lines(passfile)}


def _role(line: str) -> str:
    """The role of one line `host:port:database:role:password`. Role names of the server contain no colon."""
    fields = line.split(":")
    return fields[3] if len(fields) >= 5 else ""
