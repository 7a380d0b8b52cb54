"""What a scenario expects, and what it does not let pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients.conformance import transcripts
from tests.clients.conformance.matching import Match
from tests.clients.conformance.scenarios import Malformed, from_document

UUID = "5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77"
OTHER_UUID = "6f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77"
TOKEN = "mun_s_1_" + "x" * 43 + "_" + "0" * 8


def differences(expected, actual):
    return list(Match().differences(expected, actual, "it"))


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"key": "a"}, {"key": "a", "content": "more than was written"}),
        ({"items": [{"key": "a"}]}, {"items": [{"key": "a", "content": "x"}]}),
        ({"items": [], "token": "", "count": 0, "on": False, "level": "CLASSIFICATION_UNSPECIFIED"}, {}),
        ({"closeTime": None}, {}),
        ({"on": False}, {"on": False}),
        ({"id": "<uuid>"}, {"id": UUID}),
        ({"time": "<time>"}, {"time": "2026-11-22T02:21:19.340908Z"}),
        ({"score": "<score>"}, {"score": 0.25}),
        ([{"id": "<uuid one>"}, {"id": "<uuid two>"}, "<uuid one>"], [{"id": UUID}, {"id": OTHER_UUID}, UUID]),
    ],
)
def test_what_fits(expected, actual):
    assert differences(expected, actual) == []


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"key": "a"}, {"key": "b"}),
        ({"key": "a"}, {}),
        ({"items": []}, {"items": [{}]}),
        ({"items": [{}]}, {"items": []}),
        ({"items": [{}]}, {"items": [{}, {}]}),
        ({"items": ["a", "b"]}, {"items": ["b", "a"]}),
        ({"token": ""}, {"token": "x"}),
        ({"closeTime": None}, {"closeTime": "2026-11-22T02:21:19Z"}),
        ({"on": 1}, {"on": True}),
        ({"count": "3"}, {"count": 3}),
        ({"id": "<uuid>"}, {"id": "no uuid"}),
        ({"id": "<uuid>"}, {"id": {}}),
        ({"id": "<text>"}, {"id": ""}),
        (["<uuid one>", "<uuid one>"], [UUID, OTHER_UUID]),
        (["<uuid one>", "<uuid two>"], [UUID, UUID]),
        ({"id": "${never_saved}"}, {"id": UUID}),
    ],
)
def test_what_does_not_fit(expected, actual):
    assert differences(expected, actual) != []


DOCUMENT = {
    "title": "A title",
    "why": "A reason.",
    "agents": ["ada"],
    "sessions": {"low": "ada at PUBLIC", "high": "ada at INTERNAL in talk"},
    "steps": [
        {"as": "low", "name": "first", "call": "S.Save", "request": {"content": "<3 times ab>"}},
        {
            "as": "high",
            "call": "S.Get",
            "expect": {"response": {"memory": {"etag": "<etag first>", "tags": ["<text t>"]}}},
        },
        {
            "as": "none",
            "times": 2,
            "call": "S.Get",
            "request": {"key": "k${number}"},
            "expect": {"status": "NOT_FOUND"},
        },
        {"as": "mun_x", "call": "S.Save", "deadline_ms": 5, "expect": {"same_as": "first"}},
    ],
}


def test_a_runner_gets_plain_steps():
    scenario = from_document("file", DOCUMENT)

    sent = scenario.for_runner({"low": "not for a session"})["steps"]

    assert [step["call"].partition(".")[2] for step in sent] == [
        "CreateAgent", "OpenSession", "OpenSession", "Save", "Get", "Get", "Get", "Save", "DeleteAgent",
    ]  # fmt: skip
    assert sent[2] == {
        "as": "host",
        "call": "SessionService.OpenSession",
        "request": {"agentId": "ada", "taint": "CLASSIFICATION_INTERNAL", "conversationId": "talk"},
        "save": {"high": "token", "high_id": "session.sessionId", "high_conversation": "session.conversationId"},
    }
    assert sent[3]["request"] == {"content": "ababab"}
    assert (sent[4]["as"], sent[4]["save"]) == ("${high}", {"first": "memory.etag", "t": "memory.tags.0"})
    assert [step["request"] for step in sent[5:7]] == [{"key": "k1"}, {"key": "k2"}]
    assert sent[7] == {"as": "mun_x", "call": "S.Save", "request": {}, "deadline_ms": 5}


def test_the_host_keys_of_others_are_put_in():
    steps = [{"as": "other_host", "call": "AgentService.ListAgents"}]
    scenario = from_document("file", {"title": "t", "why": "w", "steps": steps})

    assert scenario.callers == {"other_host"}
    assert scenario.for_runner({"other_host": "mun_h_…"})["steps"][0]["as"] == "mun_h_…"


@pytest.mark.parametrize(
    "change", [{"step": []}, {"sessions": {"low": "PUBLIC"}}, {"steps": [{"as": "low", "call": "S.M", "expected": {}}]}]
)
def test_a_mistake_in_a_file_is_reported(change):
    with pytest.raises(Malformed, match="file"):
        from_document("file", DOCUMENT | change)


def scenario_of(*steps):
    return from_document(
        "file", {"title": "t", "why": "w", "steps": [{"as": "host", "call": "S.M", **s} for s in steps]}
    )


def record(step, status="OK", **more):
    return {"scenario": "t", "step": step, "status": status, **more}


OK = record(0, response={"etag": "e"})
REFUSED = record(0, "NOT_FOUND", reason="X_NOT_FOUND", message="no such x", details=[])


@pytest.mark.parametrize(
    ("expect", "actual"),
    [
        ({}, REFUSED),
        ({"status": "NOT_FOUND"}, OK),
        ({"status": "NOT_FOUND", "reason": "Y_NOT_FOUND"}, REFUSED),
        ({"status": "NOT_FOUND", "reason": "X_NOT_FOUND"}, REFUSED | {"status": "ABORTED"}),
        ({"status": "NOT_FOUND", "details": []}, REFUSED | {"details": [{"@type": "t"}]}),
        ({"response": {"etag": "f"}}, OK),
        ({}, record(0, "UNRESOLVED")),
    ],
)
def test_another_answer_is_a_failure(expect, actual):
    assert len(list(transcripts.failures(scenario_of({"expect": expect}), [actual]))) == 1


def test_the_same_answer_is_the_same_in_every_part():
    scenario = scenario_of({"name": "one", "expect": {"status": "NOT_FOUND"}}, {"expect": {"same_as": "one"}})
    changes: list[dict[str, Any]] = [{"message": "x"}, {"details": [{}]}, {"reason": "Y"}, {"status": "ABORTED"}]
    for change in changes:
        assert len(list(transcripts.failures(scenario, [REFUSED, REFUSED | {"step": 1} | change]))) == 1

    assert list(transcripts.failures(scenario, [REFUSED, REFUSED | {"step": 1}])) == []


def test_each_call_has_a_request_id_of_its_own():
    scenario = scenario_of({"name": "one", "expect": {"status": "NOT_FOUND"}}, {"expect": {"same_as": "one"}})
    one, other = REFUSED | {"request_id": "r1"}, REFUSED | {"step": 1, "request_id": "r2"}

    assert list(transcripts.failures(scenario, [one, other])) == []
    assert masked(one) == masked(one | {"request_id": "r3"})


@pytest.mark.parametrize(
    ("request_id", "change"),
    [("", {}), ("r2", {}), ("r1", {"method": "N"}), ("r1", {"code": "ABORTED"}), ("r1", {"reason": "Y"})],
)
def test_a_request_id_finds_the_call_in_the_log(request_id, change):
    logged = {"method": "M", "code": "NOT_FOUND", "reason": "X_NOT_FOUND", "ms": 3}
    found = transcripts.unlogged(scenario_of({}), [REFUSED | {"request_id": "r1"}], {"r1": logged})
    assert list(found) == []

    lost = transcripts.unlogged(scenario_of({}), [REFUSED | {"request_id": request_id}], {"r1": logged | change})
    assert len(list(lost)) == 1


def test_what_no_service_answered_is_in_no_log():
    late = record(0, "DEADLINE_EXCEEDED", reason="", message="late", details=[], request_id="")

    assert (
        list(
            transcripts.unlogged(
                scenario_of({}),
                [
                    late,
                ],
                {},
            )
        )
        == []
    )


@pytest.mark.parametrize(
    "stdout",
    [
        "",
        "Hello",
        "1\n2",
        json.dumps(record(0)),
        "\n".join(map(json.dumps, [record(1), record(0)])),
        "\n".join(map(json.dumps, [record(0), record(1), record(2)])),
        "\n".join(map(json.dumps, [record(0), record(1) | {"scenario": "u"}])),
    ],
)
def test_a_runner_that_does_not_play_every_step_is_broken(stdout):
    with pytest.raises(transcripts.Broken):
        transcripts.read(stdout, [scenario_of({}, {})])


def test_a_runner_that_leaves_something_out_is_broken():
    failed = {"status": "NOT_FOUND", "reason": "", "message": "", "details": [], "request_id": ""}
    step = {"scenario": "t", "step": 0}
    for whole in ({"status": "OK", "response": {}}, failed):
        assert transcripts.read(json.dumps(step | whole), [scenario_of({})]) == [[step | whole]]
        for name in whole:
            line = json.dumps(step | {key: each for key, each in whole.items() if key != name})
            with pytest.raises(transcripts.Broken, match=f"line 1 does not say .*{name}"):
                transcripts.read(line, [scenario_of({})])

    unplayed = step | {"status": "UNRESOLVED"}
    assert transcripts.read(json.dumps(unplayed), [scenario_of({})]) == [[unplayed]]


def masked(*records, request=None):
    return transcripts.masked(scenario_of(*({"request": request or {}} for _ in records)), records)


def test_what_no_two_runs_share_is_masked_by_what_it_is():
    values = {"noteId": UUID, "itemId": UUID, "sessionId": OTHER_UUID, "token": TOKEN, "etag": "x" * 27}

    (seen,) = masked(record(0, response={**values, "nextPageToken": "abc", "createTime": "2026-11-22T02:21:19Z"}))

    assert seen["response"] == {
        "createTime": "<time 1>",
        "etag": "<etag 1>",
        "itemId": "<uuid 1>",  # by name, as JSON is read
        "nextPageToken": "<page 1>",
        "noteId": "<uuid 1>",
        "sessionId": "<uuid 2>",
        "token": "<token 1>",
    }


def test_what_must_agree_is_not_masked():
    """What the scenario sent itself, the etag of a text, numbers, words."""
    response = {"noteId": UUID, "etag": "x" * 43, "score": 0.25, "content": "x" * 27, "count": 1.0}

    (seen,) = masked(record(0, response=response), request={"noteId": UUID})

    assert seen["response"] == response


def test_the_words_of_a_client_of_its_own_are_not_compared():
    one, other = (record(0, "UNAVAILABLE", reason="", message=words, details=[]) for words in ("a", "b"))

    assert masked(one) == masked(other)
    assert masked(record(0, "DEADLINE_EXCEEDED", reason="", message="late", details=[])) == masked(
        record(0, "DEADLINE_EXCEEDED", reason="DEADLINE_EXCEEDED", message="the deadline passed", details=[])
    )


def test_a_difference_is_shown_with_the_step_it_is_in():
    scenario = scenario_of({})
    one, other = (
        (who, transcripts.rendered(scenario, masked(record(0, response={"score": score}))))
        for who, score in (("go", 1.5), ("rust", 1.25))
    )

    shown = transcripts.difference(one, other)

    assert "--- go" in shown
    assert "+++ rust" in shown
    assert '-    "score": 1.5' in shown
    assert "## step 1, host S.M" in shown
    assert transcripts.difference(one, one) == ""


def test_long_texts_are_shortened_and_still_differ():
    scenario = scenario_of({})
    lines = [transcripts.rendered(scenario, [record(0, response={"content": "x" * 5000 + end})]) for end in "ab"]

    assert max(map(len, lines[0])) < 120
    assert lines[0] != lines[1]
