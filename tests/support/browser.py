"""Chromium without a screen, driven by its own protocol over a pipe: what a page has become, and how it looks."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, PROGRAMS)), None)
REQUIRED = os.environ.get("REQUIRE_ALL_CLIENTS") == "1"
_SCRIPT = 'exec "$@" 3<&{} 4>&{}'


class Browser:
    """One tab, while the block runs."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM, "there is no Chromium"
        options = ["--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        options += ["--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-sandbox"]
        self._command = [str(CHROMIUM), *options, "about:blank"]
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session = ""

    def __enter__(self) -> Browser:
        given, self._given = os.pipe()
        self._answers, answers = os.pipe()
        shell = ["bash", "-c", _SCRIPT.format(given, answers), "bash"]
        self._process = subprocess.Popen(
            [*shell, *self._command], pass_fds=(given, answers), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        os.close(given)
        os.close(answers)
        tab = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        self.call("Page.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._given)
        os.close(self._answers)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Call a method of the DevTools protocol, and return its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._given, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == number:
                assert "error" not in found, found
                result: dict[str, Any] = found["result"]
                return result

    def open(self, url: str) -> None:
        """Open a page, and wait until it has loaded."""
        self.call("Page.navigate", url=url)
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, which the page's policy does not hinder."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def look_like(self, *, width: int, height: int = 800, scheme: str = "light") -> None:
        """Be a screen of this size whose user likes pages to be `light` or `dark`."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._answers, 1 << 16)
            assert part, "the browser has ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found
