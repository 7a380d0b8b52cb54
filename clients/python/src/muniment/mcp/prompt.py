"""The rendered prompt, as a prompt that a user chooses and as a resource that a host reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from muniment import MunimentError, SessionClient
from muniment.mcp.failures import text_of
from muniment.mcp.labels import contains

NAME = "memory"
URI = "muniment://prompt"
DESCRIPTION = "What should always be in view: the core blocks and the notes, as one text."


def add_prompt(server: MCPServer[Any], session: Callable[[], SessionClient]) -> None:
    """Offer the rendered prompt of *session* as a prompt and as a resource."""

    def memory() -> str:
        return _render(session())

    server.prompt(NAME, description=DESCRIPTION)(memory)
    server.resource(URI, name=NAME, description=DESCRIPTION)(memory)


def _render(session: SessionClient) -> str:
    try:
        rendered = session.render_prompt()
    except MunimentError as error:
        raise MCPError(INTERNAL_ERROR, text_of(error)) from None
    if rendered.sections:
        contains(rendered.classification)
    return rendered.text
