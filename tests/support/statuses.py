"""The status that an error becomes, and the code of each reason."""

from __future__ import annotations

import re

from google.rpc import error_details_pb2, status_pb2

from muniment.v1 import note_pb2, passage_pb2
from muniment_server.monitor import status
from tests.support.words import ROOT

DETAILS = (
    error_details_pb2.ErrorInfo,
    error_details_pb2.BadRequest,
    error_details_pb2.RetryInfo,
    note_pb2.BudgetExceeded,
    passage_pb2.ImportProgress,
)

_EXAMPLE = re.compile(r"// Example, (?P<code>[A-Z_]+):[^;]*?ERROR_REASON_(?P<reason>[A-Z_]+) =")
_CONTRACT = (ROOT / "proto" / "muniment" / "v1" / "error.proto").read_text("utf-8")
CODES = {match["reason"]: match["code"] for match in _EXAMPLE.finditer(_CONTRACT)}
"""The code of each reason, as its comment in the contract says."""


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
