"""That the laws hold whatever happens, and that tests of them can fail."""
