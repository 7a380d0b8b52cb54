"""VersionService."""

from __future__ import annotations

from muniment.v1 import version_pb2, version_service_pb2_grpc
from muniment.v1 import version_service_pb2 as pb
from muniment_server.domain.items import ItemKind
from muniment_server.items import item_store
from muniment_server.items.paging import etag
from muniment_server.items.rows import ItemVersion
from muniment_server.items.wire import joined, level_to_proto, name_from_proto, time_to_proto
from muniment_server.monitor.call import CallContext


class VersionServicer(version_service_pb2_grpc.VersionServiceServicer):
    """The versions of one item, as one session sees them."""

    def ListVersions(self, request: pb.ListVersionsRequest, context: CallContext) -> pb.ListVersionsResponse:
        kind = ItemKind(request.kind)
        name = name_from_proto(request.name, kind)
        with context.session_scope() as scope:
            versions = item_store.list_versions(scope, kind, name, owner_agent_id=request.owner_agent_id or None)
        return pb.ListVersionsResponse(
            versions=map(_version_to_proto, versions),
            classification=joined(version.level for version in versions),
        )


def _version_to_proto(version: ItemVersion) -> version_pb2.ItemVersion:
    return version_pb2.ItemVersion(
        content=version.content,
        tags=version.tags,
        classification=level_to_proto(version.level),
        etag=etag(version.version),
        update_time=time_to_proto(version.update_time),
        expire_time=time_to_proto(version.expire_time),
    )
