"""How Postgres is configured: always on its command line, which no file and no ALTER SYSTEM overrides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_PINNED = MappingProxyType(
    {
        "listen_addresses": "",  # no TCP
        "port": "5432",  # the name of the socket
        "unix_socket_permissions": "0700",
        "log_destination": "stderr",
        "logging_collector": "off",
        # The log never carries content. Errors go to the client alone: even a terse one quotes what it
        # could not parse. "log" keeps starts, stops, crashes, checkpoints and refused logins.
        "log_min_messages": "log",
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
        "log_statement": "none",
        "log_min_duration_statement": "-1",
        "log_min_duration_sample": "-1",
        "log_transaction_sample_rate": "0",
        "log_parameter_max_length": "0",
        "log_parameter_max_length_on_error": "0",
    }
)
_PLACED = frozenset({"data_directory", "hba_file", "ident_file", "unix_socket_directories"})
_FORGETFUL = MappingProxyType({"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"})


def require_free(settings: Mapping[str, str]) -> None:
    """Refuse a setting that is not the caller's to choose."""
    taken = [name for name in settings if _folded(name) in _PINNED.keys() | _PLACED]
    if taken:
        raise ValueError(f"the embedded Postgres does not let these settings be chosen: {', '.join(sorted(taken))}")


def arguments(settings: Mapping[str, str], *, directory: Path, sockets: Path, durable: bool) -> list[str]:
    """The command-line arguments that configure Postgres, after its name."""
    chosen = {**({} if durable else _FORGETFUL), **settings, **_PINNED, **_placed(directory, sockets)}
    flags = [word for name, value in chosen.items() for word in ("-c", f"{name}={value}")]
    return ["-D", str(directory / "data"), *flags]


def _placed(directory: Path, sockets: Path) -> dict[str, str]:
    """Who may connect is written beside the cluster, out of its account's reach."""
    quoted = str(sockets).replace('"', '""')
    return {
        "hba_file": str(directory / "pg_hba.conf"),
        "ident_file": str(directory / "pg_ident.conf"),
        "unix_socket_directories": f'"{quoted}"',
    }


def _folded(name: str) -> str:
    """Postgres reads `Log-Statement` as log_statement."""
    return name.lower().replace("-", "_")
