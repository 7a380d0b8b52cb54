"""A `muniment console` process, and looks at its pages."""

from __future__ import annotations

import http.client
import subprocess
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path

from tests.clients.cli.page.looking import Look
from tests.operations.http.gateways import Response
from tests.support.commands import COMMAND, environment_in, wait_until
from tests.support.ports import free_port

PASSWORD = "a-password-of-a-console"
PAGES = (
    "/",
    "/agent?id=no-such-agent",
    "/conversations",
    "/releases",
    "/release?id=x",
    "/audit",
    "/seals",
    "/status",
    "/none",
)
Headers = Iterable[tuple[str, str]]


class Console:
    """A console for the server at *address*, with the rights of *key*, while the block runs."""

    def __init__(self, folder: Path, address: str, key: str, *options: str, password: str = PASSWORD) -> None:
        self.port = free_port()
        self.name = f"127.0.0.1:{self.port}"
        self._password = folder / f"password-{self.port}"
        self._password.touch(mode=0o600)
        self._password.write_text(password)
        self._command = [*COMMAND, "console", "--listen", self.name, "--password-file", str(self._password), *options]
        self._environment = environment_in(folder, MUNIMENT_ADDRESS=address, MUNIMENT_HOST_KEY=key)

    def __enter__(self) -> Console:
        self.process = subprocess.Popen(self._command, env=self._environment, stderr=subprocess.PIPE, text=True)
        wait_until(self._listens, "the console listens")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.communicate()

    def _listens(self) -> bool:
        assert self.process.poll() is None, self.process.stderr and self.process.stderr.read()
        try:
            return self.send("GET", "/").status == 401
        except ConnectionRefusedError:
            return False

    def send(self, method: str, path: str, headers: Headers = (), *, host: str | None = None) -> Response:
        """Send one request with these headers alone, and the Host header."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in [("host", self.name if host is None else host), *headers]:
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return Response(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def get(self, path: str, headers: Headers = (), *, method: str = "GET", host: str | None = None) -> Response:
        """Ask for a page as somebody who knows the password."""
        return self.send(method, path, [signed_in(), *headers], host=host)

    def look(self, path: str) -> Look:
        """A page that can be shown."""
        answer = self.get(path)
        assert answer.status == 200, answer.body.decode()
        return Look(answer.body.decode())


def signed_in(password: str = PASSWORD) -> tuple[str, str]:
    """The header of somebody who knows the password."""
    return "authorization", f"Basic {b64encode(f'auditor:{password}'.encode()).decode()}"
