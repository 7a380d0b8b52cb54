"""The status that an error becomes."""

from __future__ import annotations

from google.rpc import error_details_pb2, status_pb2

from muniment.v1 import note_pb2, passage_pb2
from muniment_server.monitor import status

DETAILS = (
    error_details_pb2.ErrorInfo,
    error_details_pb2.BadRequest,
    error_details_pb2.RetryInfo,
    note_pb2.BudgetExceeded,
    passage_pb2.ImportProgress,
)


def details_of(error, **named):
    """The details of the status for *error*, by type."""
    trailing = dict(status.status_of(error, **named).trailing_metadata)
    packed = status_pb2.Status.FromString(trailing["grpc-status-details-bin"])
    found = {}
    for kind in DETAILS:
        for detail in packed.details:
            message = kind()
            if detail.Unpack(message):
                found[kind] = message
    assert len(found) == len(packed.details)
    return found
