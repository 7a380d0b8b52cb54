"""The errors of the embedded Postgres. Every message says what to do.

EmbeddedPostgresError
  BinariesNotFound    there are no Postgres binaries, or they do not run
  WrongVersion        the binaries are too old, or another version created the data directory
  DirectoryInUse      another server uses the directory
  UnusableDirectory   the directory, or its socket directory, cannot be entered or trusted
  UnusableAccount     no operating-system account to run Postgres as
  DidNotStart         initdb or postgres failed; the message contains its output
"""

import errno
import os


class EmbeddedPostgresError(RuntimeError):
    """The base class of all errors of the embedded Postgres."""


class BinariesNotFound(EmbeddedPostgresError):
    """There are no Postgres binaries, or they do not run."""


class WrongVersion(EmbeddedPostgresError):
    """The major version of the binaries is too old, or does not match the data directory."""


class DirectoryInUse(EmbeddedPostgresError):
    """Another server uses the directory."""


class UnusableDirectory(EmbeddedPostgresError):
    """A directory cannot be created, entered or trusted."""


class UnusableAccount(EmbeddedPostgresError):
    """There is no operating-system account to run Postgres as."""


class DidNotStart(EmbeddedPostgresError):
    """initdb or postgres failed."""

    def __init__(self, text: str, remedy: str) -> None:
        """*remedy* is what to do unless the disk is full."""
        full = "make room on the disk, and run the command again: nothing is damaged"
        super().__init__(f"{text.strip()}\n{full if os.strerror(errno.ENOSPC) in text else remedy}")
