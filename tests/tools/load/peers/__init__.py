"""What Muniment is compared with: programs for an environment of their own, and a server in Go."""
