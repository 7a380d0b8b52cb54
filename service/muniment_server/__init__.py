"""The Muniment server: memory for AI agents with information-flow control."""
