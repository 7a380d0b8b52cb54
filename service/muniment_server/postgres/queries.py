"""Named queries. A query's text is in a `.sql` file, after a line `-- name: …`.

One whose name has `{label}` in it is a query for each label, with the label's name there, and its number for `{rank}`.
A condition that several queries of a file have is written once, before them, after a line `-- condition: NAME`. For
`{NAME session}`, a query gets its text with `session` in place of `{of}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import resources

from muniment_server.domain.classification import Label

_NAME = re.compile(r"^-- name: ([\w{}]+)$", re.MULTILINE)
_LABEL = "{label}"
_CONDITION = re.compile(r"^-- condition: (\w+)\n(?:--.*\n)*(.+)$", re.MULTILINE)
_USE = re.compile(r"\{(\w+) (\w+)\}")
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
    """The queries in *text* by name, as they are written, with their conditions."""
    conditions = dict(_CONDITION.findall(text))
    whole = _USE.sub(lambda use: conditions[use[1]].replace("{of}", use[2]), text)
    _, *parts = _NAME.split(whole)
    named = zip(parts[::2], parts[1::2], strict=True)
    return {each: written for name, body in named for each, written in _of_labels(name, body)}


def _of_labels(name: str, body: str) -> Iterator[tuple[str, str]]:
    if _LABEL not in name:
        yield name, body
        return
    for label in Label:
        own = label.name.lower()
        yield name.replace(_LABEL, own), body.replace(_LABEL, own).replace("{rank}", str(label.value))


def flattened(body: str) -> str:
    """*body* on one line, without comments."""
    return " ".join(without_comments(body).split()).rstrip(";")


def without_comments(text: str) -> str:
    """*text* without its comments."""
    return _COMMENT.sub("", text)
