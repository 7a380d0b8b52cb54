"""Makes the metrics of one process. `runtime.metrics_endpoint` adds up those of all processes and serves them.

If PROMETHEUS_MULTIPROC_DIR is set when this module is first imported, values are kept in files in that directory. A
metric without labels exists, with the value 0, as soon as its module is imported: each kind of process has its own.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

REGISTRY = CollectorRegistry()
"""The metrics of this process."""
OTHERS = "others"
"""The label of all tenants that have none of their own."""


def gauge(name: str, text: str, *labels: str, of_all: str = "livesum") -> Gauge:
    """A gauge that is served as the sum over all live processes, or as their *of_all*."""
    return Gauge(name, text, labels, registry=REGISTRY, multiprocess_mode=of_all)  # type: ignore[arg-type]
