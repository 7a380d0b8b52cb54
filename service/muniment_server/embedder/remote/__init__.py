"""Models at addresses: they embed and rerank what may be sent to them."""
