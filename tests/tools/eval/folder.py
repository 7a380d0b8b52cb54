"""The option `--data` of the measurements: the folder with real texts, which the project may not distribute."""

from __future__ import annotations

from pathlib import Path

import click

from tests.calls.endtoend.locomo import DATA

FILES = ("locomo-dev.json", "locomo-facts.jsonl", "xquad/en.json", "xquad/zh.json")
_LISTED = f"{', '.join(FILES[:-1])} and {FILES[-1]}"
_LICENSES = "LoCoMo is under CC BY-NC 4.0, XQuAD under CC BY-SA 4.0"


def _with_every_file(_: click.Context, __: click.Parameter, folder: Path) -> Path:
    missing = [name for name in FILES if not (folder / name).exists()]
    if missing:
        raise click.ClickException(
            f"{folder.resolve()} lacks {', '.join(missing)}\n"
            f"  This needs {_LISTED}, which the project may not distribute: {_LICENSES}.\n"
            "  Name their folder with --data or MUNIMENT_DATA; tests/README.md says what the files are."
        )
    return folder


data_option = click.option(
    "--data",
    default=DATA,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    callback=_with_every_file,
    show_default="MUNIMENT_DATA, else ../shared/data seen from the repository",
    help=f"The folder with {_LISTED}. They are not distributed: {_LICENSES}.",
)
"""Gives a command the argument *data*, a folder that has them all."""
