"""The item store: one way to write and read items of every kind."""
