"""Checks certificates before the server uses them, and uses those that replace them."""

from __future__ import annotations

import logging
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc

from muniment_server.process.input_files import read_file
from muniment_server.runtime.configuration import ConfigError, Tls

_LOG = logging.getLogger("muniment.worker")


def checked_tls(certificate: Path, key: Path, client_ca: Path | None = None) -> Tls:
    """The TLS files, once they have been loaded. Raises ConfigError, or OSError for a missing file."""
    context = loaded(certificate, key)
    if client_ca is not None:
        read_file(client_ca)  # an SSL context would not name a file that it cannot read, and never end with a device
        try:
            context.load_verify_locations(client_ca)
        except ssl.SSLError:
            raise ConfigError(
                f"{client_ca} is not a certificate: give the certificate authority of the callers in PEM"
            ) from None
    return Tls(certificate, key, client_ca)


def loaded(certificate: Path, key: Path) -> ssl.SSLContext:
    """A server's context with that certificate. Raises ConfigError, or OSError for a missing file."""
    for file in (certificate, key):
        read_file(file)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password="")  # otherwise OpenSSL would prompt for one
    except (ssl.SSLError, ValueError):
        raise ConfigError(
            f"{certificate} and {key} are not a certificate and its key: give both in PEM, the key without a password"
        ) from None
    return context


def credentials(files: Mapping[str, str]) -> grpc.ServerCredentials:
    """Those in the TLS files, also after the files change. Exits if they are invalid: they may have been replaced."""
    paths = {name: Path(path) for name, path in files.items()}
    try:
        renewed = _Renewed(paths)
    except (ConfigError, OSError) as error:
        sys.exit(str(error))
    read: Any = renewed.read  # its stubs do not know that None means no change
    return grpc.dynamic_ssl_server_credentials(renewed.current, read, "client_ca" in paths)


class _Renewed:
    """The certificates in files. Each handshake looks whether the files have changed since."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = paths
        self._stamps = self._stamped()
        self.current = self._load()

    def read(self) -> grpc.ServerCertificateConfiguration | None:
        """What has changed. None for nothing, or for files that cannot be used: those of before stay in use."""
        try:
            stamps = self._stamped()
            if stamps == self._stamps:
                return None
            self._stamps = stamps
            return self._load()
        except (ConfigError, OSError) as error:
            _LOG.error("the certificates of before stay in use: %s", error)
            return None

    def _stamped(self) -> list[tuple[int, int, int]]:
        found = [path.stat() for path in self._paths.values()]
        return [(each.st_ino, each.st_mtime_ns, each.st_size) for each in found]

    def _load(self) -> grpc.ServerCertificateConfiguration:
        tls = checked_tls(**self._paths)
        return grpc.ssl_server_certificate_configuration(
            [(read_file(tls.key), read_file(tls.certificate))],
            root_certificates=read_file(tls.client_ca) if tls.client_ca else None,
        )
