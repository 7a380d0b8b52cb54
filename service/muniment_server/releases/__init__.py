"""The release desk, for hosts."""
