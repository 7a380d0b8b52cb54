"""Refuses sessions of `muniment.aio` where calls are not awaited."""

from __future__ import annotations

import inspect
from typing import Any


def require_blocking(session: Any) -> None:
    """TypeError: the session is one of `muniment.aio`: its calls would return coroutines, and store nothing."""
    if inspect.iscoroutinefunction(session.get_session):
        raise TypeError(
            "the session is one of muniment.aio: pass one of muniment.connect or HostClient.open_session,"
            " also to an adapter whose methods are asynchronous"
        )
