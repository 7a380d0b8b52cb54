"""Search: chunks, terms, embeddings, ranking."""
