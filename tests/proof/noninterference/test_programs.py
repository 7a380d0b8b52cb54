"""Programs call all that a session may call, and the model knows every answer. Without servers."""

from __future__ import annotations

import pytest

from tests.proof.noninterference.model import Learned, Model
from tests.proof.noninterference.programs.operations import Pen, Seen
from tests.proof.noninterference.programs.writer import Writer
from tests.proof.noninterference.replay import BEGINNING
from tests.support.methods import FOR_SESSIONS

_DRAWS = 4000
"""The RPC that is drawn least is one call in a hundred."""


@pytest.fixture(scope="module")
def drawn() -> set[str]:
    """The RPCs that the writer of programs draws for a session."""
    hosts = {("acme", 4): "host", ("other", 4): "host"}
    writer = Writer("draws", hosts, model := Model(Learned()), Seen(), observer=4)
    pen = Pen(writer.rng, model, Seen(), token="nobody", time=BEGINNING)
    return {writer._about(pen)[0] for _ in range(_DRAWS)}


@pytest.mark.parametrize("rpc", sorted(FOR_SESSIONS))
def test_every_rpc_of_sessions_is_called_in_the_two_worlds(drawn: set[str], rpc: str):
    assert rpc in drawn, f"no program calls {rpc}: draw it in tests/proof/noninterference/programs/<noun>.py"
    assert hasattr(Model, f"_{rpc}"), (
        f"the model does not know {rpc}: add it to tests/proof/noninterference/model/<noun>.py"
    )
