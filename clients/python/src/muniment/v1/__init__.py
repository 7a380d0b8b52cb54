"""Generated from the contract."""
