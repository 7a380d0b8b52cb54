"""Checks certificates before the server uses them."""

from __future__ import annotations

import ssl
from pathlib import Path

from muniment_server.runtime.configuration import ConfigError, Tls


def checked_tls(certificate: Path, key: Path, client_ca: Path | None = None) -> Tls:
    """The TLS files, once they have been loaded. Raises ConfigError, or OSError for a missing file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load_pair(context, certificate, key)
    if client_ca is not None:
        _load_authority(context, client_ca)
    return Tls(certificate, key, client_ca)


def _load_pair(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    _require_readable(certificate, key)
    try:
        context.load_cert_chain(certificate, key, password="")  # otherwise OpenSSL would prompt for one
    except (ssl.SSLError, ValueError):
        raise ConfigError(
            f"{certificate} and {key} are not a certificate and its key: give both in PEM, the key without a password"
        ) from None


def _load_authority(context: ssl.SSLContext, client_ca: Path) -> None:
    _require_readable(client_ca)
    try:
        context.load_verify_locations(client_ca)
    except ssl.SSLError:
        raise ConfigError(
            f"{client_ca} is not a certificate: give the certificate authority of the callers in PEM"
        ) from None


def _require_readable(*files: Path) -> None:
    """Raise OSError with the name of a missing file: an SSL context would not name it."""
    for file in files:
        with file.open("rb"):
            pass
