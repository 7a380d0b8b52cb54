"""Servers and data directories for the operators' commands."""

from tests.support.command_fixtures import (
    agent,
    data_dir,
    dev,
    folder,
    made_before,
    muniment,
    root_folder,
    serving,
)

__all__ = ["agent", "data_dir", "dev", "folder", "made_before", "muniment", "root_folder", "serving"]
