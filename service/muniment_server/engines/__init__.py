"""What a Postgres needs differently from plain Postgres: a package for each engine, see `postgres/engine.py`."""
