"""Child processes: with the account's rights, a clean environment, no core dumps, and never outliving us.

On Linux a child is told (PR_SET_PDEATHSIG) when the thread that spawned it dies, and SIGINT is a fast
shutdown to Postgres. So children are spawned from the main thread. Elsewhere a killed service leaves
its Postgres running; the next start says so.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from muniment_server.embedded_postgres.account import Account
from muniment_server.embedded_postgres.errors import EmbeddedPostgresError

_PR_SET_PDEATHSIG = 1
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def require_main_thread() -> None:
    """Refuse a thread whose end would take Postgres with it."""
    if threading.current_thread() is not threading.main_thread():
        raise EmbeddedPostgresError(
            "start the embedded Postgres from the main thread: it stops when the thread that started it ends"
        )


def run(argv: Sequence[str | Path], account: Account) -> str:
    """What *argv* prints. Raises CalledProcessError, or OSError when it cannot be run at all."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        argv, check=True, capture_output=True, text=True, **_rights(account)
    )
    return done.stdout


def spawn(argv: Sequence[str | Path], account: Account, *, log: BinaryIO) -> subprocess.Popen[bytes]:
    """Start *argv*, its output appended to *log*."""
    return subprocess.Popen(argv, stdout=log, stderr=log, **_rights(account))


def may_enter(account: Account, directory: Path) -> bool:
    """Whether *account* may traverse *directory* and all that is above it."""
    if not account.dropped:
        return True
    probe = ["/bin/sh", "-c", 'cd "$1"', "sh", str(directory)]  # initdb needs that shell anyway
    return subprocess.run(probe, check=False, capture_output=True, **_rights(account)).returncode == 0


def _rights(account: Account) -> dict[str, Any]:
    """How every child is started: out of reach of the terminal's signals, for Ctrl-C is for us, who end it in order.

    The account may be unable to enter our working directory, hence `/`.
    """
    common = {
        "cwd": "/",
        "env": _ENVIRONMENT,
        "stdin": subprocess.DEVNULL,
        "preexec_fn": _leash(),
        "start_new_session": True,
    }
    if not account.dropped:
        return common
    return common | {"user": account.uid, "group": account.gid, "extra_groups": []}


def _leash() -> Callable[[], None]:
    """What a child does between dropping its rights and exec. The order matters: setuid clears the signal."""
    parent = os.getpid()
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    core = 1 if most == resource.RLIM_INFINITY else min(1, most)  # 1: no room for a file, and Linux feeds no collector
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def leash() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (core, core))
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
            if os.getppid() != parent:  # we died before the line above
                os._exit(1)

    return leash
