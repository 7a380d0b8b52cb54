"""Which model at an address is asked for embeddings, and up to which level."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from muniment_server.domain.classification import Classification

_UNIX = "unix:"
_PORTS = {"http": 80, "https": 443}
MAX_DIMENSIONS = 4096
_MAX_MODEL_CHARS = 256
_MAX_KEY_CHARS = 4096


class RemoteConfigError(ValueError):
    """The options of the model at an address are invalid. The text says what to change."""


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """Where embeddings are asked for: a host and a port, or the path of a Unix socket."""

    host: str
    """Empty for a Unix socket."""
    port: int
    socket: str
    """The path of a Unix socket, or empty."""
    path: str
    """The path of the request."""
    uses_tls: bool

    @property
    def is_private(self) -> bool:
        """Whether only this machine is reached."""
        if self.socket or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        """The place without the path, for metrics and the log."""
        if self.socket:
            return f"{_UNIX}{self.socket}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class RemoteConfig:
    """The model *model* of the server at *url*."""

    url: str
    model: str
    ceiling: Classification
    """Nothing above this level is sent."""
    key_file: Path | None = None
    dimensions: int | None = None
    """How many components of an embedding are kept, the first ones. None keeps all."""

    @property
    def address(self) -> RemoteAddress:
        """Where *url* leads."""
        return parse_url(self.url)

    @property
    def levels(self) -> tuple[Classification, ...]:
        """The levels whose texts may be sent, lowest first."""
        return tuple(level for level in Classification if level.can_flow_to(self.ceiling))

    def to_json(self) -> Mapping[str, object]:
        """The form in which a child process receives it."""
        key_file = str(self.key_file.absolute()) if self.key_file else None
        return {
            "url": self.url,
            "model": self.model,
            "ceiling": int(self.ceiling),
            "key_file": key_file,
            "dimensions": self.dimensions,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> RemoteConfig:
        """What `to_json` returned."""
        key_file, dimensions = values["key_file"], values["dimensions"]
        return cls(
            str(values["url"]),
            str(values["model"]),
            Classification(int(str(values["ceiling"]))),
            Path(str(key_file)) if key_file else None,
            int(str(dimensions)) if dimensions else None,
        )


def remote_config(
    url: str | None,
    model: str | None,
    key_file: Path | None,
    ceiling: Classification | None,
    dimensions: int | None = None,
) -> RemoteConfig | None:
    """The configuration of these options. None if no address is given. Raises RemoteConfigError, or OSError."""
    if url is None:
        if any(option is not None for option in (model, key_file, ceiling, dimensions)):
            raise RemoteConfigError("--embedder-model and the other options of an embedder require --embedder")
        return None
    address = parse_url(url)
    if model is None or not model.isprintable() or not 0 < len(model) <= _MAX_MODEL_CHARS:
        raise RemoteConfigError(
            f"--embedder requires --embedder-model: the name of the model at {address}, of at most {_MAX_MODEL_CHARS} "
            "printable characters"
        )
    if not address.is_private and not address.uses_tls:
        raise RemoteConfigError(
            f"refusing to send texts in the clear to {address}: give a URL with https, or that of a forwarder on "
            "127.0.0.1 or at unix:PATH"
        )
    if key_file is not None:
        read_key(key_file)
    default = Classification.RESTRICTED if address.is_private else Classification.PUBLIC
    return RemoteConfig(url, model, default if ceiling is None else ceiling, key_file, dimensions)


def read_key(file: Path) -> str:
    """The key in *file*. Raises RemoteConfigError, or OSError."""
    key = file.read_bytes().strip()
    if not 0 < len(key) <= _MAX_KEY_CHARS or not all(0x21 <= byte < 0x7F for byte in key):
        raise RemoteConfigError(f"{file} contains no key: it must be one line of printable ASCII")
    return key.decode("ascii")


def parse_url(url: str) -> RemoteAddress:
    """The address of a URL. The request's path is that of the URL, as OpenAI's clients take it, and `/embeddings`.

    Raises RemoteConfigError.
    """
    if url.startswith(_UNIX):
        if not url.removeprefix(_UNIX).startswith("/"):
            raise RemoteConfigError(f"{url} is not the path of a Unix socket: give unix:/PATH")
        return RemoteAddress("", 0, url.removeprefix(_UNIX), "/v1/embeddings", uses_tls=False)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise RemoteConfigError("--embedder is not a URL: give https://HOST/v1, or unix:/PATH") from None
    if parts.username is not None or parts.password is not None:
        raise RemoteConfigError("--embedder contains a password: put the key into a file, for --embedder-key-file")
    if parts.scheme not in _PORTS or not parts.hostname or parts.query or parts.fragment or not url.isascii():
        raise RemoteConfigError(f"{url} is not the URL of a model: give https://HOST/v1, or unix:/PATH")
    if not url.isprintable() or " " in url:
        raise RemoteConfigError("--embedder contains spaces: give https://HOST/v1, or unix:/PATH")
    path = parts.path.rstrip("/").removesuffix("/embeddings") or "/v1"
    return RemoteAddress(
        parts.hostname, port or _PORTS[parts.scheme], "", f"{path}/embeddings", uses_tls=parts.scheme == "https"
    )


def remote_socket(path: str, level: Classification) -> str:
    """The path of the socket for the queries of *level* to a model at an address. *path* is that of the embedder."""
    return f"{path}.{level:d}"
