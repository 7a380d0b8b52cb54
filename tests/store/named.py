"""The named queries as the tests of their texts see them: by file, name, role and kind of parameter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from muniment_server.postgres import queries, roles

SERVED = {
    **dict.fromkeys(("items", "notes", "blocks", "passages", "search", "meaning"), roles.LEVELS),
    **dict.fromkeys(("hosts", "sharing"), (roles.CONTROL,)),
    "audit": (roles.AUDITOR,),
}
"""The files of what principals ask for, and the roles that run them."""
ANYBODY = {"catalog": (roles.CONTROL,), "connection": roles.SERVING}
"""The files of what the server asks for itself."""
EMBEDDER = {"embedding": roles.LEVELS}
"""The file of what the embedder does, in no session, for all tenants: outside of the fence."""
OPERATORS = {"operator": (roles.OWNER,), "history": (roles.OWNER,)}
"""The files of what operators do at the terminal, across tenants."""

_PARAMETER = re.compile(r"%\((\w+)\)s")


class Named(NamedTuple):
    """One named query, for one role."""

    file: str
    name: str
    text: str
    role: str

    def __str__(self) -> str:
        return f"{self.file}.{self.name}-{self.role.removeprefix('muniment_')}"


def named(*files: Mapping[str, tuple[str, ...]]) -> list[Named]:
    """The queries of these files, each once for every role that runs it."""
    return [
        Named(file, name, text, role)
        for group in files
        for file, serving in group.items()
        for name, text in queries.load(file).items()
        for role in serving
    ]


def numbered(text: str) -> bytes:
    """*text* with `$1` in the place of its first parameter, and so on: as the driver sends it, without types."""
    order: dict[str, int] = {}
    return (
        _PARAMETER.sub(lambda match: f"${order.setdefault(match[1], len(order) + 1)}", text).replace("%%", "%").encode()
    )


def parameters(text: str) -> Iterator[str]:
    """The names of the parameters of *text*, each once."""
    yield from dict.fromkeys(_PARAMETER.findall(text))


def filled(text: str, literals: dict[str, str]) -> str:
    """*text* with literals in the place of its parameters."""
    return _PARAMETER.sub(lambda match: literals[match[1]], text).replace("%%", "%")
