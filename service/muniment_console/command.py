"""`muniment console`."""

from __future__ import annotations

import importlib
import secrets
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from muniment import CeilingExceeded, Classification, HostClient, PrincipalNotAllowed
from muniment.cli.connect import ServerOptions, find_server, open_host, with_server_options
from muniment.cli.failures import Failure
from muniment_http.options import require_extra
from muniment_server.runtime.certificates import checked_tls
from muniment_server.runtime.configuration import ConfigError, is_private, split_address
from muniment_server.runtime.metrics_endpoint import read_token

_FILE = click.Path(path_type=Path)
_LOCAL = ("127.0.0.1", "localhost", "[::1]")


@click.command
@click.option("--listen", metavar="HOST:PORT", default="127.0.0.1:8090", show_default=True, help="Where to listen.")
@click.option("--host", "names", metavar="NAME", multiple=True, help="A name of it, such as a proxy's. Repeatable.")
@click.option("--cert", metavar="FILE", type=_FILE, help="The certificate to show to browsers, in PEM.")
@click.option("--key", metavar="FILE", type=_FILE, help="Its key, in PEM.")
@click.option("--password-file", metavar="FILE", type=_FILE, help="The password to ask for. The default is a new one.")
@click.option("--export", metavar="FILE", type=_FILE, help="An exported audit log, to compare the log with.")
@click.option("--metrics", metavar="unix:PATH", help="Where the server serves its metrics, for the page `Status`.")
@with_server_options
def console(
    options: ServerOptions,
    listen: str,
    names: Sequence[str],
    cert: Path | None,
    key: Path | None,
    password_file: Path | None,
    export: Path | None,
    metrics: str | None,
) -> None:
    """Show agents, conversations, the audit log and the server on web pages, until SIGTERM or Ctrl-C.

    The pages are read-only, and show what the host key may see. Each look at items is audited. The browser asks for a
    password, with any name; a terminal shows a new one. Add the port to a name in --host unless it is 80 or 443.
    --export names a file that `muniment audit export` writes for the tenant of the key. Needs the extra `console`.

    \b
    Examples:
      muniment console
      muniment console --export audit.jsonl --metrics unix:.muniment/metrics.sock
      muniment console --host console.example --password-file /etc/muniment/console-password
    """
    require_extra("console", "starlette")
    try:
        _check(listen, cert, key, metrics)
        password = _password(password_file)
    except ConfigError as error:
        raise Failure(str(error)) from None
    endpoint = find_server(options)
    with open_host(endpoint, options.tls) as host:
        _check_key(host, export)
        application = importlib.import_module("muniment_console.application")
        made = application.Console(
            host, endpoint.address, export, Path(metrics.removeprefix("unix:")) if metrics else None
        )
        made.serve(
            application.Listener(*split_address(listen), cert, key),
            _hosts(listen, names),
            password,
            lambda: _report(f"http{'s' if cert else ''}://{listen}", None if password_file else password),
        )


def _check(listen: str, certificate: Path | None, key: Path | None, metrics: str | None) -> None:
    """Raise ConfigError, Failure or OSError if the options cannot be served."""
    if (certificate is None) != (key is None):
        raise ConfigError("--cert and --key require each other")
    if certificate is None and not is_private(listen):
        raise ConfigError(
            f"refusing to listen in the clear on {listen}: give --cert and --key, or listen on 127.0.0.1 behind a proxy"
        )
    if listen.startswith("unix:") or split_address(listen)[1] == 0:
        raise ConfigError("--listen needs a host and a port, such as 127.0.0.1:8090")
    if metrics is not None and not metrics.startswith("unix:"):
        raise ConfigError("--metrics needs a socket, unix:PATH: read a port with Prometheus")
    if certificate and key:
        checked_tls(certificate, key, None)


def _password(file: Path | None) -> str:
    """The password in *file*, or a new one."""
    if file is not None:
        return read_token(file)
    if not sys.stderr.isatty():
        raise Failure(
            "there is no terminal to show a password on",
            "write one to a file, (umask 077; openssl rand -hex 32 > FILE), and name it: --password-file FILE",
        )
    return secrets.token_urlsafe(18)


def _check_key(host: HostClient, export: Path | None) -> None:
    """Check that the server accepts the key and, with an export, that the key sees all events.

    A key that may not list agents is accepted: other pages may be for it. Raises MunimentError or Failure.
    """
    with suppress(PrincipalNotAllowed):
        next(host.list_agents(page_size=1), None)
    if export is not None:
        try:
            host.get_audit_checkpoint(Classification.RESTRICTED)
        except (CeilingExceeded, PrincipalNotAllowed):
            raise Failure(
                "with this key, the log cannot be compared with an export: there may be events above its ceiling",
                "omit --export, or use a key that was created with --ceiling restricted, for the audit log at least",
            ) from None


def _hosts(listen: str, names: Sequence[str]) -> list[str]:
    """The Host headers that are accepted. Browsers omit the ports 80 and 443."""
    port = split_address(listen)[1]
    local = [f"{name}:{port}" for name in _LOCAL] if is_private(listen) else []
    return [listen, *local, *names]


def _report(url: str, password: str | None) -> None:
    click.echo(f"The console is at {url}", err=True)
    if password is not None:
        click.echo(f"Password, until it ends: {password} (any name)", err=True)
