"""Named queries. A query's text is in a `.sql` file, after a line `-- name: …`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"--.*$", re.MULTILINE)


def load(package: str, file: str) -> Mapping[str, str]:
    """The queries of one file of *package* by name, without comments and indentation.

    psycopg caches how it rewrites a query only up to 4,096 characters; white space would push the largest beyond that.
    """
    return {name: flattened(body) for name, body in split(read(package, file)).items()}


def read(package: str, file: str) -> str:
    """The text of one file of *package*."""
    return resources.files(package).joinpath(file).read_text(encoding="utf-8")


def split(text: str) -> Mapping[str, str]:
    """The queries in *text* by name, as they are written."""
    _, *parts = _NAME.split(text)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def flattened(body: str) -> str:
    """*body* on one line, without comments."""
    return " ".join(without_comments(body).split()).rstrip(";")


def without_comments(text: str) -> str:
    """*text* without its comments."""
    return _COMMENT.sub("", text)
