"""Core blocks, own and shared."""
