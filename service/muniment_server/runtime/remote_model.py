"""A model at an address: asks a server for embeddings, over the interface `/v1/embeddings` that OpenAI introduced.

The only module that sends texts to another program. The server there is not trusted: whatever it answers costs bounded
time and memory, and an error.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import math
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from muniment_server.domain.classification import Classification
from muniment_server.runtime.everyday_sentences import SENTENCES
from muniment_server.runtime.remote_configuration import MAX_DIMENSIONS, RemoteAddress, RemoteConfig, read_key
from muniment_server.search.embeddings import Vector, model_number, readable, vector_of
from muniment_server.telemetry import embedder_metrics as metrics

_LOG = logging.getLogger("muniment.embedder")
_CHUNKS_SECONDS = 30.0
"""How long an answer for a batch of chunks may take."""
_MAX_COMPONENT = 1e6
_SHORTEST = 1e-9
"""The length of the shortest vector, after the mean is subtracted, that has a direction."""
_MAX_BYTES = 64 * 1024
_MAX_BYTES_OF_COMPONENT = 32
"""The limit of an answer: so many bytes, and so many for each component of each vector."""
_READ_BYTES = 64 * 1024
_MAX_IDLE_CONNECTIONS = 8
_MAX_RETRY_AFTER = 300.0
_HALVINGS = 3
"""How often a chunk that is refused alone is shortened by half, because it may be too long for the model."""
_REFUSES_TEXT = frozenset({400, 413, 422})
"""Statuses with which servers refuse a text that is too long, or that they cannot read."""


class RemoteModelError(Exception):
    """There are no embeddings. The text says why, and contains nothing that was sent or received."""

    def __init__(self, text: str, *, retry_after: float = 0.0, may_be_the_text: bool = False) -> None:
        """*retry_after*: how many seconds the server asks to wait. *may_be_the_text*: others may have an embedding."""
        super().__init__(text)
        self.retry_after = retry_after
        self.may_be_the_text = may_be_the_text


class AboveCeilingError(RuntimeError):
    """A text of a level above the ceiling was about to be sent. It was not. There is an error in the server."""


@dataclass(frozen=True, slots=True)
class _Calibration:
    """What the embeddings of everyday sentences show of a model."""

    number: int
    dimensions: int
    """How many an answer has."""
    mean: Sequence[float]
    """Of the components that are kept."""


class RemoteModel:
    """The model at an address. `calibrate` must have succeeded before anything is embedded."""

    def __init__(self, config: RemoteConfig) -> None:
        """Raises RemoteConfigError or OSError if the file with the key cannot be used."""
        self._config = config
        self._key = read_key(config.key_file) if config.key_file else None
        self._connections = _Connections(config.address)
        self._calibration: _Calibration | None = None

    @property
    def number(self) -> int | None:
        """Identifies the model: see `model_number`. None until it is calibrated."""
        return self._calibration.number if self._calibration else None

    def calibrate(self) -> None:
        """Learn the model's dimensions and its mean, from sentences of no level. Raises RemoteModelError."""
        with self._counting_failures(Classification.PUBLIC, "sentence"):
            vectors = self._ask(SENTENCES, _CHUNKS_SECONDS, dimensions=None)
        dimensions = len(vectors[0])
        kept = self._config.dimensions or dimensions
        if kept > dimensions:
            _fail(f"an embedding has {dimensions:,} dimensions: give --embedder-dimensions no more than that")
        mean = [math.fsum(components) / len(vectors) for components in zip(*vectors, strict=True)][:kept]
        self._calibration = _Calibration(model_number(self._config.model, kept), dimensions, mean)

    def embed_query(self, text: str, level: Classification, seconds: float) -> Vector:
        """The embedding of a query of a session at *level*, within *seconds*. Raises RemoteModelError."""
        (vector,) = self._embed([readable(text)], level, "query", seconds)
        return vector

    def embed_chunks(self, texts: Sequence[str], level: Classification) -> Sequence[Vector]:
        """The embeddings of chunks of *level*.

        A chunk that the server refuses, while it answers for others, gets a vector of zeros, which is similar to
        nothing. Raises RemoteModelError.
        """
        return self._embed_patiently([readable(text) for text in texts], level)

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._connections.close()

    def _embed_patiently(self, texts: Sequence[str], level: Classification) -> Sequence[Vector]:
        try:
            return self._embed(texts, level, "chunk", _CHUNKS_SECONDS)
        except RemoteModelError as error:
            if not error.may_be_the_text:
                raise
            if len(texts) > 1:
                return [vector for text in texts for vector in self._embed_patiently([text], level)]
            return [self._embed_in_part(texts[0], level)]

    def _embed_in_part(self, text: str, level: Classification) -> Vector:
        """The embedding of the end of a chunk, where a turn stands after the one before it."""
        self._embed_sentence()  # raises if the server answers for no text
        for _ in range(_HALVINGS):
            text = text[len(text) // 2 :]
            try:
                (vector,) = self._embed([text], level, "chunk", _CHUNKS_SECONDS)
            except RemoteModelError as error:
                if not error.may_be_the_text:
                    raise
            else:
                return vector
        _LOG.error("skipping a chunk that the model at %s refuses: it is not found by that model", self._config.address)
        return [0] * len(self._calibrated.mean)

    def _embed_sentence(self) -> None:
        self._ask(SENTENCES[:1], _CHUNKS_SECONDS, dimensions=self._calibrated.dimensions)

    @property
    def _calibrated(self) -> _Calibration:
        if self._calibration is None:
            raise RemoteModelError("it has not answered yet")
        return self._calibration

    def _embed(self, texts: Sequence[str], level: Classification, what: str, seconds: float) -> Sequence[Vector]:
        """The only way of a text to the address, but for the sentences."""
        if not level.can_flow_to(self._config.ceiling):
            raise AboveCeilingError
        mean = self._calibrated.mean
        place = str(self._config.address)
        metrics.REMOTE_TEXTS.labels(place, level.name, what).inc(len(texts))
        metrics.REMOTE_BYTES.labels(place, level.name, what).inc(sum(len(text.encode()) for text in texts))
        with self._counting_failures(level, what):
            answer = self._ask(texts, seconds, dimensions=self._calibrated.dimensions)
        return [_whole(vector[: len(mean)], mean) for vector in answer]

    @contextmanager
    def _counting_failures(self, level: Classification, what: str) -> Iterator[None]:
        try:
            yield
        except RemoteModelError:
            metrics.REMOTE_FAILURES.labels(str(self._config.address), level.name, what).inc()
            raise

    def _ask(self, texts: Sequence[str], seconds: float, *, dimensions: int | None) -> Sequence[Sequence[float]]:
        body = json.dumps({"model": self._config.model, "input": texts, "encoding_format": "float"}).encode()
        most = _MAX_BYTES + len(texts) * (dimensions or MAX_DIMENSIONS) * _MAX_BYTES_OF_COMPONENT
        return _vectors(self._connections.post(body, self._key, seconds, most), len(texts), dimensions)


def _whole(vector: Sequence[float], mean: Sequence[float]) -> Vector:
    """The integer vector. Zeros for one that is the mean, or nearly: it has no direction."""
    return [0] * len(mean) if math.dist(vector, mean) < _SHORTEST else vector_of(vector, mean)


class _Connections:
    """Connections to one address. Each is used by one request at a time, and used again."""

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address
        self._tls = ssl.create_default_context() if address.uses_tls else None
        self._idle: list[_Connection] = []
        self._lock = threading.Lock()

    def post(self, body: bytes, key: str | None, seconds: float, most: int) -> bytes:
        """The body of the answer to *body*, of at most *most* bytes, within *seconds*. Raises RemoteModelError."""
        with self._lock:
            used = self._idle.pop() if self._idle else None
        if used is not None:
            with contextlib.suppress(_Closed):  # by the server, while it was idle
                return self._exchange(used, body, key, seconds, most)
        try:
            return self._exchange(_Connection(self._address, self._tls, seconds), body, key, seconds, most)
        except _Closed:
            _fail("it closed the connection without an answer")

    def close(self) -> None:
        with self._lock:
            while self._idle:
                self._idle.pop().close()

    def _exchange(self, connection: _Connection, body: bytes, key: str | None, seconds: float, most: int) -> bytes:
        try:
            answer = connection.exchange(body, key, seconds, most)
        except BaseException:
            connection.close()
            raise
        with self._lock:
            if not connection.is_closed and len(self._idle) < _MAX_IDLE_CONNECTIONS:
                self._idle.append(connection)
                return answer
        connection.close()
        return answer


class _Closed(Exception):
    """The connection was closed before an answer began."""


class _Connection(http.client.HTTPConnection):
    """One connection, over TCP, TLS or a Unix socket. Proxies that the environment names are not used."""

    def __init__(self, address: RemoteAddress, tls: ssl.SSLContext | None, seconds: float) -> None:
        super().__init__(address.host or "localhost", address.port or None, timeout=seconds)
        self._address = address
        self._tls = tls
        self._is_late = False
        self._socket: socket.socket | None = None
        """Also while an answer is read at whose end the connection is closed: `sock` is None then."""

    @property
    def is_closed(self) -> bool:
        """Whether it cannot be used again."""
        return self.sock is None

    def connect(self) -> None:
        """Connect. Raises TimeoutError if that took so long that no timer would cut off what follows."""
        if self._address.socket:
            self.sock = self._socket = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(self.timeout)
            self.sock.connect(self._address.socket)
        else:
            self._connect_by_tcp()
        if self._is_late:
            raise TimeoutError

    def _connect_by_tcp(self) -> None:
        """An address on this machine must lead there: "localhost" is a name that can be redefined."""
        self.sock = self._socket = socket.create_connection((self._address.host, self._address.port), self.timeout)
        if self._address.is_private and not _leads_to_this_machine(self.sock):
            _fail("its name leads to another machine, but only this one may be reached")
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            self.sock = self._socket = self._tls.wrap_socket(self.sock, server_hostname=self._address.host)

    def exchange(self, body: bytes, key: str | None, seconds: float, most: int) -> bytes:
        """Send *body*, and receive the answer. Raises RemoteModelError, or _Closed."""
        self.timeout, self._is_late = seconds, False
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        try:
            with self._cut_off_after(seconds):
                self.request("POST", self._address.path, body, headers)
                with self.getresponse() as response:
                    answer = _body(response, most)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if self._is_late or isinstance(error, TimeoutError):
                _fail(f"it did not answer within {seconds:g} s")
            _fail_by(error)
        if self._is_late:  # what was cut off may look complete
            _fail(f"it did not answer within {seconds:g} s")
        return answer

    @contextmanager
    def _cut_off_after(self, seconds: float) -> Iterator[None]:
        """Close the connection after *seconds*: the timeout of a socket begins anew with each byte that arrives."""
        timer = threading.Timer(seconds, self._cut_off)
        timer.daemon = True
        timer.start()
        if self.sock is not None:
            self.sock.settimeout(seconds)
        try:
            yield
        finally:
            timer.cancel()

    def _cut_off(self) -> None:
        self._is_late = True
        if self._socket is not None:
            with contextlib.suppress(OSError):  # the method of plain sockets: that of TLS would go on in the clear
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def _leads_to_this_machine(connected: socket.socket) -> bool:
    name = connected.getpeername()[0]
    return name.startswith("127.") or name in {"::1", "::ffff:127.0.0.1"}


def _body(response: http.client.HTTPResponse, most: int) -> bytes:
    """The body of a good answer. Raises RemoteModelError for any other, whose body is not read."""
    if response.status in range(300, 400):
        _fail(f"it redirects (HTTP {response.status}), which is not followed: give the URL itself")
    if response.status != 200:
        raise RemoteModelError(
            f"it answered HTTP {response.status}",
            retry_after=_retry_after(response.headers.get("Retry-After", "")),
            may_be_the_text=response.status in _REFUSES_TEXT,
        )
    if response.headers.get("Content-Encoding", "identity") != "identity":
        _fail("its answer is compressed, which was not asked for")
    parts = bytearray()
    while part := response.read(_READ_BYTES):
        parts += part
        if len(parts) > most:
            _fail(f"its answer is longer than {most:,} bytes")
    return bytes(parts)


def _retry_after(value: str) -> float:
    return min(float(value), _MAX_RETRY_AFTER) if value.isascii() and value.isdecimal() and len(value) < 10 else 0.0


def _vectors(body: bytes, count: int, dimensions: int | None) -> Sequence[Sequence[float]]:
    """The vectors in an answer, in the order of the texts. Raises RemoteModelError."""
    try:
        answer = json.loads(body, parse_constant=_refuse_constant)
    except RemoteModelError:
        raise
    except (ValueError, RecursionError):
        _fail("its answer is not JSON")
    entries = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(entries, list) or len(entries) != count:
        _fail(f"its answer has no list of {count} embeddings")
    found: dict[int, Sequence[float]] = {}
    for place, entry in enumerate(entries):
        index, vector = _entry(entry, place)
        wanted = dimensions or len(vector)
        if len(vector) != wanted or not 0 < wanted <= MAX_DIMENSIONS:
            expected = f"not {dimensions:,} as before" if dimensions else f"where 1 to {MAX_DIMENSIONS:,} are allowed"
            _fail(f"an embedding has {len(vector):,} dimensions, {expected}")
        dimensions = wanted
        found[index] = vector
    if found.keys() != set(range(count)):
        _fail("its answer numbers the embeddings wrongly")
    return [found[index] for index in range(count)]


def _entry(entry: Any, place: int) -> tuple[int, Sequence[float]]:
    vector = entry.get("embedding") if isinstance(entry, Mapping) else None
    if not isinstance(vector, list):
        _fail("its answer has no list of numbers as an embedding")
    index = entry.get("index", place)
    if type(index) is not int:
        _fail("its answer numbers the embeddings wrongly")
    if not all(type(one) in {int, float} and -_MAX_COMPONENT <= one <= _MAX_COMPONENT for one in vector):
        raise RemoteModelError("an embedding has components that are no numbers, or too large", may_be_the_text=True)
    return index, vector


def _refuse_constant(_: str) -> NoReturn:
    raise RemoteModelError("an embedding has components that are no numbers, or too large", may_be_the_text=True)


def _fail_by(error: Exception) -> NoReturn:
    """Raise what *error* means, without what it says: that may quote an answer."""
    match error:
        case http.client.RemoteDisconnected() | BrokenPipeError() | ConnectionResetError():
            raise _Closed from None
        case ssl.SSLError():
            _fail(f"TLS failed ({error.reason or 'unknown reason'})")
        case OSError():
            _fail(f"it cannot be reached ({type(error).__name__})")
    _fail(f"it does not speak HTTP ({type(error).__name__})")


def _fail(text: str) -> NoReturn:
    raise RemoteModelError(text)
