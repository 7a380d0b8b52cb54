"""Reads the metrics of a running server, and says what to do if they cannot be read."""

from __future__ import annotations

import functools
import http.client
import shlex
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from muniment.cli.failures import Failure, report_file_errors
from muniment_server.admin import development
from muniment_server.admin.database import data_dir_option
from muniment_server.admin.readings import Reading
from muniment_server.runtime.configuration import ConfigError, is_private, split_address
from muniment_server.runtime.metrics_endpoint import PATH, read_token

_FILE = click.Path(path_type=Path)
_SECONDS = 10.0
"""How long a server may say nothing."""
_MAX_BYTES = 8 * 1024 * 1024
_NAME_IT = "give the --metrics of `muniment serve` here, too, or set MUNIMENT_METRICS"


_UNREACHABLE: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    (
        (FileNotFoundError, ConnectionRefusedError),
        "no server serves metrics at {address}",
        "is it running? start it: {start}",
    ),
    ((PermissionError,), "the metrics at {address} are another account's", "run this as that account"),
    (
        (TimeoutError,),
        f"the server at {{address}} has not answered for {_SECONDS:g} s",
        "its log says more; restart it if that says nothing either",
    ),
    (
        (ssl.SSLCertVerificationError,),
        "the certificate of {address} is not trusted: {error}",
        "give the authority that signed it with --tls-ca FILE (MUNIMENT_TLS_CA)",
    ),
    ((ssl.SSLError,), "the server at {address} does not use TLS", "omit --tls-ca, and unset MUNIMENT_TLS_CA"),
    (
        (ConnectionError, http.client.HTTPException),
        "the server at {address} ended the connection",
        "does it use TLS? give --tls-ca FILE; otherwise try again: it serves eight readers at once",
    ),
)
"""Why a server cannot be asked, and what to do."""


def _checked_address(ctx: click.Context, param: click.Parameter, address: str | None) -> str | None:
    if address and not address.startswith("unix:"):
        try:
            split_address(address)
        except ConfigError as error:
            raise click.BadParameter(str(error)) from None
    return address


