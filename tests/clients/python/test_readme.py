"""The README's code runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import muniment
from tests.clients.python.scripted import over_budget
from tests.support.examples import HOST_KEY, NOTE_ID

README = Path(__file__).parents[3] / "clients/python/README.md"


def blocks(language: str) -> list[str]:
    """The code blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)


def run(code: str, **names: object) -> None:
    exec(compile(code, str(README), "exec"), names)  # names are global: an example may have functions


@pytest.mark.parametrize("number", [0, 2], ids=["the tour", "the prompt"])
def test_a_program_runs_by_itself_and_prints_what_it_says(running, monkeypatch, capsys, number):
    monkeypatch.setenv("MUNIMENT_ADDRESS", running.address)
    monkeypatch.setenv("MUNIMENT_HOST_KEY", HOST_KEY)

    run(blocks("python")[number])

    assert blocks("text")[number] == capsys.readouterr().out


@pytest.mark.parametrize(
    "number", [1, 3, 4, 5], ids=["asyncio", "the taint changes", "long conversations", "many memories"]
)
def test_a_program_runs_over_a_real_server_and_prints_what_it_says(service, monkeypatch, capsys, number):
    monkeypatch.setenv("MUNIMENT_ADDRESS", service.address)
    monkeypatch.setenv("MUNIMENT_HOST_KEY", service.host().token)

    run(blocks("python")[number])

    assert blocks("text")[number] == capsys.readouterr().out


def test_the_errors_run(server, session):
    run(blocks("python")[6], session=session, muniment=muniment)

    assert len(server.requests("SaveMemory")) == 1


def test_a_refused_note_makes_room_for_itself(server, session):
    server.script("AddNote", over_budget())

    run(blocks("python")[7], session=session, muniment=muniment)

    (request,) = server.requests("EditNotes")
    assert [edit.WhichOneof("edit") for edit in request.edits] == ["delete", "add"]
    assert request.edits[0].delete.note_id == NOTE_ID


def test_the_tls_runs(tmp_path, monkeypatch):
    """As far as it goes without that server."""
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
    for name in ("me.pem", "me.key"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)

    run(blocks("python")[8], key=HOST_KEY, muniment=muniment)
