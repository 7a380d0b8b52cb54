"""Opens channels, with or without TLS."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import grpc

from muniment._mismatch import Server
from muniment._pool import ChannelPool

# Reconnect to a restarted server within a second, so that calls whose deadline is ten seconds survive the restart.
# Without a pool of its own, a channel would share the connection of another one to the same server.
# A connection that has fallen silent during a call is asked whether anyone is there, and given up without an answer.
OPTIONS = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),  # also of gRPC's own pings: while one is out, it sends no other
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.use_local_subchannel_pool", 1),
)

# The server gives each connection to one of its workers.
CONNECTIONS = 4

# A proxy from the environment would see the credential in the clear, even on the way to loopback.
PLAINTEXT_OPTIONS = (*OPTIONS, ("grpc.enable_http_proxy", 0))

HOST = re.compile(r"(?:dns:///)?(?:\[(?P<ipv6>[0-9A-Fa-f:]+)\]|(?P<name>[A-Za-z0-9.-]+))(?P<port>:[0-9]+)?")

URL = re.compile(r"(?:https?|grpcs?)://", re.IGNORECASE)
CERTIFICATE = re.compile(rb"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----")
IPV6 = re.compile(r"[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f]*")

Options = tuple[tuple[str, int], ...]
PEM = str | os.PathLike[str] | bytes


class NotLocal(ValueError):
    """Without TLS, the credential would cross a network in the clear."""


class NotAnAddress(ValueError):
    """gRPC would take the address for another one, or not at all."""


@dataclass(frozen=True, slots=True)
class TLS:
    """Whom to trust, and how to identify the client. Each field is a path, or PEM as bytes.

    Without *ca*, the authorities that gRPC includes are trusted. *certificate* and *key*, which require each other,
    identify the client to the server (mutual TLS).
    """

    ca: PEM | None = None
    certificate: PEM | None = field(default=None, repr=False)
    key: PEM | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key require each other")

    def credentials(self) -> grpc.ChannelCredentials:
        """The same as gRPC credentials. Reads the files. ValueError: *ca* contains no certificate."""
        ca = _pem(self.ca)
        if ca is not None and not CERTIFICATE.search(ca):  # gRPC would fail each call, without a word about the file
            name = "ca" if isinstance(self.ca, bytes) else os.fsdecode(self.ca or "")
            raise ValueError(f"{name} contains no certificate in PEM")
        return grpc.ssl_channel_credentials(ca, _pem(self.key), _pem(self.certificate))


def open_channel(address: str, tls: bool | TLS) -> grpc.Channel:
    """Open a channel to *address*, of up to CONNECTIONS connections. Each is made when it is first used."""
    credentials, options = security(address, tls)
    channels = [_open_connection(address, credentials, options) for _ in range(CONNECTIONS)]
    return ChannelPool(channels, Server(address, tls=bool(tls)))


def _open_connection(address: str, credentials: grpc.ChannelCredentials | None, options: Options) -> grpc.Channel:
    if credentials is None:
        return grpc.insecure_channel(address, options)
    return grpc.secure_channel(address, credentials, options)


def security(address: str, tls: bool | TLS) -> tuple[grpc.ChannelCredentials | None, Options]:
    """The credentials, None without TLS, and the options of connections to *address*. Raises ValueError, OSError."""
    _check(address)
    if tls:
        return (tls if isinstance(tls, TLS) else TLS()).credentials(), OPTIONS
    if not is_local(address):
        raise NotLocal(
            "without tls, the address must be a loopback address or a unix socket:"
            " otherwise the credential would cross a network in the clear"
        )
    return None, PLAINTEXT_OPTIONS


def _check(address: str) -> None:
    """Raise NotAnAddress for an address that gRPC would take for another one."""
    if scheme := URL.match(address):
        rest = address[scheme.end() :].partition("/")[0]
        example = rest if HOST.fullmatch(rest) else "127.0.0.1:50051"
        tls = ", and tls" if scheme[0].lower() in ("https://", "grpcs://") else ""
        raise NotAnAddress(f"an address has no {scheme[0]}: give HOST:PORT, such as {example}{tls}")
    host = HOST.fullmatch(address)
    if host is None:
        if IPV6.fullmatch(address):
            raise NotAnAddress(f"the address {address} needs brackets: give [HOST]:PORT, such as [::1]:50051")
    elif host["port"] is None:  # gRPC would try port 443
        raise NotAnAddress(f"{address} has no port: give HOST:PORT, such as 127.0.0.1:50051, or unix:PATH")
    elif not 0 < int(host["port"][1:]) < 65536:
        raise NotAnAddress(f"{address} has no port between 1 and 65535")


def is_local(address: str) -> bool:
    """Whether *address* is on this machine. False if that is unknown."""
    if address.startswith(("unix:", "unix-abstract:")):
        return True
    host = HOST.fullmatch(address)
    return host is not None and _is_loopback(host["ipv6"] or host["name"])


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _pem(source: PEM | None) -> bytes | None:
    return source if source is None or isinstance(source, bytes) else Path(source).read_bytes()
