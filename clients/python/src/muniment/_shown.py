"""What the command line and the MCP server show of an error."""

from __future__ import annotations

from muniment.errors import DeadlineExceeded, InternalError, MunimentError, Overloaded, Unavailable

# The server's log may explain these. Other refusals explain themselves: they stay short, and the same each time.
EXPLAINED_BY_THE_LOG = (InternalError, Unavailable, Overloaded, DeadlineExceeded)


def shown(error: MunimentError) -> str:
    """The error, with its request id only if the server's log may explain it."""
    return str(error) if isinstance(error, EXPLAINED_BY_THE_LOG) else error.summary
