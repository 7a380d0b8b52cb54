"""Postgres: connections logged in as a role, deadlines, named queries, transactions, migrations."""
