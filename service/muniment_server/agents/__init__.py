"""Agents, as a host manages them."""
