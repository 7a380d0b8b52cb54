"""The arguments of a call as a model means them, and what it reads if they do not fit the tool."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from muniment._reserved import RESERVED, is_reserved

MAX_FAULTS = 5
"""How many arguments that do not fit are named."""

# The text for each type of pydantic's errors, made from the parameters of the rule.
_EXPECTED: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "missing": lambda _: "is missing",
    "string_type": lambda _: "must be text",
    "list_type": lambda _: "must be a list",
    "model_type": lambda _: "must be an object",
    "extra_forbidden": lambda _: "has an unknown field",
    "literal_error": lambda rule: "must be " + rule["expected"].replace("'", ""),
    "int_type": lambda _: "must be a whole number",
    "int_parsing": lambda _: "must be a whole number",
    "int_parsing_size": lambda _: "must be a whole number",
    "int_from_float": lambda _: "must be a whole number",
    "finite_number": lambda _: "must be a whole number",
    "bool_type": lambda _: "must be true or false",
    "bool_parsing": lambda _: "must be true or false",
    "greater_than_equal": lambda rule: f"must be at least {rule['ge']}",
    "less_than_equal": lambda rule: f"must be at most {rule['le']}",
    "string_too_short": lambda rule: (
        "must not be empty" if rule["min_length"] == 1 else f"must have at least {rule['min_length']} characters"
    ),
    "string_too_long": lambda rule: f"must have at most {rule['max_length']:,} characters",
    "string_unicode": lambda _: "must be text that can be written in UTF-8",
    "too_long": lambda rule: f"must have at most {rule['max_length']} entries",
    "reserved": lambda _: (
        f"must not begin with {RESERVED}, because items with such names belong to programs, and you may only read them"
    ),
}


def unreserved(name: str) -> str:
    """A key or tag that a model may write. Any other could make its item read as one of an adapter."""
    if is_reserved(name):
        raise PydanticCustomError("reserved", "reserved")
    return name


class CheckedTool(Tool):
    """A tool that takes arguments as models mean them, and whose errors name those that do not fit in one sentence.

    The SDK's text would quote them.
    """

    async def run(self, arguments: dict[str, Any], *args: Any, **options: Any) -> Any:
        """Run the tool. ToolError: it failed, or *arguments* do not fit, or the schema does not have one of them.

        A model that invents `tier` or `level` would otherwise believe that it took effect.
        """
        known = self.parameters["properties"]
        arguments = as_meant(arguments, known)
        if not arguments.keys() <= known.keys():
            raise ToolError(f"Error executing tool {self.name}: {_takes_only(known)}")
        try:
            self.fn_metadata.validate_arguments(arguments)
        except ValidationError as refused:
            raise ToolError(f"Error executing tool {self.name}: {sentence(refused)}") from None
        return await super().run(arguments, *args, **options)


def as_meant(arguments: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """*arguments* without those that are null, and with a list wherever the schema wants one."""
    return {
        name: _listed(value) if known.get(name, {}).get("type") == "array" else value
        for name, value in arguments.items()
        if value is not None
    }


def _listed(value: object) -> list[Any]:
    """A list, which may be written as JSON in a text. Anything else is the list of it alone; an empty text is none."""
    if isinstance(value, str):
        value = _from_json(value)
    if isinstance(value, list):
        return value
    return [] if value in ("", None) else [value]


def _from_json(text: str) -> object:
    """The list, object or null that *text* is in JSON, or else the text itself."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, list | dict | None) else text


def sentence(refused: ValidationError) -> str:
    """What is wrong with the arguments, by their names in the schema. Repeats nothing that was sent."""
    faults = refused.errors(include_url=False, include_input=False)
    named = [f"{_path(fault)} {_expected(fault)}" for fault in faults[:MAX_FAULTS]]
    more = [f"{len(faults) - MAX_FAULTS} more do not fit"] if len(faults) > MAX_FAULTS else []
    return f"{'; '.join([*named, *more])}. Correct the arguments and call again."


def _takes_only(known: Mapping[str, Any]) -> str:
    takes = f"takes no arguments but {', '.join(known)}" if known else "takes no arguments"
    return f"{takes}. Correct the arguments and call again."


def _path(fault: Mapping[str, Any]) -> str:
    """`update[0].content`. Names are those of the schema: of an unknown field, the path is that of its object."""
    first, *rest = fault["loc"][:-1] if fault["type"] == "extra_forbidden" else fault["loc"]
    return str(first) + "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in rest)


def _expected(fault: Mapping[str, Any]) -> str:
    rule = _EXPECTED.get(fault["type"])
    return "is not as its schema says" if rule is None else rule(fault.get("ctx", {}))
