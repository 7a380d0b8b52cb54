"""Archival passages."""
