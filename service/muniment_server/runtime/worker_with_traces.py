"""A worker that exports traces: the supervisor starts it instead of `worker` with `--traces`.

The only process that loads OpenTelemetry (extra `tracing`), so that nothing of it is loaded without the option.
"""

from __future__ import annotations

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

from muniment_server.monitor.queries import AUDIT_QUERIES, HOST_QUERIES, SESSION_QUERIES
from muniment_server.runtime import worker
from muniment_server.telemetry.otlp import OpenTelemetryTracer

_UNTRACED = {"record_read"}
"""Only sessions at levels where reads are audited run it: its span would tell a level, which no log does."""


def main() -> None:
    """Serve as a worker does, and export traces."""
    worker.main(lambda: OpenTelemetryTracer(OTLPSpanExporter(), statement_names()))


def statement_names() -> dict[str, str]:
    """The names of the statements that get a span, by their texts. A pipelined transaction waits in its COMMIT."""
    queries = {**SESSION_QUERIES, **HOST_QUERIES, **AUDIT_QUERIES}
    return {text: name for name, text in queries.items() if name not in _UNTRACED} | {"COMMIT": "commit"}


if __name__ == "__main__":
    main()
