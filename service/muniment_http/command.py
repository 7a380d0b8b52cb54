"""`muniment http`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from muniment._channel import security
from muniment.cli.failures import Failure, report_file_errors
from muniment_http.options import Options, require_extra
from muniment_server.runtime.certificates import checked_tls
from muniment_server.runtime.configuration import ConfigError, is_private, split_address

_FILE = click.Path(path_type=Path)


@click.command
@click.option(
    "--listen", metavar="HOST:PORT", default="127.0.0.1:8080", show_default=True, help="The address to listen on."
)
@click.option(
    "--server",
    metavar="ADDRESS",
    envvar="MUNIMENT_ADDRESS",
    default="127.0.0.1:50051",
    show_default=True,
    show_envvar=True,
    help="The server to forward calls to: HOST:PORT or unix:PATH.",
)
@click.option(
    "--server-ca",
    metavar="FILE",
    type=_FILE,
    envvar="MUNIMENT_TLS_CA",
    show_envvar=True,
    help="The authority of the server's certificate. Without it the server is called in the clear, on this machine.",
)
@click.option("--tls-cert", metavar="FILE", type=_FILE, help="The certificate to show to callers, in PEM.")
@click.option("--tls-key", metavar="FILE", type=_FILE, help="Its key, in PEM.")
@click.option(
    "--origin",
    "origins",
    metavar="URL",
    multiple=True,
    help="An origin whose pages may call, such as https://app.example. Repeatable. The default is none.",
)
def http(
    listen: str,
    server: str,
    server_ca: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    origins: Sequence[str],
) -> None:
    """Forward calls by HTTP to a running server, until SIGTERM or Ctrl-C: JSON, the Connect protocol, and gRPC-Web.

    It holds no credential: callers send theirs, as with gRPC. Each method has a path. Needs the extra `http`.

    \b
    Examples:
      muniment http
      muniment http --listen 127.0.0.1:8080 --origin http://localhost:5173
      muniment http --listen 0.0.0.0:443 --tls-cert server.pem --tls-key server.key
      printf 'authorization: Bearer %s' "$MUNIMENT_HOST_KEY" | curl -H @- --json '{}' \\
          http://127.0.0.1:8080/muniment.v1.AgentService/ListAgents
    """
    with _report_errors():
        options = _checked(Options(*split_address(listen), server, server_ca, tls_cert, tls_key, origins), listen)
        where = f"http{'s' if tls_cert else ''}://{listen} for the server at {server}"
        serving = importlib.import_module("muniment_http.serving")
        serving.serve(options, on_ready=lambda: click.echo(f"Forwards calls at {where}", err=True))


@contextmanager
def _report_errors() -> Iterator[None]:
    """Turn an error in the options, a file or an address into a Failure."""
    try:
        with report_file_errors():
            yield
    except ConfigError as error:
        raise Failure(str(error)) from None


def _checked(options: Options, listen: str) -> Options:
    """*options*, if they can be served. Raises ConfigError or OSError."""
    certificate, key = options.certificate, options.key
    if (certificate is None) != (key is None):
        raise ConfigError("--tls-cert and --tls-key require each other")
    if certificate is None and not is_private(listen):
        raise ConfigError(
            f"refusing to listen in the clear on {listen}: give --tls-cert and --tls-key, or listen on 127.0.0.1"
        )
    if options.port == 0:
        raise ConfigError("--listen needs a port, such as 127.0.0.1:8080")
    require_extra()
    if certificate is not None and key is not None:
        checked_tls(certificate, key, None)
    try:
        security(options.server, options.tls)
    except ValueError as error:
        raise Failure(f"the server at {options.server} cannot be called: {error}") from None
    return options
