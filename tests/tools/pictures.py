"""Writes the pictures of an agent's page and of a terminal into `service/docs`: `python -m tests.tools.pictures`.

Run it in the shell of the quickstart, at a new server, after `make build-typescript`. It needs Go, Node.js, Chromium.
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "service" / "docs"
CUSTOMER = "customer-4711"
COMMANDS = (
    f"muniment memory list --agent {CUSTOMER} --taint confidential",
    f"muniment memory list --agent {CUSTOMER} --taint public",
    f"muniment audit list --tenant development --agent {CUSTOMER} --limit 7",
)
_COLUMNS = 110


def main() -> None:
    """Play the three services, and write both pictures of what is stored then."""
    subprocess.run([ROOT / "clients" / "three_services.sh", CUSTOMER], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        draw_page(Path(folder))
    draw_terminal()


def draw_page(folder: Path) -> None:
    """The upper part of the page."""
    page = folder / "page.html"
    subprocess.run(["muniment", "agent", "show", CUSTOMER, "--html", page], check=True)
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    shot = ["--window-size=1000,1105", f"--screenshot={DOCS / 'agent-page.png'}"]
    subprocess.run([*browser, *shot, page.as_uri()], check=True, stderr=subprocess.DEVNULL)


def draw_terminal() -> None:
    """What the commands print."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO())
    for command in COMMANDS:
        console.print(Text(f"$ {command}", style="bold"))
        console.print(Text.from_ansi(on_a_terminal(command)), soft_wrap=True)
    picture = console.export_svg(title="muniment", theme=DIMMED_MONOKAI)
    picture = re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL)  # they would come from the network
    (DOCS / "terminal.svg").write_text(re.sub(r"[ \t]+$", "", picture, flags=re.MULTILINE), encoding="utf-8")


def on_a_terminal(command: str) -> str:
    """The output of *command*, with its colors."""
    shown, end = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(_COLUMNS), "TERM": "xterm-256color"}
    with subprocess.Popen(command.split(), stdout=end, stderr=end, env=environment):
        os.close(end)
        output = b""
        try:
            while part := os.read(shown, 65536):
                output += part
        except OSError:  # Linux says so of a terminal whose other end is closed
            pass
    return output.decode().replace("\r\n", "\n")


if __name__ == "__main__":
    main()
