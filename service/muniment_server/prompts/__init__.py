"""The prompt of a session."""
