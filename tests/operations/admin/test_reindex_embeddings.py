"""`muniment reindex --embeddings`: embeds what is stored with a model at an address, before a server uses it."""

from __future__ import annotations

import json
import subprocess
import threading

import psycopg
import pytest

import muniment
from muniment_server.admin.development import FILE
from muniment_server.domain.classification import Classification
from muniment_server.embedded_postgres import conninfo_of_running
from muniment_server.embedder.remote.everyday_sentences import SENTENCES
from muniment_server.embedder.remote.reindexing import ReindexingError, embed_stored
from muniment_server.postgres.pool import operator_conninfo
from muniment_server.runtime import databases
from muniment_server.search.embeddings import model_number
from tests.support.commands import COMMAND, environment_in, objects, run, wait_until
from tests.support.embedders import Quick, embed_all, quick
from tests.support.embedding_server import answer_well, embedding_server
from tests.support.labels import untrusted
from tests.support.model_server import answer_body
from tests.support.services import serving as serving_in_process

_CATS = 40
_SLOW = 60.0


@pytest.fixture
def model():
    with embedding_server() as server:
        yield server


@pytest.fixture
def served(data_dir, serving):
    """A database with cats at PUBLIC and an item at each level above, embedded by the built-in model. A server runs."""
    server = serving("--dev", "--data-dir", ".muniment", embeds=True)
    server.read_to_the_last_line()
    host = host_of(data_dir, server)
    host.create_agent("alice")
    session = host.open_session("alice", muniment.Classification.PUBLIC)
    for number in range(_CATS):
        session.save_memory(f"cat-{number}", f"a cat {number}")
    for level in list(Classification)[1:]:
        host.open_session("alice", muniment.Classification(int(level))).save_memory(level.name, f"a dog {level.name}")
    conninfo = conninfo_of_running(data_dir / databases.CLUSTER, user=databases.SUPERUSER)
    assert conninfo is not None
    with psycopg.connect(conninfo, autocommit=True) as admin:
        wait_until(lambda: built_in_embeddings(admin) == [_CATS, 1, 1, 1], "the built-in model has embedded", _SLOW)
        yield server, admin


@pytest.fixture
def without_pauses(monkeypatch):
    """Between failures it pauses for a minute in all."""
    monkeypatch.setattr("time.sleep", lambda _: None)


def embed(model, conninfo, *, name="stub", removes_others=False):
    """What `muniment reindex --embeddings` does."""
    list(embed_stored(conninfo, model.config(Classification.INTERNAL, name), removes_others=removes_others))


@pytest.fixture
def stored(database):
    """A connection to a database with the same, without a server."""
    with (
        serving_in_process(database, embed=quick) as service,
        psycopg.connect(database.admin, autocommit=True) as admin,
    ):
        for number in range(_CATS):
            service.session(Classification.PUBLIC).save_memory(key=f"cat-{number}", content=f"a cat {number}")
        for level in list(Classification)[1:]:
            service.session(level).save_memory(key=level.name, content=f"a dog {level.name}")
        embed_all(database, Quick())
        yield admin


def host_of(data_dir, server):
    return muniment.connect(server.address, host_key=json.loads((data_dir / FILE).read_text())["host_key"])


def built_in_embeddings(admin):
    return [counted(admin, level, "meaning", "embedder IS NOT NULL") for level in Classification]


def counted(admin, level, table="remote_embedding", condition="signs IS NOT NULL"):
    query = f"SELECT count(*) FROM {untrusted(level).role}.{table} WHERE {condition}"
    return admin.execute(query.encode()).fetchone()[0]


def command_of(model, *more, name="stub", ceiling="internal"):
    options = ("--embedder", model.url, "--embedder-model", name, "--embedder-ceiling", ceiling)
    return ("reindex", "--embeddings", *options, *more, "--data-dir", ".muniment", "--json")


def test_a_server_that_starts_with_the_model_searches_with_it_and_sends_no_chunk_again(
    served, model, folder, data_dir, serving
):
    server, _ = served
    rows = objects(run(folder, *command_of(model)))
    received = "\n".join(model.texts)
    server.stop()
    model.requests.clear()
    options = ("--embedder", model.url, "--embedder-model", "stub", "--embedder-ceiling", "internal")
    server = serving("--dev", "--data-dir", ".muniment", *options, embeds=True)
    session = host_of(data_dir, server).open_session("alice", muniment.Classification.PUBLIC)
    wait_until(
        lambda: session.search_memories("feline").results and model.texts, "the model at the address is asked", _SLOW
    )

    assert rows == [
        {"classification": "PUBLIC", "embedded": _CATS, "removed": 0},
        {"classification": "INTERNAL", "embedded": 1, "removed": 0},
    ]
    assert received.count("a cat") == _CATS
    assert [level.name in received for level in list(Classification)[1:]] == [True, False, False]
    assert set(model.texts) == {"feline"}


