"""What service/deploy ships, built and started."""
