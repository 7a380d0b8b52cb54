"""A model at the other end of the MCP, and a real server of Muniment behind it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent

import muniment
from muniment import Classification, HostClient, SessionClient
from muniment.mcp.server import build
from tests.support.services import Service

COMMAND = str(Path(sys.executable).with_name("muniment-mcp"))

Opened = Callable[[Classification], SessionClient]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def owner(service: Service) -> Iterator[HostClient]:
    """A host with an agent `alice`."""
    with muniment.connect(service.address, host_key=service.host().token) as host:
        host.create_agent("alice")
        yield host


@pytest.fixture
def opened(owner: HostClient) -> Opened:
    """Opens sessions of `alice`, each with a conversation of its own."""
    return lambda taint: owner.open_session("alice", taint)


class Model:
    """Calls tools, as a model does."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def does(self, tool: str, **arguments: Any) -> Any:
        """What a tool gives, which must succeed."""
        result = await self.call(tool, **arguments)
        assert not result.is_error, said(result)
        return result.structured_content

    async def fails(self, tool: str, **arguments: Any) -> str:
        """The error text of a tool, which must fail."""
        result = await self.call(tool, **arguments)
        assert result.is_error
        assert result.structured_content is None
        return said(result)

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        result = await self.client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        return result


def said(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


@asynccontextmanager
async def talking(session: SessionClient) -> AsyncIterator[Model]:
    """A model with the server of *session* in this process."""
    async with Client(build(lambda: session)) as client:
        yield Model(client)


@asynccontextmanager
async def talking_over_stdio(
    address: str, token: str, command: str = COMMAND, *arguments: str, ca: str = ""
) -> AsyncIterator[Model]:
    """A model with a server in a process of its own, as hosts start it."""
    environment = {"MUNIMENT_ADDRESS": address, "MUNIMENT_TOKEN": token, "MUNIMENT_TLS_CA": ca}
    started = StdioServerParameters(command=command, args=list(arguments), env=environment)
    async with Client(stdio_client(started)) as client:
        yield Model(client)


@asynccontextmanager
async def serving(service: Service, key: str, command: str, *arguments: str) -> AsyncIterator[Model]:
    """The same with a host key, which opens the conversation that *arguments* name."""
    environment = {"MUNIMENT_ADDRESS": service.address, "MUNIMENT_HOST_KEY": key}
    started = StdioServerParameters(command=command, args=list(arguments), env=environment)
    async with Client(stdio_client(started)) as client:
        yield Model(client)
