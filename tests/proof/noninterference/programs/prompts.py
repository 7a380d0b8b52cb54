"""What sessions render."""

from __future__ import annotations

from tests.proof.noninterference.programs.operations import Call, Pen


def about_prompts(pen: Pen) -> Call:
    known = pen.seen.texts
    sections = pen.rng.sample((1, 2, 3), pen.rng.choice((0, 0, 0, 1, 2, 3)))
    etag = pen.rng.choice((*known[-2:], *known[-2:], *known[-8:], "none")) if pen.chance(0.5) else ""
    return "RenderPrompt", {"sections": sections, "omit_usage": pen.chance(0.4), "if_none_match": etag}
