"""Certificates, looked at before a server is started with them."""

from __future__ import annotations

import ssl
from pathlib import Path

from muniment_server.runtime.configuration import ConfigError, Tls


def checked_tls(certificate: Path | None, key: Path | None, client_ca: Path | None) -> Tls | None:
    """What the server shows, and whom it asks to show theirs. Raises ConfigError, or OSError for a missing file."""
    if certificate is None and key is None and client_ca is None:
        return None
    if certificate is None or key is None:
        raise ConfigError("--tls-cert and --tls-key come together, and --tls-client-ca with them")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load_pair(context, certificate, key)
    if client_ca is not None:
        _load_authority(context, client_ca)
    return Tls(certificate, key, client_ca)


def _load_pair(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    _require_readable(certificate, key)
    try:
        context.load_cert_chain(certificate, key, password="")  # an empty one, so that nobody is asked
    except (ssl.SSLError, ValueError):
        raise ConfigError(
            f"{certificate} and {key} are no certificate and its key: give a pair in PEM, the key without a password"
        ) from None


def _load_authority(context: ssl.SSLContext, client_ca: Path) -> None:
    _require_readable(client_ca)
    try:
        context.load_verify_locations(client_ca)
    except ssl.SSLError:
        raise ConfigError(f"{client_ca} is no certificate: give the authority of the callers in PEM") from None


def _require_readable(*files: Path) -> None:
    """An SSL context does not say which file is missing."""
    for file in files:
        with file.open("rb"):
            pass