def with_metrics(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that name the metrics of a server, and an argument *metrics* to read them."""

    @click.option(
        "--metrics",
        metavar="ADDRESS",
        envvar="MUNIMENT_METRICS",
        show_envvar=True,
        callback=_checked_address,
        help="Where the server serves its metrics: unix:PATH or HOST:PORT. The default is what `serve --dev` wrote in "
        "--data-dir.",
    )
    @click.option(
        "--metrics-token-file",
        type=_FILE,
        metavar="FILE",
        envvar="MUNIMENT_METRICS_TOKEN_FILE",
        show_envvar=True,
        help="The bearer token that `serve` requires of readers.",
    )
    @click.option(
        "--tls-ca",
        type=_FILE,
        metavar="FILE",
        envvar="MUNIMENT_TLS_CA",
        help="Use TLS, and trust a server whose certificate this authority signed. In PEM.",
    )
    @data_dir_option
    @functools.wraps(command)
    def with_options(
        *,
        metrics: str | None,
        metrics_token_file: Path | None,
        tls_ca: Path | None,
        data_dir: Path,
        **arguments: Any,
    ) -> None:
        with report_file_errors():
            address = _named_address(metrics, data_dir)
            token = _token(metrics_token_file) if metrics_token_file is not None else None
            start = f"muniment serve --metrics {metrics}" if address == metrics else _start_in(data_dir)
            command(metrics=MetricsReader(address, token, _tls(address, tls_ca), start), **arguments)

    return with_options


def _named_address(metrics: str | None, data_dir: Path) -> str:
    """The address on the command line, that of the data directory on the command line, or the environment's."""
    source = click.get_current_context().get_parameter_source
    names_directory = source("data_dir") is ParameterSource.COMMANDLINE
    if names_directory and source("metrics") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--metrics and --data-dir both name the server: give only one")
    return metrics if metrics and not names_directory else _address_in(data_dir)


def _address_in(data_dir: Path) -> str:
    file = data_dir / development.FILE
    try:
        found = development.metrics_address(file)
    except FileNotFoundError:
        advice = f"to try Muniment out, start one: {_start_in(data_dir)}. For any other server, {_NAME_IT}"
        raise Failure(f"no server is named, and there is no {file}", advice) from None
    if found is None:
        raise Failure(
            f"{file} names no metrics: the server that wrote it serves none, or the file was changed",
            f"start the server again with --metrics unix:PATH, and {_NAME_IT}",
        )
    return found


def _start_in(data_dir: Path) -> str:
    """How to start the server in development that a data directory is of."""
    return f"muniment serve --dev --data-dir {shlex.quote(str(data_dir))} (or make run)"


def _token(file: Path) -> str:
    try:
        return read_token(file)
    except ConfigError as error:
        raise Failure(str(error)) from None


def _tls(address: str, authority: Path | None) -> ssl.SSLContext | None:
    """How to reach *address*. None: in the clear, which is for this machine only, as for the server."""
    if address.startswith("unix:") or (authority is None and is_private(address)):
        return None
    try:
        return ssl.create_default_context(cafile=authority)
    except ssl.SSLError:
        raise Failure(
            f"{authority} does not contain a certificate", "give the authority's certificate, in PEM"
        ) from None
    except OSError as error:  # which names no file
        raise OSError(error.errno, error.strerror, str(authority)) from None


@dataclass(frozen=True, slots=True)
class MetricsReader:
    """Reads the metrics at an address."""

    address: str
    _token: str | None = field(repr=False)
    _tls: ssl.SSLContext | None
    _start: str
    """The command that starts the server, for whoever finds it stopped."""

    def read(self) -> Reading:
        """The metrics of now. Raises Failure."""
        response, body = self._fetch()
        if response.status == http.client.UNAUTHORIZED:
            raise self._refused()
        with self.no_metrics():
            if response.status != http.client.OK or len(body) > _MAX_BYTES:
                raise ValueError(response.status)
            return Reading.parse(body.decode())

    @contextmanager
    def no_metrics(self) -> Iterator[None]:
        """Raise Failure for what reading metrics raises, if something else serves there."""
        try:
            yield
        except (ValueError, LookupError, ArithmeticError, OSError):  # what the parser raises depends on the text
            raise Failure(
                f"what {self.address} serves are not the metrics of a server",
                "give the address that `muniment serve` says after `Metrics are at`",
            ) from None

    def _fetch(self) -> tuple[http.client.HTTPResponse, bytes]:
        connection = self._connection()
        try:
            connection.request("GET", PATH, headers={"Authorization": f"Bearer {self._token}"} if self._token else {})
            with connection.getresponse() as response:
                body = response.read(_MAX_BYTES + 1)
                if response.length and len(body) <= _MAX_BYTES:
                    raise http.client.IncompleteRead(body)
                return response, body
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self.address.startswith("unix:"):
            return _UnixConnection(self.address.removeprefix("unix:"))
        host, port = split_address(self.address)
        if self._tls is not None:
            return http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=self._tls)
        return http.client.HTTPConnection(host, port, timeout=_SECONDS)

    def _refused(self) -> Failure:
        if self._token is None:
            return Failure(
                f"the metrics at {self.address} need a token",
                "give --metrics-token-file FILE, or set MUNIMENT_METRICS_TOKEN_FILE",
            )
        return Failure(
            f"the server at {self.address} refuses the token",
            "give the file that `muniment serve --metrics-token-file` was started with",
        )

    def _unreachable(self, error: Exception) -> Failure:
        what, advice = next(
            ((what, advice) for kinds, what, advice in _UNREACHABLE if isinstance(error, kinds)),
            ("{address} cannot be reached: {error}", "check the address: unix:PATH or HOST:PORT"),
        )
        given = {"address": self.address, "start": self._start, "error": getattr(error, "verify_message", error)}
        return Failure(what.format(**given), advice.format(**given))


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_SECONDS)
        self.sock.connect(self._path)
