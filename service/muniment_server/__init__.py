"""The Muniment server: memory for agents that keeps to information-flow levels."""
