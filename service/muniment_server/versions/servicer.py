"""VersionService."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.v1 import version_pb2, version_service_pb2_grpc
from muniment.v1 import version_service_pb2 as pb
from muniment_server.domain.classification import Label
from muniment_server.domain.items import ItemKind
from muniment_server.items import item_store, paging
from muniment_server.items.rows import ItemVersion
from muniment_server.items.wire import joined, label_to_proto, name_from_proto, time_to_proto
from muniment_server.monitor.call import CallContext

_BEGINNING = [str(2**31 - 1)] * len(Label)
"""The position before the first page: at each level, above every revision."""


class VersionServicer(version_service_pb2_grpc.VersionServiceServicer):
    """The versions of one item, as one session sees them."""

    def ListVersions(self, request: pb.ListVersionsRequest, context: CallContext) -> pb.ListVersionsResponse:
        kind = ItemKind(request.kind)
        name = name_from_proto(request.name, kind)
        pager = context.pager(kind, name, request.owner_agent_id, request.with_revisions, len(Label))
        owner, *after = pager.last(request.page_token) or [request.owner_agent_id, *_BEGINNING]
        with context.session_scope() as scope:
            versions, more = item_store.list_versions(
                scope,
                kind,
                name,
                owner_agent_id=owner or None,
                with_revisions=request.with_revisions,
                after=list(map(int, after)),
                limit=paging.page_size(request.page_size),
            )
        if not versions and not request.page_token:
            raise item_store.NOT_FOUND[kind]
        return pb.ListVersionsResponse(
            versions=map(_version_to_proto, versions),
            classification=joined(version.label for version in versions),
            next_page_token=pager.token(versions[-1].owner_agent_id, *_listed(after, versions)) if more else "",
        )


def _listed(after: Sequence[str], page: Sequence[ItemVersion]) -> list[str]:
    """The last revision that was listed of each level, from the lowest: *after* and the *page* that follows it."""
    last = {version.label: str(version.revision) for version in page}
    return [last.get(label, before) for label, before in zip(Label, after, strict=True)]


def _version_to_proto(version: ItemVersion) -> version_pb2.ItemVersion:
    return version_pb2.ItemVersion(
        content=version.content,
        tags=version.tags,
        **label_to_proto(version.label),
        etag=paging.etag(version.version),
        update_time=time_to_proto(version.update_time),
        expire_time=time_to_proto(version.expire_time),
        replaced=version.replaced,
    )
