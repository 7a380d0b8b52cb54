"""The clients in six languages, and what is built on them."""
