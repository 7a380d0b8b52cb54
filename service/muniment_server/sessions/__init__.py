"""Sessions and the taint of their conversations."""
