"""Keyed memories."""
