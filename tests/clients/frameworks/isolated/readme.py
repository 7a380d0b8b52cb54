"""The code of the client's README."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

README = Path(__file__).parents[4] / "clients/python/README.md"


def block(section: str, language: str = "python") -> str:
    """The only block of one language in a section."""
    text = README.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    (code,) = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return str(code)


def names_of(section: str) -> dict[str, Any]:
    """What the code of a section defines."""
    names: dict[str, Any] = {}
    exec(compile(block(section), str(README), "exec"), names)
    return names
