"""The label of each result, in the form that other guards read: see service/docs/labels.md.

`_meta.ifc` has the form that GitHub's MCP server sends and Microsoft's Agent Framework reads. It knows two levels of
confidentiality only, so the classification stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, cast

import anyio.to_thread
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

from muniment import Classification, MunimentError, SessionClient
from muniment.mcp.results import LEVELS, Labeled

CLASSIFICATION = "muniment.v1/classification"
LABELED = frozenset({"tools/call", "prompts/get", "resources/read"})

_contained: ContextVar[list[Classification]] = ContextVar("contained")


def contains(level: Classification) -> None:
    """Record the level of something that the result of the current request contains."""
    _contained.get().append(level)


class Labeler:
    """Middleware that labels each result with the highest level that it contains.

    A result without such a level (a deletion, an error) is labeled with the session's taint, because it may depend on
    anything that the session sees. If the taint cannot be read, the label is the highest.
    """

    def __init__(self, session: Callable[[], SessionClient]) -> None:
        self._session = session

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass the request on, and label its result."""
        if ctx.method not in LABELED:
            return await call_next(ctx)
        levels: list[Classification] = []
        token = _contained.set(levels)
        try:
            result = await call_next(ctx)
        finally:
            _contained.reset(token)
        return _labeled(result, max(levels) if levels else await anyio.to_thread.run_sync(self._taint))

    def _taint(self) -> Classification:
        try:
            return self._session().get_session().taint
        except MunimentError:
            return max(Classification)


def ifc(level: Classification) -> dict[str, str]:
    """The label of content at *level*. It is never trusted: a memory may repeat what an agent has read anywhere."""
    return {"integrity": "untrusted", "confidentiality": "public" if level is Classification.PUBLIC else "private"}


def record(result: Any) -> None:
    """Record the level of a tool's result, if it has one."""
    if isinstance(result, Labeled):
        contains(Classification[result.classification])


def _labeled(result: HandlerResult, level: Classification) -> dict[str, Any]:
    serialized = cast(dict[str, Any], result)  # within the SDK's chain, results are serialized already
    meta = serialized.get("_meta", {}) | {"ifc": ifc(level), CLASSIFICATION: LEVELS[level]}
    return serialized | {"_meta": meta}
