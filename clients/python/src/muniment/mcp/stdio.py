"""MCP on standard input and output. Each line is a message, or is answered with an error.

The SDK's own reader drops a line that is no message, so its sender waits for ever, and replaces bytes that are not
UTF-8, so another text would be stored than was sent.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import from_json

MAX_MESSAGE = 2 * 1024 * 1024
"""The maximum size of a message in bytes: room for a passage of 256 KiB, each byte of which may be escaped as six."""

_MAX_END = 1024
"""How much of the end of a line that is too long is searched for its id."""
_ID = rb'"id"\s*:\s*(?P<id>-?[0-9]{1,18}|"[^"\\\x00-\x1f\x7f-\xff]{0,256}")'
_TOKEN = re.compile(_ID + rb'(?=\s*[,}])|"(?:[^"\\]|\\.)*"?|(?P<open>[\[{])|(?P<close>[\]}])', re.DOTALL)
"""An id member, a string, or a bracket. The closing quote is optional, so matching takes linear time."""
_LAST_ID = re.compile(_ID + rb"\s*\}\s*\Z")

_Answer = Callable[[SessionMessage], Awaitable[None]]


class StrictServer(MCPServer[Any]):
    """An MCP server that answers each malformed line of standard input with an error."""

    async def run_stdio_async(self) -> None:
        """Serve until standard input ends."""
        async with _streams(sys.stdin.buffer) as (messages, answers):
            options = self._lowlevel_server.create_initialization_options()
            await self._lowlevel_server.run(messages, answers, options)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the input. If it is too long, *start* is its beginning, and *end* its end."""

    start: bytes
    end: bytes = b""


class NoMessage(Exception):
    """A line is not a message."""

    def __init__(self, line: Line, code: int, why: str) -> None:
        super().__init__(why)
        self.answer = JSONRPCError(jsonrpc="2.0", id=_id_in(line), error=ErrorData(code=code, message=why))


@asynccontextmanager
async def _streams(
    source: BinaryIO,
) -> AsyncIterator[tuple[MemoryObjectReceiveStream[SessionMessage | Exception], Any]]:
    """The messages of *source*, and the SDK's stream for answers. The SDK's reader is given an input that has ended."""
    arriving, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
    async with (
        stdio_server(stdin=anyio.wrap_file(io.StringIO())) as (nothing, answers),
        anyio.create_task_group() as tasks,
    ):
        await nothing.aclose()
        tasks.start_soon(_read, source, arriving, answers.send)
        yield messages, answers


async def _read(
    source: BinaryIO, arriving: MemoryObjectSendStream[SessionMessage | Exception], answer: _Answer
) -> None:
    async with arriving:
        while line := await anyio.to_thread.run_sync(_next_line, source):
            try:
                await arriving.send(SessionMessage(message_of(line)))
            except NoMessage as error:
                await answer(SessionMessage(error.answer))


def _next_line(source: BinaryIO) -> Line | None:
    """The next line that is not blank, or None."""
    while (start := source.readline(MAX_MESSAGE)).isspace():
        pass
    part, end = start, b""
    while part and not part.endswith(b"\n"):
        part = source.readline(MAX_MESSAGE)
        end = (end + part)[-_MAX_END:]
    return Line(start, end) if start else None


def message_of(line: Line) -> JSONRPCMessage:
    """The message that *line* is. Raises NoMessage."""
    if line.end:
        raise NoMessage(line, PARSE_ERROR, f"Parse error: the line is longer than {MAX_MESSAGE // 1024**2} MiB")
    try:
        value = from_json(line.start)
    except ValueError as error:  # names the place, and quotes nothing
        raise NoMessage(line, PARSE_ERROR, f"Parse error: {error}") from None
    try:
        message = jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        raise NoMessage(line, INVALID_REQUEST, "Invalid request: the line is not a message of JSON-RPC 2.0") from None
    if isinstance(message, JSONRPCNotification) and "id" in value:
        raise NoMessage(line, INVALID_REQUEST, "Invalid request: id must be text or a whole number")
    return message


def _id_in(line: Line) -> RequestId | None:
    """The id that the outermost object of *line* has, however broken the rest is. None if it has none."""
    depth = 0
    for token in _TOKEN.finditer(line.start):
        depth += bool(token["open"]) - bool(token["close"])
        if token["id"] and depth == 1:
            return _id(token)
    last = _LAST_ID.search(line.end)
    return _id(last) if last else None


def _id(found: re.Match[bytes]) -> RequestId:
    written: RequestId = from_json(found["id"])
    return written
