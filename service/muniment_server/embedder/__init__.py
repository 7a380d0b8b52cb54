"""The embedder: embeds chunks and queries with the built-in model, and keeps lists of embeddings that are alike."""
