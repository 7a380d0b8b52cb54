"""The functions `connect`, `connect_host` and `connect_session`."""

from __future__ import annotations

from typing import overload

from muniment._calls import Calls
from muniment._channel import TLS, open_channel
from muniment.host import HostClient
from muniment.session import SessionClient
from muniment.settings import Settings, find_host_settings, find_session_settings, find_settings


@overload
def connect(
    address: str, *, host_key: str, tls: bool | TLS | None = ..., timeout: float = ..., retries: bool = ...
) -> HostClient: ...
@overload
def connect(
    address: str, *, token: str, tls: bool | TLS | None = ..., timeout: float = ..., retries: bool = ...
) -> SessionClient: ...
@overload
def connect(
    *, tls: bool | TLS | None = ..., timeout: float = ..., retries: bool = ...
) -> HostClient | SessionClient: ...
def connect(
    address: str | None = None,
    *,
    host_key: str | None = None,
    token: str | None = None,
    tls: bool | TLS | None = None,
    timeout: float = 10.0,
    retries: bool = True,
) -> HostClient | SessionClient:
    """Create a client for a host key or a session's token.

    *address* is `host:port`, `unix:/path` or `dns:///host:port`. Without address and credential, both come from the
    environment or a file, and so does the authority to trust if *tls* is None: see `muniment.settings`. Otherwise None
    means no TLS. *timeout*, in seconds, is the default for every call, and spans all retries. *retries* False: none.
    Nothing is sent before the first call.

    ValueError: there is not exactly one credential, or it would leave this machine without TLS. OSError: a file of
    *tls* cannot be read.
    """
    found = _settings(address, host_key, token)
    calls = _calls(found, tls, timeout, retries)
    return HostClient(calls) if found.host_key else SessionClient(calls)


def connect_host(*, tls: bool | TLS | None = None, timeout: float = 10.0, retries: bool = True) -> HostClient:
    """Create a client for the host key of the environment or of the development file: see `muniment.settings`.

    A session's token in the environment is ignored. Arguments and errors are those of `connect`.
    """
    return HostClient(_calls(find_host_settings(), tls, timeout, retries))


def connect_session(*, tls: bool | TLS | None = None, timeout: float = 10.0, retries: bool = True) -> SessionClient:
    """Create a client for the session's token of the environment: see `muniment.settings`.

    A host key in the environment is ignored. Arguments and errors are those of `connect`.
    """
    return SessionClient(_calls(find_session_settings(), tls, timeout, retries))


def _calls(found: Settings, tls: bool | TLS | None, timeout: float, retries: bool) -> Calls:
    if tls is None:
        tls = TLS(ca=found.ca) if found.ca else False
    return Calls(open_channel(found.address, tls), found.credential, timeout=timeout, retries=retries)


def _settings(address: str | None, host_key: str | None, token: str | None) -> Settings:
    if address is None and host_key is None and token is None:
        return find_settings()
    return Settings(address or "", host_key=host_key, token=token)
