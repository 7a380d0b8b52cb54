"""The files that operators give to commands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from muniment.cli.failures import Failure

_MOST_BYTES = 4 * 1024**3
"""The longest file that is read as a whole. A journal with ten million entries is shorter."""


def open_file(file: Path) -> BinaryIO:
    """Open *file* for reading. Raises Failure for a pipe or a device, which may have no end, and OSError."""
    if file.exists() and not file.is_file():
        raise Failure(f"{file} is not a regular file", "write what it gives to a file, and name that")
    return file.open("rb")


def read_file(file: Path) -> bytes:
    """All of *file*. Raises Failure, also if it is too long, and OSError."""
    with open_file(file) as opened:
        if os.fstat(opened.fileno()).st_size > _MOST_BYTES:
            raise Failure(f"{file} has more than 4 GiB", "check that it is the right file")
        return opened.read()
