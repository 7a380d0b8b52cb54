"""An OpenID Connect provider (oidc-provider-mock) over https, in a process of its own.

`python -m tests.operations.identity.issuer PORT CERTIFICATE KEY` runs it.
"""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
import urllib.parse
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.certificates import make
from tests.support.commands import wait_until
from tests.support.ports import free_port

_CALLBACK = "https://host.example/callback"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Issuer:
    """The provider, while the block runs."""

    def __init__(self, folder: Path) -> None:
        make(
            folder, "issuer", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:TRUE"
        )
        self.ca = folder / "issuer.pem"
        self._key = folder / "issuer.key"
        self.port = free_port()
        self.url = f"https://localhost:{self.port}"
        self.keys = f"{self.url}/jwks"
        context = ssl.create_default_context(cafile=str(self.ca))
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirect)

    def __enter__(self) -> Issuer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        command = [sys.executable, "-m", __name__, str(self.port), str(self.ca), str(self._key)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers, "the issuer answers")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        with suppress(OSError):
            return bool(self._get("/.well-known/openid-configuration")["jwks_uri"] == self.keys)
        return False

    def _get(self, path: str) -> Any:
        with self._opener.open(f"{self.url}{path}", timeout=30) as answer:
            return json.load(answer)

    def token(self, subject: str, audience: str) -> str:
        """An ID token of *subject* for *audience*, by the flow of the authorization code."""
        asked = {"client_id": audience, "redirect_uri": _CALLBACK, "response_type": "code", "scope": "openid"}
        url = f"{self.url}/oauth2/authorize?{urllib.parse.urlencode(asked)}"
        try:
            self._opener.open(url, urllib.parse.urlencode({"sub": subject}).encode(), timeout=30)
            raise AssertionError("the issuer did not send the browser back")
        except urllib.error.HTTPError as redirect:
            code = urllib.parse.parse_qs(urllib.parse.urlsplit(redirect.headers["location"]).query)["code"][0]
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": _CALLBACK}
        secret = base64.b64encode(f"{audience}:secret".encode()).decode()
        request = urllib.request.Request(
            f"{self.url}/oauth2/token", urllib.parse.urlencode(form).encode(), {"authorization": f"Basic {secret}"}
        )
        with self._opener.open(request, timeout=30) as answer:
            return str(json.load(answer)["id_token"])


def _main(port: str, certificate: str, key: str) -> None:
    from oidc_provider_mock import app  # noqa: PLC0415 - only this process loads it
    from werkzeug.serving import make_server  # noqa: PLC0415

    make_server("localhost", int(port), app(), threaded=True, ssl_context=(certificate, key)).serve_forever()


if __name__ == "__main__":
    _main(*sys.argv[1:])
