"""What a session sends and gets of the prompt."""

from __future__ import annotations

import pytest

import muniment
from muniment import Classification, PromptSection, PromptSectionKind, Tier, Usage
from muniment.v1 import prompt_service_pb2 as pb
from muniment.v1.classification_pb2 import CLASSIFICATION_PUBLIC
from muniment.v1.prompt_pb2 import PROMPT_SECTION_KIND_BLOCK, PROMPT_SECTION_KIND_USER_PROFILE
from tests.support.examples import NOTE_ID, PROMPT


def test_a_prompt_is_what_was_sent(session):
    expected = muniment.Prompt(
        text=PROMPT,
        sections=(
            PromptSection(PromptSectionKind.BLOCK, "personality", "ada", (), Classification.PUBLIC),
            PromptSection(PromptSectionKind.MEMORY, None, None, (NOTE_ID,), Classification.PUBLIC),
        ),
        usage=(
            Usage(Tier.MEMORY, used_chars=31, limit_chars=2200, percent=1),
            Usage(Tier.USER, used_chars=0, limit_chars=1375, percent=0),
        ),
        classification=Classification.PUBLIC,
        etag="hash-of-the-prompt",
        not_modified=False,
        left_out=(PromptSection(PromptSectionKind.BLOCK, "transcript", "ada", (), Classification.PUBLIC),),
    )

    assert expected == session.render_prompt()


def test_a_prompt_is_asked_for_as_given(server, session):
    session.render_prompt(
        sections=(kind for kind in PromptSectionKind if kind is not PromptSectionKind.MEMORY),
        omit_usage=True,
        if_none_match="hash-of-the-prompt",
    )
    session.render_prompt()

    assert [
        pb.RenderPromptRequest(
            sections=[PROMPT_SECTION_KIND_BLOCK, PROMPT_SECTION_KIND_USER_PROFILE],
            omit_usage=True,
            if_none_match="hash-of-the-prompt",
        ),
        pb.RenderPromptRequest(),
    ] == server.requests("RenderPrompt")


def test_a_prompt_that_is_still_the_same_comes_without_text(server, session):
    server.script(
        "RenderPrompt",
        pb.RenderPromptResponse(not_modified=True, etag="hash-of-the-prompt", classification=CLASSIFICATION_PUBLIC),
    )

    prompt = session.render_prompt(if_none_match="hash-of-the-prompt")

    assert (prompt.not_modified, prompt.text, prompt.etag) == (True, "", "hash-of-the-prompt")


@pytest.mark.parametrize("kind", [0, 4, "MEMORY", None])
def test_what_is_no_section_is_not_sent(server, session, kind):
    with pytest.raises(ValueError, match="PromptSectionKind"):
        session.render_prompt(sections=[kind])

    assert server.asked == []
