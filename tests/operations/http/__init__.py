"""`muniment http`: what it forwards, what it refuses, and what it does while the server is away."""
