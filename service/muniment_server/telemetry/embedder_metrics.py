"""The metrics of the embedder."""

from __future__ import annotations

from prometheus_client import Counter

from muniment_server.telemetry.metrics import REGISTRY, gauge

EMBEDDING_QUEUE = gauge("muniment_embedding_queue", "Chunks without an embedding, up to 100,000.", "level")
EMBEDDING_SINCE = gauge(
    "muniment_embedding_queue_since_timestamp_seconds",
    "When the queue was last seen empty; now if it is empty.",
    "level",
)
EMBEDDING_FAILURES = Counter(
    "muniment_embedding_failures",
    "Chunks for which the built-in model failed twice, which are found by words alone.",
    registry=REGISTRY,
)
_SENT = ("address", "level", "what")
"""What: a query, a chunk, or the constant sentences that are sent first, which count as PUBLIC."""
REMOTE_TEXTS = Counter(
    "muniment_remote_embedder_texts", "Texts sent to the model at an address.", _SENT, registry=REGISTRY
)
REMOTE_BYTES = Counter(
    "muniment_remote_embedder_bytes", "Bytes of texts sent to the model at an address.", _SENT, registry=REGISTRY
)
REMOTE_FAILURES = Counter(
    "muniment_remote_embedder_failures", "Requests to that model without a usable answer.", _SENT, registry=REGISTRY
)
REMOTE_MODEL = gauge(
    "muniment_remote_embedder",
    "1 for the model at an address, and its ceiling.",
    "address",
    "ceiling",
    of_all="livemax",
)
REMOTE_SINCE = gauge(
    "muniment_remote_embedding_queue_since_timestamp_seconds",
    "When the queue of that model was last seen empty; now if it is empty.",
    "level",
    of_all="livemax",
)
REMOTE_QUEUE = gauge(
    "muniment_remote_embedding_queue", "Chunks without an embedding by the model at an address, up to 100,000.", "level"
)
RERANKER = gauge(
    "muniment_reranker", "1 for the reranker at an address, and its ceiling.", "address", "ceiling", of_all="livemax"
)
RERANKER_REQUESTS = Counter(
    "muniment_reranker_requests",
    "Searches sent to the reranker at an address, and how that ended: reranked or failed.",
    ("address", "level", "outcome"),
    registry=REGISTRY,
)
RERANKER_TEXTS = Counter(
    "muniment_reranker_texts", "Texts sent to the reranker at an address.", ("address", "level"), registry=REGISTRY
)
RERANKER_BYTES = Counter(
    "muniment_reranker_bytes",
    "Bytes of texts and queries sent to the reranker at an address.",
    ("address", "level"),
    registry=REGISTRY,
)
