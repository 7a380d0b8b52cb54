"""AuditService."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from muniment.v1 import audit_service_pb2 as pb
from muniment.v1 import audit_service_pb2_grpc
from muniment_server.monitor import convert, paging
from muniment_server.monitor.call import CallContext
from muniment_server.monitor.store import Store


class AuditServicer(audit_service_pb2_grpc.AuditServiceServicer):
    """What was done in the tenant of one host, up to its ceiling."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def ListAuditEvents(self, request: pb.ListAuditEventsRequest, context: CallContext) -> pb.ListAuditEventsResponse:
        start_time = _time(request, "start_time")
        end_time = _time(request, "end_time")
        pager = context.pager(request.agent_id, request.session_id, str(start_time), str(end_time))
        with self._store.as_auditor(context.host, context.call) as audit:
            events, more = audit.list(
                agent_id=request.agent_id or None,
                session_id=convert.uuid_from_proto(request.session_id),
                start_time=start_time,
                end_time=end_time,
                before=paging.before(pager.last(request.page_token)),
                limit=paging.page_size(request.page_size),
            )
        return pb.ListAuditEventsResponse(
            audit_events=map(convert.event_to_proto, events),
            next_page_token=pager.token(events[-1].time.isoformat(), str(events[-1].event_id)) if more else "",
        )


def _time(request: pb.ListAuditEventsRequest, field: Literal["start_time", "end_time"]) -> datetime | None:
    return convert.time_from_proto(getattr(request, field), field=field) if request.HasField(field) else None
