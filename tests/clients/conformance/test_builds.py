"""A runner is built anew where something changed, and only there."""

from __future__ import annotations

import os

import pytest

from tests.clients.conformance.clients import ROOT, Client


@pytest.fixture
def client(tmp_path):
    built, marker = tmp_path / "runner", tmp_path / "made"
    return Client(name="go", needs=(), build=("touch", str(built), str(marker)), built=str(built), command=())


def test_it_is_built_once(client, tmp_path):
    client.make()
    (tmp_path / "made").unlink()
    client.make()

    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("source", ["clients/go/session.go", "proto/muniment/v1/memory.proto"])
def test_it_is_built_anew_if_a_source_is_newer(client, tmp_path, source):
    client.make()
    (tmp_path / "made").unlink()
    before = (ROOT / source).stat().st_mtime - 1
    os.utime(client.built, (before, before))
    client.make()

    assert (tmp_path / "made").exists()
