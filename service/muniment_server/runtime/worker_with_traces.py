"""A worker that exports traces: the supervisor starts it instead of `worker` with `--traces`.

The only process that loads OpenTelemetry (extra `tracing`), so that nothing of it is loaded without the option.
"""

from __future__ import annotations

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

from muniment_server.runtime import worker
from muniment_server.telemetry.otlp import OpenTelemetryTracer


def main() -> None:
    """Serve as a worker does, and export traces."""
    worker.main(lambda: OpenTelemetryTracer(OTLPSpanExporter()))


if __name__ == "__main__":
    main()
