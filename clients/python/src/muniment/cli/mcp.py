"""`muniment mcp`."""

from __future__ import annotations

import click

from muniment.mcp import ONLY_WITH_HTTP, run, run_http


@click.command
@click.option("--http", metavar="HOST:PORT", help="Serve over HTTP here: on loopback, or with TLS.")
@click.option("--tls-cert", metavar="FILE", help="With --http: the certificate chain to serve with, in PEM.")
@click.option("--tls-key", metavar="FILE", help="With --http: its private key, in PEM.")
@click.option(
    "--name",
    "names",
    metavar="NAME",
    multiple=True,
    help="With --http: another name by which clients reach it. May be repeated.",
)
def mcp(http: str | None, tls_cert: str | None, tls_key: str | None, names: tuple[str, ...]) -> None:
    """Serve one session to a model: an MCP server on standard input and output, until the input ends.

    MUNIMENT_ADDRESS names the server, MUNIMENT_TOKEN the session, MUNIMENT_TLS_CA the authority to trust over TLS.

    With --http, it serves many sessions, until it is stopped: each request carries the token of its session as bearer.

    It needs the extra `mcp`. Without the extra `cli`, it is `muniment-mcp`.

    \b
    Examples:
      export MUNIMENT_TOKEN=$(muniment session open alice --taint internal --quiet)
      muniment mcp
      muniment mcp --http 127.0.0.1:8080
    """
    if http is None:
        if tls_cert or tls_key or names:
            raise click.UsageError(ONLY_WITH_HTTP)
        run()
    else:
        run_http(http, certificate=tls_cert, key=tls_key, names=names)
