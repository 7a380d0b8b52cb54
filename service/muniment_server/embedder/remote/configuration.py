"""Which models at addresses are asked, for embeddings or to rerank, and up to which level."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self
from urllib.parse import urlsplit

from muniment_server.domain.classification import Classification, Label
from muniment_server.process.input_files import read_file

_UNIX = "unix:"
_PORTS = {"http": 80, "https": 443}
MAX_DIMENSIONS = 4096
_MAX_MODEL_CHARS = 256
_MAX_KEY_CHARS = 4096


class RemoteConfigError(ValueError):
    """The options of the model at an address are invalid. The text says what to change."""


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """Where a model is asked: a host and a port, or the path of a Unix socket."""

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


class Endpoint(NamedTuple):
    """How an operator names a model at an address, and where it is asked."""

    option: str
    example: str
    path: str
    """Of a request, below the path of the URL."""
    default: str
    """The path of a URL that has none."""


@dataclass(frozen=True, slots=True)
class RemoteConfig:
    """The model at *url* that embeds."""

    endpoint: ClassVar[Endpoint] = Endpoint("--embedder", "https://HOST/v1", "/embeddings", "/v1")
    """The path of requests is the URL's, as OpenAI's clients take it, and `/embeddings`."""
    url: str
    model: str
    """Its name. Empty for a reranker whose server has one model: it also decides the form of its requests."""
    ceiling: Classification
    """Nothing above this level is sent."""
    key_file: Path | None = None
    dimensions: int | None = None
    """How many components of an embedding are kept, the first ones. None keeps all."""

    @classmethod
    def of_options(
        cls,
        url: str | None,
        model: str | None,
        key_file: Path | None,
        ceiling: Classification | None,
        dimensions: int | None = None,
    ) -> Self | None:
        """The configuration of these options. None if no address is given. Raises RemoteConfigError, or OSError."""
        option = cls.endpoint.option
        if url is None:
            if any(each is not None for each in (model, key_file, ceiling, dimensions)):
                raise RemoteConfigError(f"{option}-model and the other options of a model require {option}")
            return None
        address = parse_url(url, cls.endpoint)
        if model is None and cls is RemoteConfig:
            raise RemoteConfigError(f"{option} requires {option}-model: the name of the model at {address}")
        if model is not None:
            _check_model(model, f"{option}-model")
        return cls(url, model or "", _checked_ceiling(address, key_file, ceiling), key_file, dimensions)

    @property
    def address(self) -> RemoteAddress:
        """Where *url* leads."""
        return parse_url(self.url, self.endpoint)

    @property
    def levels(self) -> tuple[Label, ...]:
        """The levels whose texts may be sent, lowest first."""
        return tuple(level for level in Label if level.level.can_flow_to(self.ceiling))

    def to_json(self) -> Mapping[str, object]:
        """The form in which a child process receives it."""
        return {**asdict(self), "key_file": str(self.key_file.absolute()) if self.key_file else None}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """What `to_json` returned."""
        key_file = Path(values["key_file"]) if values["key_file"] else None
        return cls(**{**values, "ceiling": Classification(values["ceiling"]), "key_file": key_file})


class RerankerConfig(RemoteConfig):
    """The reranker at *url*."""

    endpoint = Endpoint("--reranker", "https://HOST", "/rerank", "")


def _check_model(model: str, option: str) -> None:
    if not model.isprintable() or not 0 < len(model) <= _MAX_MODEL_CHARS:
        raise RemoteConfigError(f"{option} must have 1 to {_MAX_MODEL_CHARS} printable characters")


def _checked_ceiling(address: RemoteAddress, key_file: Path | None, ceiling: Classification | None) -> Classification:
    """The ceiling of an address: *ceiling* if it is given. Raises RemoteConfigError, or OSError."""
    if not address.is_private and not address.uses_tls:
        raise RemoteConfigError(
            f"refusing to send texts in the clear to {address}: give a URL with https, or that of a forwarder on "
            "127.0.0.1 or at unix:PATH"
        )
    if key_file is not None:
        read_key(key_file)
    default = Classification.RESTRICTED if address.is_private else Classification.PUBLIC
    return default if ceiling is None else ceiling


def read_key(file: Path) -> str:
    """The key in *file*. Raises RemoteConfigError, or OSError."""
    key = read_file(file).strip()
    if not 0 < len(key) <= _MAX_KEY_CHARS or not all(0x21 <= byte < 0x7F for byte in key):
        raise RemoteConfigError(f"{file} contains no key: it must be one line of printable ASCII")
    return key.decode("ascii")


def parse_url(url: str, endpoint: Endpoint = RemoteConfig.endpoint) -> RemoteAddress:
    """The address of a URL, for requests to *endpoint*.

    Raises RemoteConfigError, whose text does not quote the URL: there may be a password or a key in it.
    """
    option, example, endpoint_path, default = endpoint
    if url.startswith(_UNIX):
        if not url.removeprefix(_UNIX).startswith("/"):
            raise RemoteConfigError(f"{option} is not the path of a Unix socket: give unix:/PATH")
        return RemoteAddress("", 0, url.removeprefix(_UNIX), f"{default}{endpoint_path}", uses_tls=False)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise RemoteConfigError(f"{option} is not a URL: give {example}, or unix:/PATH") from None
    if parts.username is not None or parts.password is not None:
        raise RemoteConfigError(f"{option} contains a password: put the key into a file, for {option}-key-file")
    if parts.scheme not in _PORTS or not parts.hostname or not url.isascii():
        raise RemoteConfigError(f"{option} is not the URL of a model: give {example}, or unix:/PATH")
    if parts.query or parts.fragment:
        raise RemoteConfigError(f"{option} has a query or a fragment: give {example} without it")
    if not url.isprintable() or " " in url:
        raise RemoteConfigError(f"{option} contains spaces: give {example}, or unix:/PATH")
    path = parts.path.rstrip("/").removesuffix(endpoint_path) or default
    return RemoteAddress(
        parts.hostname, port or _PORTS[parts.scheme], "", f"{path}{endpoint_path}", uses_tls=parts.scheme == "https"
    )


def query_socket(path: str, level: Label) -> str:
    """The path of the socket for the queries of *level* to the built-in model. *path* is that of the embedder."""
    return f"{path}.q{level.value}"


def remote_socket(path: str, level: Label) -> str:
    """The path of the socket for the queries of *level* to a model at an address. *path* is that of the embedder."""
    return f"{path}.{level.value}"


def reranker_socket(path: str, level: Label) -> str:
    """The path of the socket for the searches of *level* that a reranker orders. *path* is that of the embedder."""
    return f"{path}.r{level.value}"
