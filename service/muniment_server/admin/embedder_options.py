"""The options of models at addresses. `serve` and `reindex` share those of the embedder."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import click

from muniment_server.admin.database import LEVEL, Option, report_database_errors, with_options
from muniment_server.embedder.remote.configuration import (
    MAX_DIMENSIONS,
    RemoteConfig,
    RerankerConfig,
)

_Command: TypeAlias = Callable[..., None]
_FILE = click.Path(path_type=Path)


def with_embedder(command: _Command) -> _Command:
    """Give a command the options of a model at an address, and an argument *remote*: that model, or None."""
    dimensions = click.option(
        "--embedder-dimensions",
        type=click.IntRange(1, MAX_DIMENSIONS),
        metavar="N",
        help="Keep the first N components of its embeddings, of a model that was trained for that. The default is all.",
    )
    return _with_model(
        command, RemoteConfig, "remote",
        "Also embed with the model at this address, as https://HOST/v1 or unix:/PATH: a server of /v1/embeddings.",
        "The name of that model, as its server knows it.",
        dimensions,
    )  # fmt: skip


def with_reranker(command: _Command) -> _Command:
    """Give a command the options of a reranker at an address, and an argument *reranker*: that, or None."""
    return _with_model(
        command, RerankerConfig, "reranker",
        "Have the best 50 matches of a search ordered at this address, as https://HOST or unix:/PATH: a server of "
        "/rerank.",
        "The name of its model, for a server that wants one.",
    )  # fmt: skip


def _with_model(
    command: _Command,
    kind: type[RemoteConfig],
    argument: str,
    url_help: str,
    model_help: str,
    *more: Option,
) -> _Command:
    option = kind.endpoint.option
    name = option.removeprefix("--")

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        url = arguments.pop(name)
        given = {each: arguments.pop(f"{name}_{each}", None) for each in ("model", "key_file", "ceiling", "dimensions")}
        with report_database_errors():
            config = kind.of_options(url, **given)
        command(**arguments, **{argument: config})

    ceiling_help = (
        "Send it nothing above this level. The default is restricted for an address on this machine, and public for "
        "any other."
    )
    options: list[Option] = [
        click.option(option, metavar="URL", help=url_help),
        click.option(f"{option}-model", metavar="NAME", help=model_help),
        click.option(
            f"{option}-key-file", type=_FILE, metavar="FILE", help="The key that its server wants, in a file."
        ),
        click.option(f"{option}-ceiling", type=LEVEL, help=ceiling_help),
        *more,
    ]
    return with_options(run, options)
