"""Finds out whether TLS is the reason that no connection could be made."""

from __future__ import annotations

import re
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass, replace

from muniment.errors import MunimentError, TLSMismatch, Unavailable

_SECONDS = 2.0

_REFUSED_CERTIFICATE = re.compile(r"CERTIFICATE_VERIFY_FAILED: ([^:]+)")
_UNKNOWN_AUTHORITY = ("issuer", "self signed", "self-signed", "unable to verify")
_OTHER_NAME = "Hostname Verification Check failed"
_NO_TLS = "WRONG_VERSION_NUMBER"
_CLOSED = ("Socket closed", "Connection reset", "SETTINGS frame")
"""What gRPC says if the server closed the connection without an answer, as it does if it expects something else."""
_REACHED = re.compile(r"ipv[46]:(?:(?:\[|%5B)(?P<ipv6>[0-9a-f:.]+)(?:\]|%5D)|(?P<ipv4>[0-9.]+)):(?P<port>[0-9]+)")
"""The address in gRPC's message, which is a URI: brackets are escaped."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server by the address that the client was given."""

    address: str
    tls: bool

    def explained(self, error: MunimentError) -> MunimentError:
        """*error*, or a TLSMismatch if that is the reason. May connect to the server once more, and wait for it."""
        if not isinstance(error, Unavailable) or error.reason:
            return error
        for mismatch, what in (_in_grpcs_words(error.message), self._found(error.message)):
            if mismatch:
                message = what.format(address=self.address)
                return TLSMismatch(error.code, "", message, replace(error.details, mismatch=mismatch))
        return error

    def _found(self, message: str) -> tuple[str, str]:
        reached = _REACHED.search(message)
        if reached is None or not any(each in message for each in _CLOSED):
            return "", ""
        answer = _answer_to_tls(reached["ipv6"] or reached["ipv4"], int(reached["port"]))
        if answer == "no_tls" or (self.tls and answer != "certificate_expected"):
            return "", ""
        if self.tls:
            return answer, "{address} expects a certificate of the client"
        return "tls_expected", "{address} expects TLS"


def _in_grpcs_words(message: str) -> tuple[str, str]:
    """What is wrong, as a key of REMEDIES and as a sentence, if gRPC says it. Otherwise empty."""
    if _NO_TLS in message:
        return "no_tls", "{address} does not use TLS"
    if _OTHER_NAME in message:
        return "other_name", "the certificate of {address} is for other names"
    refused = _REFUSED_CERTIFICATE.search(message)
    if refused is None:
        return "", ""
    if any(each in refused[1] for each in _UNKNOWN_AUTHORITY):
        return "unknown_authority", "the certificate of {address} is signed by an authority that is not trusted here"
    return "certificate_invalid", f"the certificate of {{address}} is not accepted, {refused[1]}"


def _answer_to_tls(host: str, port: int) -> str:
    """How a server answers a TLS handshake. Nothing else is sent to it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        with socket.create_connection((host, port), _SECONDS) as plain, context.wrap_socket(plain) as secured:
            return "tls_expected" if _speaks(secured) else "certificate_expected"
    except OSError:
        return "no_tls"


def _speaks(secured: ssl.SSLSocket) -> bool:
    """Whether the server says something, as HTTP/2 does. One that expects a client certificate may just hang up."""
    with suppress(OSError):
        return bool(secured.recv(1))
    return False
