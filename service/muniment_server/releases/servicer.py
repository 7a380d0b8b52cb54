"""ReleaseService."""

from __future__ import annotations

from uuid import UUID

from muniment.v1 import release_service_pb2 as pb
from muniment.v1 import release_service_pb2_grpc
from muniment_server.domain import text
from muniment_server.items import paging
from muniment_server.monitor.call import CallContext
from muniment_server.releases import desk, repository, wire


class ReleaseServicer(release_service_pb2_grpc.ReleaseServiceServicer):
    """The release desk, as one host uses it."""

    def RequestRelease(self, request: pb.RequestReleaseRequest, context: CallContext) -> pb.RequestReleaseResponse:
        release = desk.request(context, wire.wanted_from_proto(request))
        return pb.RequestReleaseResponse(release=wire.release_to_proto(release))

    def ApproveRelease(self, request: pb.ApproveReleaseRequest, context: CallContext) -> pb.ApproveReleaseResponse:
        release = desk.approve(context, UUID(request.release_id), bytes.fromhex(request.content_sha256))
        return pb.ApproveReleaseResponse(release=wire.release_to_proto(release))

    def RejectRelease(self, request: pb.RejectReleaseRequest, context: CallContext) -> pb.RejectReleaseResponse:
        reason = text.plain(request.reason, field="reason")
        release = desk.reject(context, UUID(request.release_id), reason)
        return pb.RejectReleaseResponse(release=wire.release_to_proto(release))

    def GetRelease(self, request: pb.GetReleaseRequest, context: CallContext) -> pb.GetReleaseResponse:
        shown = desk.get(context, UUID(request.release_id))
        kind = shown.release.kind
        return pb.GetReleaseResponse(
            release=wire.release_to_proto(shown.release),
            text=None if shown.source is None else wire.text_to_proto(kind, shown.source),
            replaced=None if shown.replaced is None else wire.replaced_to_proto(kind, shown.replaced),
        )

    def ListReleases(self, request: pb.ListReleasesRequest, context: CallContext) -> pb.ListReleasesResponse:
        pager = context.pager(request.agent_id, request.include_closed)
        with context.host_scope() as scope:
            releases, more = repository.list_releases(
                scope,
                agent_id=request.agent_id or None,
                include_closed=request.include_closed,
                before=paging.before(pager.last(request.page_token)),
                limit=paging.page_size(request.page_size),
            )
        last = releases[-1] if more else None
        return pb.ListReleasesResponse(
            releases=map(wire.release_to_proto, releases),
            next_page_token=pager.token(last.create_time.isoformat(), str(last.release_id)) if last else "",
        )
