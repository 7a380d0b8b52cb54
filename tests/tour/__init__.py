"""The README, run."""
