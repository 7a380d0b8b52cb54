"""`muniment mcp`."""

from __future__ import annotations

import click

from muniment.cli.parameters import LEVEL, TEXT
from muniment.mcp import ONLY_WITH_HTTP, WantedConversation, run, run_http
from muniment.values import Classification


@click.command
@click.option("--agent", metavar="NAME", type=TEXT, help="Open a conversation of this agent, and keep it open.")
@click.option("--taint", type=LEVEL, help="With --agent: its level, if not that of the conversation.")
@click.option(
    "--conversation", metavar="ID", type=TEXT, help="With --agent: the one to go on with. Otherwise a new one."
)
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
def mcp(
    agent: str | None,
    taint: Classification | None,
    conversation: str | None,
    http: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    names: tuple[str, ...],
) -> None:
    """Serve one session to a model: an MCP server on standard input and output, until the input ends.

    MUNIMENT_ADDRESS names the server, MUNIMENT_TOKEN the session, MUNIMENT_TLS_CA the authority to trust over TLS.

    With --agent, it opens a conversation with MUNIMENT_HOST_KEY, and renews it before it expires. The key reaches
    everything up to its ceiling: use one of the lowest ceiling, made with --integrity untrusted.

    With --http, it serves many sessions, until it is stopped: each request carries the token of its session as bearer.

    It needs the extra `mcp`. Without the extra `cli`, it is `muniment-mcp`.

    \b
    Examples:
      export MUNIMENT_TOKEN=$(muniment session open alice --taint internal --quiet)
      muniment mcp
      muniment mcp --agent alice --conversation chat-42
      muniment mcp --http 127.0.0.1:8080
    """
    try:
        wanted = WantedConversation.of(agent, taint, conversation, http=http is not None)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if http is None:
        if tls_cert or tls_key or names:
            raise click.UsageError(ONLY_WITH_HTTP)
        run(wanted)
    else:
        run_http(http, certificate=tls_cert, key=tls_key, names=names)
