"""What goes wrong with files: `muniment.files` lists it."""

from __future__ import annotations

from collections.abc import Sequence


class FileError(Exception):
    """What was asked for is not possible. The text is for a model."""


class InvalidPath(FileError):
    """The path leaves the root, or has a name that a key must not contain."""


class NoSuchFile(FileError):
    """No file is at the path, and none is below it."""


class FileExists(FileError):
    """A file, or a directory, is at the path already."""


class FileChanged(FileError):
    """Somebody else changed the file meanwhile."""


class LowerFile(FileError):
    """Only lower versions are visible, so the file can be neither deleted nor renamed."""


class NoSuchText(FileError):
    """The text to replace does not occur in the file."""


class AmbiguousText(FileError):
    """The text to replace occurs more than once: it begins in *lines*, of which 100 are listed at most."""

    def __init__(self, message: str, lines: Sequence[int]) -> None:
        super().__init__(message)
        self.lines = lines


class NoSuchLine(FileError):
    """The file ends with the line *last*."""

    def __init__(self, message: str, last: int) -> None:
        super().__init__(message)
        self.last = last


class InvalidContent(FileError):
    """The content is too large, or has a character that cannot be stored."""
