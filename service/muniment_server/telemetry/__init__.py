"""What a server tells its operator: metrics and log lines. Never content, keys, tags, queries or tokens."""
