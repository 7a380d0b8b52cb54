"""How fast the service is, as ratios to baselines measured in the same run: `make bench`."""
