"""Shows in the metrics how many chunks wait to be embedded, and since when. Part of the embedder."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from muniment_server.domain.classification import Label
from muniment_server.domain.errors import MunimentError
from muniment_server.embedder.labels import LabelsInUse
from muniment_server.embedder.queue import queue_length, remote_queue_length
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.driver_errors import location_of
from muniment_server.postgres.placement import Databases, PlacedDatabase
from muniment_server.postgres.pool import Database
from muniment_server.telemetry import embedder_metrics as metrics

_LOG = logging.getLogger("muniment.embedder")
_MEASURE_SECONDS = 15.0
"""How often the queue is measured."""
NextModel: TypeAlias = Callable[[Label], int | None]
"""The number of the model at an address that embeds the texts of a level after the built-in one, if there is one."""


def measure_queue(databases: Databases, next_model: NextModel) -> None:
    """Show in the metrics how many chunks are queued at each level, for as long as the process runs."""
    for level in (level for level in Label if not level.is_trusted):
        metrics.EMBEDDING_SINCE.labels(level.name).set_to_current_time()
    lengths: dict[Label, dict[str, tuple[int, int]]] = {level: {} for level in Label}
    labels = LabelsInUse()
    while True:
        for level in Label:
            if _are_in_use(labels, databases, level):
                measure_level(databases, level, next_model(level), lengths[level])
        time.sleep(_MEASURE_SECONDS)


def _are_in_use(labels: LabelsInUse, databases: Databases, level: Label) -> bool:
    """Whether any server has something of *level*. One that is away is not asked."""
    with suppress(MunimentError):
        return any(labels.has(placed.database, level) for placed in databases)
    return False


def measure_level(databases: Databases, level: Label, model: int | None, lengths: dict[str, tuple[int, int]]) -> None:
    """Show how many chunks of *level* are queued, for the built-in model and for the *model* at an address.

    *lengths* has both numbers for each server. A server that cannot be asked keeps those that it had: it must neither
    hold up the metrics of the others nor seem to have no queue. If none can be asked, all metrics stay as they are.
    """
    answers = [_measure_server(placed, level, model, lengths) for placed in databases]
    if not any(answers):
        return
    count, waiting = (sum(each) for each in zip(*lengths.values(), strict=True))
    metrics.EMBEDDING_QUEUE.labels(level.name).set(count)
    if not count:
        metrics.EMBEDDING_SINCE.labels(level.name).set_to_current_time()
    if model is not None:
        metrics.REMOTE_QUEUE.labels(level.name).set(waiting)
        if not waiting:
            metrics.REMOTE_SINCE.labels(level.name).set_to_current_time()


def _measure_server(
    placed: PlacedDatabase, level: Label, model: int | None, lengths: dict[str, tuple[int, int]]
) -> bool:
    """Measure the queues of one server. False if it could not be asked."""
    try:
        lengths[placed.name] = _queue_lengths(placed.database, level, model)
    except MunimentError:  # the metrics of the database say that it is away
        return False
    except Exception as error:  # noqa: BLE001 - whatever it is, the next measurement must not be lost
        cause = f"{type(error).__name__}\n{location_of(error)}"
        _LOG.error("the %s queue%s was not measured: %s", level.name, placed.suffix, cause)
        return False
    return True


def _queue_lengths(database: Database, level: Label, model: int | None) -> tuple[int, int]:
    """How many chunks are queued for the built-in model, and for the *model* at an address."""
    with database.connection(level.role, Deadline(_MEASURE_SECONDS)) as connection:
        return queue_length(connection), 0 if model is None else remote_queue_length(connection, model)
