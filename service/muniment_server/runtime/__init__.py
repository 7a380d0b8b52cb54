"""Processes: supervisor, workers, embedder, configuration."""
