"""Refuses to store texts while the disk of the database is full. All else goes on: it needs little room, or makes some.

Whether it is full does not depend on who calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from google.protobuf.message import Message

from muniment_server.domain.errors import StorageFull
from muniment_server.monitor.call import Call, Proceed
from muniment_server.postgres.disk import Disk


class RefuseWhenFull:
    """The interceptor in front of the servicers."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def __call__(self, call: Call, proceed: Proceed) -> Message:
        if not call.method.declared.stores_text:
            return proceed(call)
        self._require_room()
        if call.method.takes_stream:
            call.request = self._while_room(cast(Iterator[Message], call.request))
        try:
            return proceed(call)
        except StorageFull:
            self._disk.report_full()
            raise

    def _while_room(self, messages: Iterator[Message]) -> Iterator[Message]:
        for message in messages:
            self._require_room()
            yield message

    def _require_room(self) -> None:
        if self._disk.is_full:
            raise StorageFull
