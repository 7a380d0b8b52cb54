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

from muniment import Classification, Integrity, MunimentError, SessionClient
from muniment.mcp.results import LEVELS, Labeled

CLASSIFICATION = "muniment.v1/classification"
LABELED = frozenset({"tools/call", "prompts/get", "resources/read"})

_contained: ContextVar[list[Classification]] = ContextVar("contained")


def contains(level: Classification) -> None:
    """Record the level of something that the result of the current request contains."""
    _contained.get().append(level)


class Labeler:
    """Middleware that labels each result with the highest level that it contains, and the session's integrity.

    A result without such a level (a deletion, an error) is labeled with the session's taint, because it may depend on
    anything that the session sees. The integrity is the session's even if all that is shown is trusted: what is shown
    depends on the rest. If the session cannot be read, the label is the highest, and untrusted.
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
        level, integrity = await anyio.to_thread.run_sync(self._label, levels)
        return _labeled(result, level, integrity)

    def _label(self, levels: list[Classification]) -> tuple[Classification, Integrity]:
        """That of a result that contains *levels*, read after it was made: then it cannot have been less trusted.

        A session that was untrusted once is so forever.
        """
        try:
            own = self._session().session
            if own.integrity is Integrity.TRUSTED or not levels:
                own = self._session().get_session()
        except MunimentError:
            return max(levels, default=max(Classification)), Integrity.UNTRUSTED
        return max(levels, default=own.taint), own.integrity


def ifc(level: Classification, integrity: Integrity) -> dict[str, str]:
    """The label of an answer whose content is at *level*, to a session of *integrity*."""
    return {
        "integrity": integrity.name.lower(),
        "confidentiality": "public" if level is Classification.PUBLIC else "private",
    }


def record(result: Any) -> None:
    """Record the level of a tool's result, if it has one."""
    if isinstance(result, Labeled):
        contains(Classification[result.classification])


def _labeled(result: HandlerResult, level: Classification, integrity: Integrity) -> dict[str, Any]:
    serialized = cast(dict[str, Any], result)  # within the SDK's chain, results are serialized already
    meta = serialized.get("_meta", {}) | {"ifc": ifc(level, integrity), CLASSIFICATION: LEVELS[level]}
    return serialized | {"_meta": meta}
