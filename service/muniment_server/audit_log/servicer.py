"""AuditService."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from muniment.v1 import audit_service_pb2 as pb
from muniment.v1 import audit_service_pb2_grpc
from muniment_server.audit_log import repository, wire
from muniment_server.domain.classification import Classification, Integrity, Label
from muniment_server.items import paging
from muniment_server.items.wire import time_from_proto, uuid_from_proto
from muniment_server.monitor.call import CallContext


class AuditServicer(audit_service_pb2_grpc.AuditServiceServicer):
    """The audit log of one host's tenant, up to its ceiling."""

    def ListAuditEvents(self, request: pb.ListAuditEventsRequest, context: CallContext) -> pb.ListAuditEventsResponse:
        start_time = _time(request, "start_time")
        end_time = _time(request, "end_time")
        pager = context.pager(request.agent_id, request.session_id, str(start_time), str(end_time))
        with context.audit_scope() as scope:
            events, more = repository.list_events(
                scope,
                agent_id=request.agent_id or None,
                session_id=uuid_from_proto(request.session_id),
                start_time=start_time,
                end_time=end_time,
                before=paging.before(pager.last(request.page_token)),
                limit=paging.page_size(request.page_size),
            )
        return pb.ListAuditEventsResponse(
            audit_events=map(wire.event_to_proto, events),
            next_page_token=pager.token(*wire.position_of(events[-1])) if more else "",
        )

    def GetAuditCheckpoint(
        self, request: pb.GetAuditCheckpointRequest, context: CallContext
    ) -> pb.GetAuditCheckpointResponse:
        label = Label.of(Classification(request.classification), Integrity(request.integrity))
        with context.host_scope() as scope:
            scope.require_ceiling(Classification.RESTRICTED)
        with context.audit_scope() as scope:
            checkpoint = repository.get_checkpoint(scope, label)
        return pb.GetAuditCheckpointResponse(checkpoint=wire.checkpoint_to_proto(label, checkpoint))


def _time(request: pb.ListAuditEventsRequest, field: Literal["start_time", "end_time"]) -> datetime | None:
    return time_from_proto(getattr(request, field), field=field) if request.HasField(field) else None
