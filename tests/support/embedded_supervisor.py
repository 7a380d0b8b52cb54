"""Serve a directory until standard input ends: `supervisor.py DIRECTORY OPTIONS`.

Says in one line of JSON how that went: the pid of Postgres and a greeting from it, or the error.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import psycopg

from muniment_server.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError


def main(directory: str, options: dict[str, str]) -> None:
    bindir = Path(options["bindir"]) if "bindir" in options else None
    server = EmbeddedPostgres(Path(directory), roles=("muniment_owner",), durable=False, bindir=bindir)
    try:
        server.start()
    except EmbeddedPostgresError as error:
        print(json.dumps({"error": type(error).__name__, "message": str(error)}), flush=True)
        return
    with server_session(server) as connection:
        row = connection.execute("SELECT current_database() || ' ' || lower('É')").fetchone()
    print(json.dumps({"pid": server.pid, "greeting": row and row[0]}), flush=True)
    sys.stdin.read()
    server.stop()


def server_session(server: EmbeddedPostgres) -> psycopg.Connection[tuple[str, ...]]:
    return psycopg.connect(server.conninfo(user="postgres"))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
