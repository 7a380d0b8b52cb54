"""Child processes: they run as the account, in a clean environment, without core dumps, and never outlive this process.

On Linux, the kernel sends a child SIGINT, for Postgres a fast shutdown, when the thread that started it ends
(PR_SET_PDEATHSIG). So only the main thread may start children. On other systems, a service that is killed leaves its
Postgres running, and the next start reports it.
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
    """Raise EmbeddedPostgresError in any other thread: its end would stop Postgres."""
    if threading.current_thread() is not threading.main_thread():
        raise EmbeddedPostgresError(
            "start the embedded Postgres from the main thread: it stops when the thread that started it ends"
        )


def run(argv: Sequence[str | Path], account: Account) -> str:
    """Run *argv*; return its output. Raises CalledProcessError, or OSError if it cannot be run at all."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        argv, check=True, capture_output=True, text=True, **_options(account)
    )
    return done.stdout


def spawn(argv: Sequence[str | Path], account: Account, *, log: BinaryIO) -> subprocess.Popen[bytes]:
    """Start *argv*, and append its output to *log*."""
    return subprocess.Popen(argv, stdout=log, stderr=log, **_options(account))


def may_enter(account: Account, directory: Path) -> bool:
    """Whether *account* may enter *directory*."""
    if not account.dropped:
        return True
    probe = ["/bin/sh", "-c", 'cd "$1"', "sh", str(directory)]  # initdb needs this shell, too
    return subprocess.run(probe, check=False, capture_output=True, **_options(account)).returncode == 0


def _options(account: Account) -> dict[str, Any]:
    """The options of every child. In a session of its own, Ctrl-C does not reach it: this process stops it in order.

    The directory is `/`, since the account may be unable to enter the current one.
    """
    common = {
        "cwd": "/",
        "env": _ENVIRONMENT,
        "stdin": subprocess.DEVNULL,
        "preexec_fn": _preparation(),
        "start_new_session": True,
    }
    if not account.dropped:
        return common
    return common | {"user": account.uid, "group": account.gid, "extra_groups": []}


def _preparation() -> Callable[[], None]:
    """What a child does between setuid and exec. It must be after setuid, which clears the parent-death signal."""
    parent = os.getpid()
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    core = 1 if hard == resource.RLIM_INFINITY else min(1, hard)  # at 1, neither a file nor, on Linux, a collector
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (core, core))
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
            if os.getppid() != parent:  # the parent died before the line above
                os._exit(1)

    return prepare
