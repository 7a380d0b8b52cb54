"""The metrics of workers.

The names and labels of the calls are those of go-grpc-prometheus, so that its dashboards and rules fit. Every label has
few values, whatever callers do. `service/docs/threats.md` says what a reader of the metrics learns.
"""

from __future__ import annotations

import threading

from prometheus_client import Counter, Histogram

from muniment_server.telemetry.metrics import OTHERS, REGISTRY, gauge

_METHOD = ("grpc_type", "grpc_service", "grpc_method")
_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0)
"""Seconds."""
_MAX_TENANTS = 1_000

STARTED = Counter("grpc_server_started", "Calls that arrived.", _METHOD, registry=REGISTRY)
HANDLED = Counter("grpc_server_handled", "Calls that ended.", (*_METHOD, "grpc_code"), registry=REGISTRY)
SECONDS = Histogram(
    "grpc_server_handling_seconds",
    "Seconds from the arrival of a call until its answer was ready.",
    _METHOD,
    buckets=_BUCKETS,
    registry=REGISTRY,
)
REFUSED = Counter(
    "muniment_calls_refused",
    "Calls that ended with an error.",
    ("grpc_method", "grpc_code", "reason"),
    registry=REGISTRY,
)
CUT_OFF = Counter("muniment_callers_cut_off", "Callers that neither sent nor read for too long.", registry=REGISTRY)
CALLS_OF_TENANT = Counter("muniment_tenant_calls", "Calls that ended, by tenant.", ("tenant",), registry=REGISTRY)
"""By number. Those beyond the first thousand that a process sees share a label."""
IN_FLIGHT = gauge("muniment_calls_in_flight", "Calls that run, wait, or whose answers are unread.", "pool")
QUEUED = gauge("muniment_calls_queued", "Calls that wait for their turn.", "pool")
RUNNING = gauge("muniment_calls_running", "Calls that have their turn.", "pool")
CALL_BYTES = gauge("muniment_call_bytes", "Bytes of requests and answers in memory.", "pool")
NEARLY_FULL = Counter(
    "muniment_nearly_full_seconds",
    "Seconds in which a call found its pool nearly full: then whether it is let in depends on the calls of others.",
    ("pool",),
    registry=REGISTRY,
)
UNVERIFIED = gauge("muniment_calls_unverified", "Calls whose tokens are being looked up.")
WORKERS = gauge("muniment_workers", "Workers that listen, whose gate is open, and that are ready.", "state")
"""With a label, it is not there while a worker starts: the others serve meanwhile."""
GATE_PROBLEMS = gauge("muniment_gate_problems", "What keeps the gate closed: see the log.", "kind", of_all="livemax")
DATABASE_ANSWERED = gauge(
    "muniment_database_answered_timestamp_seconds",
    "When the database last answered the worker that has waited longest.",
    of_all="livemin",
)
DATABASE_ANSWERED.set_to_current_time()  # a worker that starts has not waited yet
AUDIT_SEALED = gauge(
    "muniment_audit_sealed_timestamp_seconds",
    "The time up to which recent audit events of a server are sealed.",
    "server",
    of_all="livemax",
)
DISK_FULL = gauge("muniment_disk_full", "1 if a worker stores no texts: the disk is full.", of_all="livemax")

_calls_of_tenants: dict[int, Counter] = {}
_lock = threading.Lock()


def calls_of_tenant(tenant: int) -> Counter:
    """The calls of the tenant with this number."""
    if (found := _calls_of_tenants.get(tenant)) is not None:
        return found
    with _lock:
        if len(_calls_of_tenants) >= _MAX_TENANTS:
            return CALLS_OF_TENANT.labels(OTHERS)
        return _calls_of_tenants.setdefault(tenant, CALLS_OF_TENANT.labels(str(tenant)))
