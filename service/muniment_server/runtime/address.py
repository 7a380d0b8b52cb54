"""The address a server listens on, held by one server at a time."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muniment_server.runtime.configuration import split_address


class AddressInUse(RuntimeError):
    """Another server listens there. The text says what to do."""


@contextmanager
def held(listen: str) -> Iterator[str]:
    """Hold *listen* against other servers; give the address for the workers, with the port that was chosen for 0.

    Workers share a port by SO_REUSEPORT, with which a second server would share it too, silently: so the port is
    bound once without, to see whether it is free, then held by a socket that does not listen.
    """
    if listen.startswith("unix:"):
        with _held_path(Path(listen.removeprefix("unix:"))):
            yield listen
        return
    host, port = split_address(listen)
    with _bound(host, _free(host, port), share=True) as holder:
        yield f"{_bracketed(host)}:{holder.getsockname()[1]}"


def _free(host: str, port: int) -> int:
    with _bound(host, port, share=False) as probe:
        return int(probe.getsockname()[1])


def _bound(host: str, port: int, *, share: bool) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    holder = socket.socket(family, socket.SOCK_STREAM)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT if share else socket.SO_REUSEADDR, 1)
    try:
        holder.bind(address)
    except OSError as error:
        holder.close()
        raise AddressInUse(
            f"cannot listen on {host}:{port} ({os.strerror(error.errno or 0)}): "
            "choose another port by --listen (make run LISTEN=host:port)"
        ) from None
    return holder


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@contextmanager
def _held_path(path: Path) -> Iterator[None]:
    """A second bind would take the path of a unix socket over: a lock beside it says whose it is."""
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
    """Remove what a killed server left, and nothing else."""
    if not path.exists():
        return
    if not path.is_socket():
        raise AddressInUse(f"{path} is not a socket: choose another path")
    path.unlink()
