"""Named queries. A query's text is in a `.sql` file beside this module, after a line `-- name: …`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"--.*$", re.MULTILINE)


def load(*files: str) -> Mapping[str, str]:
    """The queries of these files by name, without comments and indentation.

    psycopg remembers how it rewrote a query only up to 4,096 characters; white space would push the
    largest of ours beyond it.
    """
    folder = resources.files(__name__)
    return dict(query for file in files for query in _split(folder.joinpath(f"{file}.sql").read_text(encoding="utf-8")))


def _split(text: str) -> Iterator[tuple[str, str]]:
    _, *parts = _NAME.split(text)
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        yield name, " ".join(_COMMENT.sub("", body).split()).rstrip(";")
