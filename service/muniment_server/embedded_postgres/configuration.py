"""The settings of Postgres, given on its command line, which neither a file nor ALTER SYSTEM can override."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_PINNED = MappingProxyType(
    {
        "listen_addresses": "",  # no TCP
        "port": "5432",  # part of the name of the socket
        "unix_socket_permissions": "0700",
        "log_destination": "stderr",
        "logging_collector": "off",
        # The log never contains content. Errors go to the client only: even a terse error quotes what it could not
        # parse. "log" keeps starts, stops, crashes, checkpoints and failed logins.
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
_NOT_DURABLE = MappingProxyType({"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"})


def require_free(settings: Mapping[str, str]) -> None:
    """Raise ValueError for a setting that the caller may not choose."""
    taken = [name for name in settings if _folded(name) in _PINNED.keys() | _PLACED]
    if taken:
        raise ValueError(
            f"the embedded Postgres does not allow these settings to be changed: {', '.join(sorted(taken))}"
        )


def arguments(settings: Mapping[str, str], *, directory: Path, sockets: Path, durable: bool) -> list[str]:
    """The command-line arguments of Postgres."""
    chosen = {**({} if durable else _NOT_DURABLE), **settings, **_PINNED, **_placed(directory, sockets)}
    flags = [word for name, value in chosen.items() for word in ("-c", f"{name}={value}")]
    return ["-D", str(directory / "data"), *flags]


def _placed(directory: Path, sockets: Path) -> dict[str, str]:
    """The settings for files. Those that say who may connect are outside the cluster: its account cannot write them."""
    quoted = str(sockets).replace('"', '""')
    return {
        "hba_file": str(directory / "pg_hba.conf"),
        "ident_file": str(directory / "pg_ident.conf"),
        "unix_socket_directories": f'"{quoted}"',
    }


def _folded(name: str) -> str:
    """Postgres reads `Log-Statement` as log_statement."""
    return name.lower().replace("-", "_")
