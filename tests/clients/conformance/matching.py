"""Whether an answer is what a scenario expects.

What is written must be there; an object may have more. A list has exactly the elements written, in their order. A
field that is written as `null` must not be there; nor need one that is written with its default (`""`, `0`, `false`,
`[]`, `…_UNSPECIFIED`), since JSON leaves defaults out. `${name}` is something saved. `<kind>` is any value of that
kind; `<kind name>` is one value throughout a scenario, which nothing of another name has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

JSON = Any

KINDS = {
    "uuid": re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    "time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"),
    "etag": re.compile(r"[\w-]{27}|[\w-]{43}"),
    "token": re.compile(r"mun_[hs]_\d+_[\w-]{43}_[0-9a-f]{8}"),
    "page": re.compile(r"[\w-]+"),
    "text": re.compile(r".+", re.DOTALL),
    "score": re.compile(r"\d.*"),
}
PLACEHOLDER = re.compile(rf"<(?P<kind>{'|'.join(KINDS)})(?: (?P<name>\w+))?>")

_VARIABLE = re.compile(r"\$\{(\w+)\}")


class Match:
    """Compares what comes in one scenario, and remembers what has a name."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[str, str]] = {}

    def remember(self, name: str, value: JSON) -> None:
        """A value that a runner saved."""
        self._named.setdefault(name, ("", str(value)))

    def differences(self, expected: JSON, actual: JSON, path: str) -> Iterator[str]:
        """Describes each place where *actual* differs from what is expected."""
        if isinstance(expected, dict) and isinstance(actual, dict):
            for name, value in expected.items():
                yield from self._field(value, actual, name, f"{path}.{name}")
        elif isinstance(expected, list) and isinstance(actual, list):
            if len(expected) != len(actual):
                yield f"{path} has {len(actual)} elements, not {len(expected)}: {shown(actual)}"
            for number, (one, other) in enumerate(zip(expected, actual, strict=False)):
                yield from self.differences(one, other, f"{path}.{number}")
        elif isinstance(expected, str):
            yield from self._text(expected, actual, path)
        elif expected != actual or isinstance(expected, bool) != isinstance(actual, bool):
            yield f"{path} is {shown(actual)}, not {shown(expected)}"

    def _field(self, expected: JSON, actual: dict[str, JSON], name: str, path: str) -> Iterator[str]:
        if expected is None:
            if name in actual:
                yield f"{path} is {shown(actual[name])} and should not be there"
        elif name in actual:
            yield from self.differences(expected, actual[name], path)
        elif not _is_default(expected):
            yield f"{path} is not there, and should be {shown(expected)}"

    def _text(self, expected: str, actual: JSON, path: str) -> Iterator[str]:
        if placeholder := PLACEHOLDER.fullmatch(expected):
            if isinstance(actual, bool | dict | list) or not KINDS[placeholder["kind"]].fullmatch(str(actual)):
                yield f"{path} is {shown(actual)}, which is no {placeholder['kind']}"
            elif placeholder["name"]:
                yield from self._name(placeholder["kind"], placeholder["name"], str(actual), path)
        elif (wanted := _VARIABLE.sub(self._value_of, expected)) != actual:
            yield f"{path} is {shown(actual)}, not {shown(wanted)}"

    def _name(self, kind: str, name: str, actual: str, path: str) -> Iterator[str]:
        known = self._named.get(name)
        if known is not None and known[1] != actual:
            yield f"{path} is {shown(actual)}, and <{kind} {name}> was {shown(known[1])}"
        for other, named in self._named.items():
            if other != name and named == (kind, actual):
                yield f"{path} is the same as <{kind} {other}>"
        self._named[name] = (kind, actual)

    def _value_of(self, variable: re.Match[str]) -> str:
        return self._named.get(variable[1], ("", variable[0]))[1]


def _is_default(expected: JSON) -> bool:
    if isinstance(expected, str):
        return not expected or expected.endswith("_UNSPECIFIED")
    return expected in (0, False, [])


def shown(value: JSON) -> str:
    """A value, on one line and not too long."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text):,} characters)"
