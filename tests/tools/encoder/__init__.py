"""Makes the graph of the built-in embedding model: `make encoder`."""
