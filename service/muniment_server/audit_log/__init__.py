"""The audit log, as a host reads it."""
