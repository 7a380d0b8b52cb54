"""The passwords of the serving roles, in a libpq password file that only its owner may read.

A rotation fails no log-in: the coming passwords are in `PASSFILE.next` before they are set, servers look there when one
is refused (see `RoleConnection.connect`), and the rotation ends by renaming that file. A passfile that is a symbolic
link stays one: both files are where it points.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psycopg
from psycopg import conninfo as libpq
from psycopg import pq

from muniment_server.postgres import roles
from muniment_server.postgres.migrate import alone, missing_roles
from muniment_server.postgres.pool import next_passfile
from muniment_server.postgres.verifiers import is_password
from muniment_server.process.input_files import read_file
from muniment_server.runtime.configuration import ConfigError
from muniment_server.runtime.schema import migrate

_ROOT = 0
_BALANCING_LIBPQ = 160000


class PassfileError(ConfigError):
    """The passfile does not match the roles. The text says what to do."""


def migrate_with_passfile(
    admin: str, passfile: Path | None, *, rotate: bool = False, until: int | None = None
) -> list[str]:
    """Migrate the database of the conninfo *admin*, and write *passfile* for the server; return what was done.

    Without one, no role gets a password. Existing roles keep theirs unless *rotate*. With *until* 0, only the roles are
    made. Raises PassfileError or CannotMigrate.
    """
    if passfile is None:
        return migrate(admin, until=until)
    passfile = passfile.resolve()
    with alone(admin):
        return _rotate(admin, passfile) if rotate else _migrate(admin, passfile, until)


def require_known(admin: str, passfile: Path) -> set[str]:
    """Raise PassfileError if *passfile* lacks the password of a role that exists; return the roles that are missing."""
    missing = missing_roles(admin)
    unknown = set(roles.SERVING) - missing - _roles_in(passfile)
    if unknown:
        raise PassfileError(
            f"{passfile} has no password for the existing roles {', '.join(sorted(unknown))}: "
            "name the passfile that has them, or give them new passwords: muniment migrate --rotate"
        )
    return missing


def prepare_rotation(admin: str, passfile: Path) -> list[str]:
    """Write the coming passwords to `PASSFILE.next`, unless they are there; return what was done.

    Nothing changes in the database of the conninfo *admin*: the passwords of *passfile* stay good until the rotation.
    Raises PassfileError.
    """
    passfile = passfile.resolve()
    with alone(admin):
        unknown = set(roles.SERVING) - _roles_in(passfile)
        if unknown:
            raise PassfileError(
                f"{passfile} has no password for {', '.join(sorted(unknown))}: name the server's passfile"
            )
        return _prepare(passfile)


def passwords_of_roles(connection: psycopg.Connection[Any], passfile: Path) -> dict[str, str]:
    """The passwords of the serving roles in *passfile*. Raises PassfileError if the database has others.

    Reads pg_authid instead of logging in: the database may let in everybody. Needs a superuser.
    """
    known = _roles_in(passfile)
    passwords = _passwords_in(passfile) if known.issuperset(roles.SERVING) else {}
    for role in roles.SERVING:
        (verifier,) = connection.execute("SELECT rolpassword FROM pg_authid WHERE rolname = %s", [role]).fetchone() or (
            None,
        )
        if role not in passwords or not is_password(passwords[role], verifier or ""):
            raise PassfileError(f"the passfile does not have the password of {role}: name the servers' passfile")
    return passwords


def _migrate(admin: str, passfile: Path, until: int | None) -> list[str]:
    """The passfile is complete before the roles exist, and they get what it has: an operator may have chosen it."""
    missing = require_known(admin, passfile)
    changing = [role for role in roles.SERVING if role in missing]
    if not changing:
        return migrate(admin, until=until)
    lacking = [role for role in changing if role not in _roles_in(passfile)]
    if lacking:
        _rename(_write(passfile, _new_passwords(lacking), _lines(passfile), like=passfile), passfile)
    known = _passwords_in(passfile)
    done = migrate(admin, passwords={role: known[role] for role in changing}, until=until)
    return [*done, f"wrote {passfile}"] if lacking else done


def _rotate(admin: str, passfile: Path) -> list[str]:
    """Set the passwords of `PASSFILE.next`, and rename it. Interrupted at any point, one of the two files is right."""
    prepared = _prepare(passfile)
    coming = next_passfile(passfile)
    done = migrate(admin, passwords=_passwords_in(coming))
    _keep_rights(coming, like=passfile)  # it may have been copied here, or the passfile given to another account
    _rename(coming, passfile)
    return [*prepared, *done, f"wrote {passfile}"]


def _prepare(passfile: Path) -> list[str]:
    """Complete `PASSFILE.next`. Passwords that it has stay: servers may have copies, or they may already be set."""
    coming = next_passfile(passfile)
    lacking = [role for role in roles.SERVING if role not in _roles_in(coming)]
    if not lacking:
        return []
    _rename(_write(coming, _new_passwords(lacking), _lines(coming) or _lines(passfile), like=passfile), coming)
    return [f"wrote {coming}"]


def _new_passwords(changing: Iterable[str]) -> dict[str, str]:
    return {role: secrets.token_urlsafe(32) for role in changing}


def with_passfile(url: str, passfile: Path | None) -> str:
    """The conninfo of the server: *url*, which names a host and a database but no user, with *passfile*.

    The empty password makes libpq read the passfile, which is this one or that of *url*, even if PGPASSWORD is set.
    """
    given = libpq.conninfo_to_dict(url)
    if "user" in given or "password" in given:
        raise PassfileError("the URL must name a host and a database, but no user: the server logs in as its own roles")
    primary = libpq.make_conninfo(url, target_session_attrs="read-write")  # if there are several hosts
    if "," in str(given.get("host", "")) and pq.version() >= _BALANCING_LIBPQ:
        # An old primary that came back also accepts writes, and is refused. The next attempt must not begin with it.
        primary = libpq.make_conninfo(primary, load_balance_hosts="random")
    file = passfile or given.get("passfile")
    return libpq.make_conninfo(primary, passfile=str(file), password="") if file else primary


def _write(file: Path, passwords: Mapping[str, str], lines: list[str], *, like: Path) -> Path:
    """Write the new file beside the old one, so that a complete file exists at all times, with the rights of *like*."""
    lines = [line for line in lines if _role(line) not in passwords]
    lines = [*(f"*:*:*:{role}:{password}" for role, password in passwords.items()), *lines]  # the first match counts
    part = file.with_name(file.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        _keep_rights(part, like=like)
        opened.write("\n".join(lines) + "\n")
        opened.flush()
        os.fsync(opened.fileno())
    return part


def _keep_rights(file: Path, *, like: Path) -> None:
    """Give *file* the owner and the mode of *like*, but no rights of others, with which libpq would ignore it."""
    if not like.exists():
        return
    kept = like.stat()
    if os.geteuid() == _ROOT:  # or the server's account could not read it any more
        os.chown(file, kept.st_uid, kept.st_gid)
    file.chmod(kept.st_mode & stat.S_IRWXU)


def _rename(file: Path, to: Path) -> None:
    """Rename *file* for good: it keeps its new name if the power fails."""
    file.replace(to)
    directory = os.open(to.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _lines(passfile: Path) -> list[str]:
    return read_file(passfile).decode().splitlines() if passfile.exists() else []


def _roles_in(passfile: Path) -> set[str]:
    return {_role(line) for line in _lines(passfile)}


def _passwords_in(passfile: Path) -> dict[str, str]:
    """The passwords of the serving roles."""
    found = {_role(line): line.split(":", 4)[-1] for line in reversed(_lines(passfile))}
    return {role: re.sub(r"\\(.)", r"\1", found[role]) for role in roles.SERVING}


def _role(line: str) -> str:
    """The role of one line `host:port:database:role:password`. Role names of the server contain no colon."""
    fields = line.split(":")
    return fields[3] if len(fields) >= 5 else ""
