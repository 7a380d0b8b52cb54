"""The stage itself: what it says where a scene goes wrong."""

from __future__ import annotations

from unittest.mock import Mock

import grpc
import pytest

from tests.proof.golden import stage


def test_a_session_that_was_refused_fails_with_the_refusal(monkeypatch):
    """A scene uses the session at once, and would fail with an AttributeError far from the call."""
    refused = (grpc.StatusCode.NOT_FOUND, "there is no such agent", (), b"")
    monkeypatch.setattr(stage, "_called", lambda *_: refused)
    played = stage.Stage(Mock(), "agents")

    with pytest.raises(pytest.fail.Exception) as failed:
        played.open(1, "bob")

    assert "no session of bob: the last call of agents was refused" in str(failed.value)
    assert "=== OpenSession" in str(failed.value)
    assert "NOT_FOUND" in str(failed.value)
    assert "there is no such agent" in str(failed.value)
