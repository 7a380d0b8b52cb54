"""A relay in front of a server, whose connections can fall silent: they stay open, and nothing comes through them."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Relay:
    """Listens at `address`. `speak` and `fall_silent` say what holds for connections that come."""

    def __init__(self, server: str, *, silent: bool) -> None:
        host, _, port = server.rpartition(":")
        self._server = host, int(port)
        self._sockets = [socket.create_server(("127.0.0.1", 0))]
        self.address = f"127.0.0.1:{self._sockets[0].getsockname()[1]}"
        self.accepted = 0
        self._silence = threading.Event()
        if silent:
            self.fall_silent()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def fall_silent(self) -> None:
        """Let nothing more through the connections that are there, or come until `speak`."""
        self._silence.set()

    def speak(self) -> None:
        """Let everything through the connections that come from now on."""
        self._silence = threading.Event()

    def close(self) -> None:
        """Take no more connections, and end those that are there. First the listener: it adds to the others."""
        for one, thread in zip(self._sockets, self._threads, strict=True):
            with suppress(OSError):  # the other end may have gone
                one.shutdown(socket.SHUT_RDWR)
            thread.join()
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it has been closed
            while True:
                caller, _ = self._sockets[0].accept()
                server = socket.create_connection(self._server)
                self._pass_on(caller, server)
                self._pass_on(server, caller)
                self.accepted += 1

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        thread = threading.Thread(target=_pass_on, args=(source, sink, self._silence))
        thread.start()
        self._threads.append(thread)
        self._sockets.append(source)


def _pass_on(source: socket.socket, sink: socket.socket, silence: threading.Event) -> None:
    with suppress(OSError):  # one end has gone
        while data := source.recv(65536):
            if not silence.is_set():
                sink.sendall(data)
        if not silence.is_set():
            sink.shutdown(socket.SHUT_WR)
