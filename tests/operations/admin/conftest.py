"""Servers and data directories for the operators' commands."""

from tests.support.command_fixtures import (
    agent,
    data_dir,
    dev,
    folder,
    made_before,
    muniment,
    pair_of_workers,
    root_folder,
    serving,
)
from tests.support.external_postgres import other_postgres, passfile, url

__all__ = [
    "agent",
    "data_dir",
    "dev",
    "folder",
    "made_before",
    "muniment",
    "other_postgres",
    "pair_of_workers",
    "passfile",
    "root_folder",
    "serving",
    "url",
]
