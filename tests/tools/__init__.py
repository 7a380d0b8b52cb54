"""Commands that say something about the code."""
