"""Postgres: named queries, migrations, the connection of each level, and what one principal may do through it."""
