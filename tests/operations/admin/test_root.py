"""Root's Postgres runs as another account, which may not enter every directory."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from muniment_server.runtime.databases import cluster_directory

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root's Postgres runs as another account")


@pytest.fixture
def closed():
    """A directory that only root may enter."""
    folder = Path(tempfile.mkdtemp())
    yield folder / "data"
    shutil.rmtree(folder)


def test_a_closed_data_directory_has_a_link_to_one_that_may_be_entered(closed):
    kept = cluster_directory(closed)
    try:
        assert kept.parent == Path("/var/lib/muniment")
        assert (closed / "postgres").resolve() == kept == cluster_directory(closed)
    finally:
        kept.rmdir()


def test_a_removed_data_directory_is_created_again(closed):
    """What was there before is not adopted."""
    before = cluster_directory(closed)
    (closed / "postgres").unlink()
    after = cluster_directory(closed)
    try:
        assert after != before
    finally:
        before.rmdir()
        after.rmdir()
