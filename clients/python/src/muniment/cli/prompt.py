"""`muniment prompt`."""

from __future__ import annotations

from dataclasses import asdict

import click

from muniment import Prompt, PromptSectionKind, SessionClient
from muniment.cli.budget import usage_in_words
from muniment.cli.connect import with_session_of
from muniment.cli.output import Output, print_note, with_output

_SECTIONS = {kind.name.lower().replace("_", "-"): kind for kind in PromptSectionKind}


@click.command
@click.option(
    "--section",
    "sections",
    multiple=True,
    type=click.Choice(list(_SECTIONS)),
    help="Render only this section. May be repeated.",
)
@click.option("--omit-usage", is_flag=True, help="Omit the usage from the headings.")
@with_output
@with_session_of
def prompt(session: SessionClient, output: Output, sections: tuple[str, ...], omit_usage: bool) -> None:
    """Print the prompt of a session: blocks, notes, user profile. In a pipe: byte for byte, no line end after it.

    With --json, also its parts, the usage of the tiers, and its highest level. Without AGENT and --taint
    it is what the session of MUNIMENT_TOKEN sees.

    \b
    Examples:
      muniment prompt alice --taint internal
      muniment prompt alice --taint public --section memory --section user-profile --omit-usage > prompt.txt
      muniment prompt --json
    """
    kinds = [_SECTIONS[name] for name in dict.fromkeys(sections)]
    rendered = session.render_prompt(sections=kinds, omit_usage=omit_usage)
    if output.as_json:
        output.record(asdict(rendered), ())
        return
    output.text(rendered.text)
    if output.on_terminal:
        print_note(_overview(rendered))


def _overview(rendered: Prompt) -> str:
    """`INTERNAL; memory 42% — 924/2,200 chars; user 0% — 0/1,375 chars`."""
    tiers = (f"{usage.tier.name.lower()} {usage_in_words(usage)}" for usage in rendered.usage)
    return "; ".join((rendered.classification.name, *tiers))
