"""The reference monitor: everything that must be trusted."""
