"""What can go wrong with the embedded Postgres. Every message says what to do next.

EmbeddedPostgresError
  BinariesNotFound    no Postgres to run, or none that runs here
  WrongVersion        the binaries are too old, or not those that made the data directory
  DirectoryInUse      another server has the directory
  UnusableDirectory   the directory, or its socket directory, cannot be entered or trusted
  UnusableAccount     no operating-system account to run Postgres as
  DidNotStart         initdb or postgres gave up; the message carries its own words
"""


class EmbeddedPostgresError(RuntimeError):
    """The embedded Postgres cannot do what was asked."""


class BinariesNotFound(EmbeddedPostgresError):
    """No Postgres binaries are there, or those that are do not run."""


class WrongVersion(EmbeddedPostgresError):
    """The major version of the binaries does not suit."""


class DirectoryInUse(EmbeddedPostgresError):
    """Another server has the directory."""


class UnusableDirectory(EmbeddedPostgresError):
    """A directory cannot be made, entered or trusted."""


class UnusableAccount(EmbeddedPostgresError):
    """Postgres has no operating-system account to run as."""


class DidNotStart(EmbeddedPostgresError):
    """initdb or postgres ended before it was ready."""