def test_when_it_is_killed_the_next_run_goes_on(served, model, folder):
    _, admin = served
    second = threading.Event()
    go_on = threading.Event()

    def answer(handler, texts):
        if len(model.texts) > 20:
            second.set()
            go_on.wait(_SLOW)
        answer_well(handler, texts)

    model.answer = answer
    arguments = [*COMMAND, *command_of(model)]
    with subprocess.Popen(arguments, cwd=folder, env=environment_in(folder), stdout=subprocess.DEVNULL) as process:
        assert second.wait(_SLOW)
        process.kill()
    go_on.set()
    before = counted(admin, Classification.PUBLIC)
    wait_until(lambda: not connections_of_the_command(admin), "the command has ended")
    sent = len(model.texts)
    model.answer = answer_well
    rows = objects(run(folder, *command_of(model)))

    assert 0 < before < _CATS
    assert rows[0] == {"classification": "PUBLIC", "embedded": _CATS - before, "removed": 0}
    assert counted(admin, Classification.PUBLIC) == _CATS
    assert len(model.texts[sent:]) == _CATS - before + 1
    assert objects(run(folder, *command_of(model)))[0]["embedded"] == 0


def connections_of_the_command(admin):
    return admin.execute(
        "SELECT FROM pg_stat_activity"
        " WHERE usename = current_user AND pid <> pg_backend_pid() AND query ~ 'remote_embedding'"
    ).fetchall()


def test_other_embeddings_are_removed_on_request_only(served, model, folder):
    """Above the ceiling, those of the same model are removed, too: searches use none there."""
    _, admin = served
    old, new = model_number("stub", 384), model_number("other", 384)

    def models():
        return [
            {row[0] for row in admin.execute(f"SELECT model FROM {untrusted(level).role}.remote_embedding".encode())}
            for level in Classification
        ]

    objects(run(folder, *command_of(model)))
    objects(run(folder, *command_of(model, name="other")))
    before = models()
    rows = objects(run(folder, *command_of(model, "--remove-others", name="other", ceiling="public")))

    assert before == [{old, new}, {old, new}, set(), set()]
    assert models() == [{new}, set(), set(), set()]
    assert [(row["classification"], row["removed"]) for row in rows] == [("PUBLIC", _CATS), ("INTERNAL", 2)]
    assert counted(admin, Classification.PUBLIC) == _CATS


def test_chunks_for_which_the_model_fails_keep_no_other_waiting(served, model, folder):
    """They stay queued, and nothing that searches use meanwhile is removed."""
    _, admin = served

    def answer(handler, texts):
        if any("a cat 7" in text for text in texts):
            handler.close_connection = True  # without an answer, as when the server crashes
        else:
            answer_well(handler, texts)

    model.answer = answer
    done = run(folder, *command_of(model, "--remove-others"))

    assert done.returncode != 0
    assert "failed for some chunks (1), which stay queued" in done.stderr
    assert counted(admin, Classification.PUBLIC) == _CATS - 1
    assert counted(admin, Classification.INTERNAL) == 1


@pytest.mark.parametrize("broken", ["model", "locks"])
def test_nothing_is_removed_unless_all_is_embedded(stored, model, without_pauses, broken):
    """The model fails once it is known, or other transactions lock all that is queued."""
    embed(model, operator_conninfo(stored.info.dsn))
    new = model_number("other", 384)
    known = []

    def answer(handler, texts):
        known.extend(texts)
        if broken == "model" and len(known) > len(SENTENCES):
            return answer_body(handler, b"", 503)
        if broken == "locks" and len(known) > len(SENTENCES):
            locking.execute("SELECT FROM muniment_public.remote_embedding FOR UPDATE")
        return answer_well(handler, texts)

    model.answer = answer
    failure = "it answered HTTP 503" if broken == "model" else "7 times in a row"
    with psycopg.connect(stored.info.dsn) as locking, pytest.raises(ReindexingError, match=failure):
        embed(model, operator_conninfo(stored.info.dsn), name="other", removes_others=True)

    assert counted(stored, Classification.PUBLIC, condition=f"model <> {new}") == _CATS
    assert counted(stored, Classification.PUBLIC, condition=f"model = {new} AND signs IS NOT NULL") == 0


def test_a_text_that_no_longer_waits_is_not_sent_again(stored, model, without_pauses):

    def answer(handler, texts):
        if any("dog INTERNAL" in text for text in texts):
            stored.execute("DELETE FROM muniment_internal.remote_embedding")
            return answer_body(handler, b"", 400)
        return answer_well(handler, texts)

    model.answer = answer
    embed(model, operator_conninfo(stored.info.dsn))

    assert sum("dog INTERNAL" in text for text in model.texts) == 1


def test_a_model_that_is_away_is_reported_at_once(served, model, folder):
    model.answer = lambda handler, _: answer_body(handler, b"", 503)
    done = run(folder, *command_of(model))

    assert done.returncode == 1
    assert "failed: it answered HTTP 503" in done.stderr
    assert len(model.requests) == 1


def test_options_that_contradict_are_refused(dev, model):
    options = ("--embedder", model.url, "--embedder-model", "stub", "--data-dir", ".muniment")
    for arguments, reason in (
        (("--embeddings",), "--embeddings and --embedder require each other"),
        (options, "--embeddings and --embedder require each other"),
        (("--remove-others",), "--remove-others requires both"),
        (("--embeddings", *options, "--tenant", "acme"), "omit --tenant and --agent"),
    ):
        done = run(dev.folder, "reindex", *arguments)
        assert done.returncode == 1
        assert reason in done.stderr
