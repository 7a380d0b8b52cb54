"""`muniment mcp`."""

from __future__ import annotations

import click

from muniment.mcp import run, run_http


@click.command
@click.option("--http", metavar="HOST:PORT", help="Serve over HTTP here: on loopback, or with TLS.")
@click.option("--tls-cert", metavar="FILE", help="With --http: the certificate chain to serve with.")
@click.option("--tls-key", metavar="FILE", help="With --http: its key.")
@click.option("--name", "names", metavar="NAME", multiple=True, help="With --http: a name that clients reach it by.")
def mcp(http: str | None, tls_cert: str | None, tls_key: str | None, names: tuple[str, ...]) -> None:
    """Serve one session to a model: an MCP server on standard input and output, until the input ends.

    The session is that of MUNIMENT_TOKEN at MUNIMENT_ADDRESS; MUNIMENT_TLS_CA names the authority to trust with TLS.
    With --http, many sessions are served: each request carries the token of its session as bearer.
    Requires the extra: pip install 'muniment[mcp]'. Without the extra `cli` it is `muniment-mcp`.

    \b
    Examples:
      export MUNIMENT_TOKEN=$(muniment session open alice --taint internal --quiet)
      muniment mcp
      muniment mcp --http 127.0.0.1:8080
    """
    if http is None:
        run()
    else:
        run_http(http, certificate=tls_cert, key=tls_key, names=names)
