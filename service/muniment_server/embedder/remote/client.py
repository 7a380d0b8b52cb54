"""Sends requests to a model at an address, over HTTP.

The only module that sends texts to another program. The server there is not trusted: whatever it answers costs bounded
time and memory, and an error.
"""

from __future__ import annotations

import contextlib
import http
import http.client
import json
import queue
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from muniment_server.domain.classification import Label
from muniment_server.embedder.remote.configuration import RemoteAddress, RemoteConfig, read_key

_READ_BYTES = 64 * 1024
_MAX_IDLE_CONNECTIONS, _MAX_IDLE_SECONDS = 8, 30.0
_MAX_RETRY_AFTER = 300.0
_REFUSES_TEXT = frozenset({400, 403, 413, 422, 451, 500})
"""Statuses with which servers refuse a text that is too long or that they cannot read, and filters one that they do not
allow. llama.cpp uses 500. None with which a busy server answers: a higher level could cause that, and a chunk that is
refused is skipped for good.
"""


_MAY_BE_BUSY = frozenset({403, 500})
"""Of these, those with which a server may mean no text if it asks for a pause."""


class RemoteModelError(Exception):
    """There is no usable answer. The text says why, and contains nothing that was sent or received."""

    def __init__(self, text: str, *, retry_after: float = 0.0, may_be_the_text: bool = False) -> None:
        """*retry_after*: how many seconds the server asks to wait. *may_be_the_text*: others may be answered."""
        super().__init__(text)
        self.retry_after = retry_after
        self.may_be_the_text = may_be_the_text


class ProbeFailedError(RemoteModelError):
    """The model does not answer the probe either, so what was sent before is not the cause."""


class AboveCeilingError(RuntimeError):
    """A text of a level above the ceiling was about to be sent. It was not. There is an error in the server."""


class ModelClient:
    """Asks a model at an address. Each level has connections of its own."""

    def __init__(self, config: RemoteConfig) -> None:
        """Raises RemoteConfigError or OSError if the file with the key cannot be used."""
        self._config = config
        self._key = read_key(config.key_file) if config.key_file else None
        self._connections = {level: Connections(config.address) for level in config.levels}

    def close(self) -> None:
        """Close the connections that are not in use."""
        for connections in self._connections.values():
            connections.close()

    def _post(self, request: object, level: Label, seconds: float, most: int) -> Any:
        """The JSON of the answer to *request*: see `Connections.post`."""
        return parsed(self._connections[level].post(json.dumps(request).encode(), self._key, seconds, most))


class Connections:
    """Connections to one address, for the requests of one level. Each is used by one at a time, and used again."""

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address
        self._tls = ssl.create_default_context() if address.uses_tls else None
        self._idle: queue.LifoQueue[_Connection] = queue.LifoQueue(_MAX_IDLE_CONNECTIONS)

    def post(self, body: bytes, key: str | None, seconds: float, most: int) -> bytes:
        """The body of the answer to *body*, of at most *most* bytes, within *seconds*. Raises RemoteModelError.

        *body* is never sent twice: what it contains may be deleted meanwhile.
        """
        connection = self._idle_connection() or _Connection(self._address, self._tls, seconds)
        try:
            answer = connection.exchange(body, key, seconds, most)
        except BaseException:
            connection.close()
            raise
        try:
            self._idle.put_nowait(connection)
        except queue.Full:
            connection.close()
        return answer

    def close(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()

    def _idle_connection(self) -> _Connection | None:
        """The connection that was used last, unless the server, or something between, may have closed it since."""
        with contextlib.suppress(queue.Empty):
            while True:
                connection = self._idle.get_nowait()
                if connection.is_idle:
                    return connection
                connection.close()
        return None


class _Connection(http.client.HTTPConnection):
    """One connection, over TCP, TLS or a Unix socket. Proxies that the environment names are not used."""

    def __init__(self, address: RemoteAddress, tls: ssl.SSLContext | None, seconds: float) -> None:
        super().__init__(address.host or "localhost", address.port or None, timeout=seconds)
        self._address = address
        self._tls = tls
        self._is_late = False
        self._socket: socket.socket | None = None
        """Also while an answer is read at whose end the connection is closed: `sock` is None then."""
        self._answered = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether the last answer is not old, and nothing has arrived since, not even the end of the connection."""
        if self.sock is None:
            return False
        arrived = select.poll()
        arrived.register(self.sock, select.POLLIN)
        return time.monotonic() < self._answered + _MAX_IDLE_SECONDS and not arrived.poll(0)

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
            fail("its name leads to another machine, but only this one may be reached")
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            self.sock = self._socket = self._tls.wrap_socket(self.sock, server_hostname=self._address.host)

    def exchange(self, body: bytes, key: str | None, seconds: float, most: int) -> bytes:
        """Send *body*, and receive the answer. Raises RemoteModelError."""
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
                _fail_late(seconds)
            _fail_by(error)
        if self._is_late:  # what was cut off may look complete
            _fail_late(seconds)
        self._answered = time.monotonic()
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
        fail(f"it redirects (HTTP {response.status}), which is not followed: give the URL itself")
    if response.status != 200:
        retry_after = _retry_after(response.status, response.headers.get("Retry-After"))
        raise RemoteModelError(
            f"it answered HTTP {response.status}",
            retry_after=retry_after,
            may_be_the_text=response.status in _REFUSES_TEXT and not (retry_after and response.status in _MAY_BE_BUSY),
        )
    if response.headers.get("Content-Encoding", "identity") != "identity":
        fail("its answer is compressed, which was not asked for")
    parts = bytearray()
    while part := response.read1(_READ_BYTES):  # read() believes any size of a chunk
        parts += part
        if len(parts) > most:
            fail(f"its answer is longer than {most:,} bytes")
    return bytes(parts)


def _retry_after(status: int, value: str | None) -> float:
    """How many seconds the server asks to wait. A second if it does not say so in whole seconds."""
    if value is None and status != http.HTTPStatus.TOO_MANY_REQUESTS:
        return 0.0
    whole = value is not None and value.isascii() and value.isdecimal() and len(value) < 10
    return min(max(float(value or 0), 1.0), _MAX_RETRY_AFTER) if whole else 1.0


def parsed(body: bytes) -> Any:
    """The JSON in an answer. Raises RemoteModelError."""
    try:
        return json.loads(body, parse_constant=_refuse_constant)
    except RemoteModelError:
        raise
    except (ValueError, RecursionError):
        fail("its answer is not JSON")


def _refuse_constant(_: str) -> NoReturn:
    raise RemoteModelError("its answer has values that are no numbers, or too large", may_be_the_text=True)


def _fail_by(error: Exception) -> NoReturn:
    """Raise what *error* means, without what it says: that may quote an answer."""
    match error:
        case http.client.RemoteDisconnected() | BrokenPipeError() | ConnectionResetError():
            fail("it closed the connection without a whole answer")
        case ssl.SSLError():
            fail(f"TLS failed ({error.reason or 'unknown reason'})")
        case OSError():
            fail(f"it cannot be reached ({type(error).__name__})")
    fail(f"it does not speak HTTP ({type(error).__name__})")


def _fail_late(seconds: float) -> NoReturn:
    raise RemoteModelError(f"it did not answer within {seconds:g} s")


def fail(text: str) -> NoReturn:
    """Raise RemoteModelError with *text*."""
    raise RemoteModelError(text)
