"""The files that operators name: to commands, and in the configuration of a server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

_MOST_BYTES = 1024**2
"""No passfile, certificate, token or list of servers is longer."""

LOG_BYTES = 4 * 1024**3
"""No journal is longer: this one would have ten million entries. Nor is an exported audit log."""


class UnusableFile(OSError):
    """The file is none that can be read to its end."""

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(0, problem, str(file))

    def __str__(self) -> str:
        """As an error without a number."""
        return f"{self.filename}: {self.strerror}"


def open_file(file: Path) -> BinaryIO:
    """Open *file* for reading. Raises UnusableFile for a pipe or a device, which may have no end, and OSError."""
    if file.exists() and not file.is_file():
        raise UnusableFile(file, "it is not a regular file")
    return file.open("rb")


def read_file(file: Path, most_bytes: int = _MOST_BYTES) -> bytes:
    """All of *file*. Raises UnusableFile, also if it has more than *most_bytes*, and OSError."""
    with open_file(file) as opened:
        if os.fstat(opened.fileno()).st_size > most_bytes:
            raise UnusableFile(file, f"it has more than {most_bytes:,} bytes")
        return opened.read()
