"""Notes in two budgeted tiers."""
