"""The names of DESIGN.md 4.2, on which clients rely: each message has at least these fields."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from muniment_server.monitor.validation import load_pool
from muniment_server.transport.server import SERVICES

TABLE = Path(__file__).with_name("names.txt").read_text("utf-8")
"""The table of DESIGN.md 4.2, as far as its services are there."""

POOL = load_pool()

_METHOD = re.compile(r"^(?P<name>\w+) \{(?P<request>[^}]*)\} -> \{(?P<response>[^}]*)\}$")
_MESSAGE = re.compile(r"^(?P<name>\w+) \{(?P<fields>[^}]*)\}$")


def promised():
    """Each message and one field that it must have."""
    for line in filter(None, TABLE.splitlines()):
        if method := _METHOD.match(line):
            yield from ((f"{method['name']}Request", field) for field in _split(method["request"]))
            yield from ((f"{method['name']}Response", field) for field in _split(method["response"]))
        elif message := _MESSAGE.match(line):
            yield from ((message["name"], field) for field in _split(message["fields"]))
        else:
            raise AssertionError(f"not understood: {line}")


def _split(fields):
    return filter(None, (field.strip() for field in fields.split(",")))


@pytest.mark.parametrize(("message", "field"), list(promised()), ids=lambda value: value.replace("optional ", ""))
def test_the_field_is_there(message, field):
    descriptor = POOL.FindMessageTypeByName(f"muniment.v1.{message}")
    name = field.removeprefix("optional ")

    assert name in descriptor.fields_by_name
    assert descriptor.fields_by_name[name].has_presence or not field.startswith("optional ")


def test_every_method_is_in_the_table():
    listed = {match["name"] for match in map(_METHOD.match, TABLE.splitlines()) if match}

    assert {method.name for service in SERVICES for method in service.methods} <= listed
