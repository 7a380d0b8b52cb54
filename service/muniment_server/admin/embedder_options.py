"""The options of models at addresses. `serve` and `reindex` share those of the embedder."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from muniment.cli.failures import Failure, report_file_errors
from muniment_server.admin.levels import LEVEL
from muniment_server.domain.classification import Classification
from muniment_server.embedder.remote.configuration import (
    MAX_DIMENSIONS,
    RemoteConfig,
    RemoteConfigError,
    RerankerConfig,
)


def with_embedder(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a model at an address, and an argument *remote*: that model, or None."""

    @click.option(
        "--embedder",
        metavar="URL",
        help="Also embed with the model at this address, as https://HOST/v1 or unix:/PATH: a server of /v1/embeddings.",
    )
    @click.option("--embedder-model", metavar="NAME", help="The name of that model, as its server knows it.")
    @click.option(
        "--embedder-key-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The key that its server wants, in a file.",
    )
    @click.option(
        "--embedder-ceiling",
        type=LEVEL,
        help="Send it nothing above this level. The default is restricted for an address on this machine, and public "
        "for any other.",
    )
    @click.option(
        "--embedder-dimensions",
        type=click.IntRange(1, MAX_DIMENSIONS),
        metavar="N",
        help="Keep the first N components of its embeddings, of a model that was trained for that. The default is all.",
    )
    @functools.wraps(command)
    def with_options(
        *,
        embedder: str | None,
        embedder_model: str | None,
        embedder_key_file: Path | None,
        embedder_ceiling: Classification | None,
        embedder_dimensions: int | None,
        **arguments: Any,
    ) -> None:
        with _report_errors():
            remote = RemoteConfig.of_options(
                embedder, embedder_model, embedder_key_file, embedder_ceiling, embedder_dimensions
            )
        command(remote=remote, **arguments)

    return with_options


def with_reranker(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a reranker at an address, and an argument *reranker*: that, or None."""

    @click.option(
        "--reranker",
        metavar="URL",
        help="Have the best 50 matches of a search ordered at this address, as https://HOST or unix:/PATH: a server of "
        "/rerank.",
    )
    @click.option("--reranker-model", metavar="NAME", help="The name of its model, for a server that wants one.")
    @click.option(
        "--reranker-key-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The key that its server wants, in a file.",
    )
    @click.option(
        "--reranker-ceiling",
        type=LEVEL,
        help="Send it nothing above this level. The default is restricted for an address on this machine, and public "
        "for any other.",
    )
    @functools.wraps(command)
    def with_options(
        *,
        reranker: str | None,
        reranker_model: str | None,
        reranker_key_file: Path | None,
        reranker_ceiling: Classification | None,
        **arguments: Any,
    ) -> None:
        with _report_errors():
            config = RerankerConfig.of_options(reranker, reranker_model, reranker_key_file, reranker_ceiling)
        command(reranker=config, **arguments)

    return with_options


@contextmanager
def _report_errors() -> Iterator[None]:
    """Turn an error in the options into a Failure."""
    try:
        with report_file_errors():
            yield
    except RemoteConfigError as error:
        raise Failure(str(error)) from None
