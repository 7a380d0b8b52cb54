"""The taint of conversations as a small machine: every state is visited, and the real server is compared with it."""
