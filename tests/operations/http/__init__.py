"""`muniment http`: what it refuses, what it leaves to the server, and what becomes of it when the server is away."""
