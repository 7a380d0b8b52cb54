"""`muniment mcp`."""

from __future__ import annotations

import click

from muniment.mcp import run


@click.command
def mcp() -> None:
    """Serve one session to a model: an MCP server on standard input and output, until the input ends.

    The session is that of MUNIMENT_TOKEN at MUNIMENT_ADDRESS; MUNIMENT_TLS_CA names the authority to trust with TLS.
    Requires the extra: pip install 'muniment[mcp]'. Without the extra `cli` it is `muniment-mcp`.

    \b
    Examples:
      export MUNIMENT_TOKEN=$(muniment session open alice --taint internal --quiet)
      muniment mcp
    """
    run()
