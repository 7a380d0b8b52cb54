"""The asyncio client: the same clients, methods, values and errors as in `muniment`, to be awaited.

`connect` returns a `HostClient` for a host key, or a `SessionClient` for a session's token; `connect_host` and
`connect_session` take them from the environment. Methods that make a call
are coroutines; lists are asynchronous iterators. A client belongs to the event loop in which it makes its first call.
If the task that awaits a call is canceled, the call is too.
"""

from __future__ import annotations

from muniment.aio._connect import connect, connect_host, connect_session
from muniment.aio._conversation import Conversation
from muniment.aio._listing import Listing
from muniment.aio.host import HostClient
from muniment.aio.session import SessionClient

__all__ = ["Conversation", "HostClient", "Listing", "SessionClient", "connect", "connect_host", "connect_session"]
