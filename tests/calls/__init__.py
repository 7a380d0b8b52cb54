"""What each RPC does, and what stands between a call and its effect."""
