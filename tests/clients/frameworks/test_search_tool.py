"""The tool that searches what all adapters have stored, as frameworks take it."""

from __future__ import annotations

import json
import uuid

import anthropic
import pytest
from pydantic_ai import Tool

import muniment
from muniment import Classification
from muniment.files import FileView
from muniment.langgraph import MunimentStore
from muniment.searching import search_tool


@pytest.fixture
def session(opened):
    """Has something about tea of every kind, by every adapter that stores text."""
    session = opened(Classification.INTERNAL)
    session.save_memory("fact/tea", "She likes tea.")
    FileView(session, root="ada").create("trips/graz.md", "A house of tea is in Graz.")
    MunimentStore(session).put(("users", "42"), "drinks", {"text": "tea in the morning"})
    session.add_note("Offer tea.", note_id=str(uuid.UUID(int=1)))
    session.add_note("Ada drinks tea.", tier=muniment.Tier.USER, note_id=str(uuid.UUID(int=2)))
    session.store_passage("We spoke of tea.", passage_id=str(uuid.UUID(int=3)), tags=["muniment:openai-agents"])
    return session


def found(text):
    return {(each["kind"], each["name"], each["source"], each["classification"]) for each in json.loads(text)}


def test_it_finds_what_all_have_stored_and_says_who(session):
    assert found(search_tool(session)("tea")) == {
        ("memory", "fact/tea", "memory", "INTERNAL"),
        ("memory", "muniment:files:ada/trips/graz.md", "files", "INTERNAL"),
        ("memory", "muniment:langgraph/users.42/drinks", "langgraph", "INTERNAL"),
        ("note", str(uuid.UUID(int=1)), "note", "INTERNAL"),
        ("note", str(uuid.UUID(int=2)), "note", "INTERNAL"),
        ("passage", str(uuid.UUID(int=3)), "openai-agents", "INTERNAL"),
    }


def test_a_result_has_the_text_that_matches(session):
    first, *_ = json.loads(search_tool(session, max_results=1)("house in Graz"))

    assert first["text"] == "A house of tea is in Graz."


@pytest.mark.parametrize("query", ["", " \n"])
def test_a_model_that_asks_for_nothing_gets_nothing(session, query):
    assert search_tool(session)(query) == "[]"


def test_a_long_question_is_cut(session):
    assert found(search_tool(session)("tea " * 1000))


def test_what_is_above_the_taint_is_not_found(opened, session):
    assert search_tool(opened(Classification.PUBLIC))("tea") == "[]"


def test_frameworks_take_it_as_it_is(session):
    of_anthropic = anthropic.beta_tool(search_tool(session))
    of_pydantic = Tool(search_tool(session))

    assert of_anthropic.name == of_pydantic.name == "search_memory"
    assert of_anthropic.to_dict()["input_schema"]["required"] == ["query"]
    assert "earlier conversations" in of_anthropic.to_dict()["description"]
    assert len(found(of_anthropic.call({"query": "tea"}))) == 6
