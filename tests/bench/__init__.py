"""How fast the service is, told as ratios to baselines measured in the same run: `make bench`."""
