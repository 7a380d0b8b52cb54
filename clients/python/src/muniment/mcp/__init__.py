"""Muniment for models: an MCP server on standard input and output, for one session.

Started as `muniment-mcp`, or as `muniment mcp` with the extra `cli`. It needs the extra `muniment[mcp]`, and reads the
session from its environment:

- MUNIMENT_ADDRESS: `host:port` or `unix:/path`.
- MUNIMENT_TOKEN: the session's token. A host key is not accepted: a model acts as one session.
- MUNIMENT_TLS_CA: the authority to trust. Without it, gRPC's default authorities, and no TLS to this machine.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Mapping

from muniment._channel import TLS, is_local
from muniment._connect import connect
from muniment.session import SessionClient


def main() -> None:
    """`muniment-mcp`."""
    argparse.ArgumentParser(
        prog="muniment-mcp",
        description="An MCP server on standard input and output: the memory of one session, for a model.",
        epilog="MUNIMENT_ADDRESS and MUNIMENT_TOKEN say which session, MUNIMENT_TLS_CA whom to trust over TLS.",
    ).parse_args()
    run()


def run() -> None:
    """Serve the session that the environment names until standard input ends. SystemExit: it cannot be served."""
    try:
        session = session_of(os.environ)
    except (ValueError, OSError) as error:
        sys.exit(f"{error}\nMUNIMENT_ADDRESS, MUNIMENT_TOKEN and MUNIMENT_TLS_CA say which session is served, and how")
    try:
        server = importlib.import_module("muniment.mcp.server")
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != "mcp":
            raise
        sys.exit("the MCP SDK is missing: pip install 'muniment[mcp]'")
    with session:
        server.serve(session)


def session_of(environment: Mapping[str, str]) -> SessionClient:
    """A client of the session that *environment* names. ValueError: it names none. OSError: the CA cannot be read."""
    address, token, ca = (
        environment.get(name, "").strip() for name in ("MUNIMENT_ADDRESS", "MUNIMENT_TOKEN", "MUNIMENT_TLS_CA")
    )
    if not token:
        raise ValueError("a session's token is needed: see `muniment session open`")
    return connect(address, token=token, tls=TLS(ca) if ca else not is_local(address))
