"""The metrics of the embedder."""

from __future__ import annotations

from muniment_server.telemetry.metrics import gauge

EMBEDDING_QUEUE = gauge("muniment_embedding_queue", "Chunks without an embedding, up to 100,000.", "level")
EMBEDDING_SINCE = gauge(
    "muniment_embedding_queue_since_timestamp_seconds",
    "When the queue was last seen empty; now if it is empty.",
    "level",
)
