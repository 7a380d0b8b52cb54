"""The versions of an item, of any kind."""
