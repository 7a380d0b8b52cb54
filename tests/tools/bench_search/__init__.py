"""How fast search is and what it costs, from ten thousand items to a million: `make bench-search`."""
