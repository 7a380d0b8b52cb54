"""What a model reads if the arguments of a call do not fit the tool: which argument, and what it must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    "literal_error": lambda rule: "must be " + rule["expected"].replace("'", ""),
    "int_type": lambda _: "must be a whole number",
    "int_parsing": lambda _: "must be a whole number",
    "int_parsing_size": lambda _: "must be a whole number",
    "int_from_float": lambda _: "must be a whole number",
    "finite_number": lambda _: "must be a whole number",
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
    """A tool whose errors say in one sentence which arguments do not fit. The SDK's text would quote them."""

    async def run(self, arguments: dict[str, Any], *args: Any, **options: Any) -> Any:
        """Run the tool. ToolError: it failed, or *arguments* do not fit, or the schema does not have one of them.

        A model that invents `tier` or `level` would otherwise believe that it took effect.
        """
        known = self.parameters["properties"]
        if not arguments.keys() <= known.keys():
            raise ToolError(f"Error executing tool {self.name}: {_takes_only(known)}")
        try:
            self.fn_metadata.validate_arguments(arguments)
        except ValidationError as refused:
            raise ToolError(f"Error executing tool {self.name}: {sentence(refused)}") from None
        return await super().run(arguments, *args, **options)


def sentence(refused: ValidationError) -> str:
    """What is wrong with the arguments, by their names in the schema. Repeats nothing that was sent."""
    faults = refused.errors(include_url=False, include_input=False)
    named = [f"{_path(fault['loc'])} {_expected(fault)}" for fault in faults[:MAX_FAULTS]]
    more = [f"{len(faults) - MAX_FAULTS} more do not fit"] if len(faults) > MAX_FAULTS else []
    return f"{'; '.join([*named, *more])}. Correct the arguments and call again."


def _takes_only(known: Mapping[str, Any]) -> str:
    takes = f"takes no arguments but {', '.join(known)}" if known else "takes no arguments"
    return f"{takes}. Correct the arguments and call again."


def _path(place: Sequence[int | str]) -> str:
    """`update[0].content`. Names are those of the schema."""
    first, *rest = place
    return str(first) + "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in rest)


def _expected(fault: Mapping[str, Any]) -> str:
    rule = _EXPECTED.get(fault["type"])
    return "is not as its schema says" if rule is None else rule(fault.get("ctx", {}))
