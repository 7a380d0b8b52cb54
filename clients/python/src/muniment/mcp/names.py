"""Refuses requests for what does not exist with the code of the MCP specification.

The SDK answers an unknown prompt, and arguments that a prompt does not take, as a fault of the server, and logs it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

_PROMPTS = "prompts/get"
_TOOLS = "tools/call"


class KnownNames:
    """Middleware that refuses unknown tools, unknown prompts, and arguments of prompts, which take none."""

    def __init__(self, *, tools: Collection[str], prompts: Collection[str]) -> None:
        self._names: Mapping[str, Collection[str]] = {_TOOLS: tools, _PROMPTS: prompts}

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass the request on, or raise MCPError. What is of the wrong type is left to the SDK."""
        given = ctx.params or {}
        name = given.get("name")
        if ctx.method in self._names and isinstance(name, str) and name not in self._names[ctx.method]:
            kind = ctx.method.partition("/")[0]
            raise MCPError(INVALID_PARAMS, f"there is none of that name: {kind}/list names those that there are")
        if ctx.method == _PROMPTS and given.get("arguments"):
            raise MCPError(INVALID_PARAMS, "the prompt takes no arguments")
        return await call_next(ctx)
