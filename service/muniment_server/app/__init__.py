"""The composition root: from a configuration to running processes."""
