"""The processes of a server (supervisor, workers, embedder) and its configuration."""
