"""The release desk. Programs release nothing, since that is meant to flow down: what they ask of it is out of form."""

from __future__ import annotations

from typing import NoReturn

from google.protobuf.message import Message

from muniment.v1 import release_service_pb2
from tests.proof.noninterference.model.ground import Ground
from tests.proof.noninterference.values import Refused


class Desk(Ground):
    """ReleaseService. tests/calls/releases/test_two_worlds.py plays it with releases that are held fixed."""

    def _RequestRelease(self, tenant: str, ceiling: int, request: Message) -> NoReturn:
        raise Refused("FIELD_INVALID")

    _ApproveRelease = _RejectRelease = _GetRelease = _RequestRelease

    def _ListReleases(self, tenant: str, ceiling: int, request: release_service_pb2.ListReleasesRequest) -> NoReturn:
        raise Refused("PAGE_TOKEN_INVALID")
