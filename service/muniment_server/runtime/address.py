"""Reserves the address that a server listens on, for one server at a time."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muniment_server.runtime.configuration import ConfigError, split_address


class AddressInUse(ConfigError):
    """The server cannot listen on its address. The text says what to do."""


@contextmanager
def reserve(listen: str) -> Iterator[str]:
    """Keep other servers off *listen*; yield the address for the workers, in which port 0 has become a real one.

    Workers share a port by SO_REUSEPORT, which would silently let a second server share it, too. So the port is first
    bound without the option, which fails if the port is taken, and then reserved by a socket that never listens.
    """
    if listen.startswith("unix:"):
        with _reserve_path(Path(listen.removeprefix("unix:"))):
            yield listen
        return
    host, port = split_address(listen)
    with _bind(host, _free_port(host, port), share=True) as reserved:
        yield f"{_bracketed(host)}:{reserved.getsockname()[1]}"


def _free_port(host: str, port: int) -> int:
    with _bind(host, port, share=False) as probe:
        return int(probe.getsockname()[1])


def _bind(host: str, port: int, *, share: bool) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT if share else socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise AddressInUse(
            f"cannot listen on {host}:{port} ({os.strerror(error.errno or 0)}): "
            "choose another port with --listen (make run LISTEN=host:port)"
        ) from None
    return bound


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@contextmanager
def _reserve_path(path: Path) -> Iterator[None]:
    """Lock a file beside *path*: a second server's bind would silently replace the socket of the first."""
    lock = path.with_name(path.name + ".lock")
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise AddressInUse(f"another server listens on {path}: stop it, or choose another path") from None
        _remove_socket(path)
        yield
        _remove_socket(path)


def _remove_socket(path: Path) -> None:
    """Remove the socket of a server that was killed. Refuses to remove any other file."""
    if not path.exists():
        return
    if not path.is_socket():
        raise AddressInUse(f"{path} is not a socket: choose another path")
    path.unlink()
