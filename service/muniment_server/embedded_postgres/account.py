"""The operating-system account that Postgres runs as.

For an ordinary user, that is the user itself. Postgres refuses to run as root, so root switches to another account: the
owner of an existing data directory, otherwise `postgres`, otherwise `nobody`.
"""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from muniment_server.embedded_postgres.errors import UnusableAccount

_ROOT = 0
_DROP_TO = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """The account that Postgres runs as."""

    name: str
    uid: int
    gid: int
    dropped: bool
    """Whether this process is root, and its children must drop to this account."""


def account_for(data: Path) -> Account:
    """The account for the data directory *data*, which need not exist."""
    if os.geteuid() != _ROOT:
        return _account(_entry(os.geteuid()), dropped=False)
    return _account(_owner(data) or _unprivileged(), dropped=True)


def service_user() -> str:
    """The name of this process's user, as peer authentication sees it."""
    return _entry(os.geteuid()).pw_name


def name_of(uid: int) -> str:
    """The account name of *uid*."""
    return _entry(uid).pw_name


def _account(entry: pwd.struct_passwd, *, dropped: bool) -> Account:
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, dropped=dropped)


def _entry(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise UnusableAccount(
            f"uid {uid} has no passwd entry, which Postgres requires: add a line for it "
            "to /etc/passwd (or use libnss_wrapper), run as another user, or give a database URL"
        ) from None


def _owner(data: Path) -> pwd.struct_passwd | None:
    """The owner of *data*. None if it does not exist or belongs to root."""
    try:
        uid = data.stat().st_uid
    except (FileNotFoundError, NotADirectoryError):
        return None
    return None if uid == _ROOT else _entry(uid)


def _unprivileged() -> pwd.struct_passwd:
    for name in _DROP_TO:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise UnusableAccount(
        f"Postgres refuses to run as root, and there is no account {' or '.join(_DROP_TO)} "
        "to run it as: create one (useradd --system postgres), run as an ordinary user, or give a database URL"
    )
