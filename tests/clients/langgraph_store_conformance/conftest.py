"""A database for LangGraph's PostgresStore."""

from __future__ import annotations

import psycopg
import pytest

from muniment_server.embedded_postgres import EmbeddedPostgres


@pytest.fixture(scope="session")
def store_database(postgres: EmbeddedPostgres) -> str:
    """How to connect to a database of its own."""
    with psycopg.connect(postgres.conninfo(user="postgres", dbname="postgres"), autocommit=True) as admin:
        admin.execute("CREATE DATABASE langgraph")
    return postgres.conninfo(user="postgres", dbname="langgraph")
