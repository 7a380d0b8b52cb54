"""Writes domain/unicode_table.py of the server: `make unicode`, with the oldest Python that the server supports."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

TABLE = Path(__file__).parents[2] / "service/muniment_server/domain/unicode_table.py"


def write(newest: ModuleType) -> None:
    """Write what *newest* has and the `unicodedata` of this Python has not."""
    new = [chr(code) for code in range(0x110000) if _is_new(chr(code), newest)]
    pairs = {letter: newest.decomposition(letter) for letter in new}
    canonical = (
        f"{ord(letter):X}={pair.replace(' ', '+')}" for letter, pair in pairs.items() if pair and pair[0] != "<"
    )
    TABLE.write_text(
        f'"""What Unicode {newest.unidata_version} adds to {unicodedata.unidata_version}: '
        '`make unicode` writes it."""\n\n'
        f'VERSION = "{newest.unidata_version}"\n'
        f"CATEGORIES = {_literal(_ranges(new, newest.category))}\n"
        f"CLASSES = {_literal(_ranges(new, lambda letter: str(newest.combining(letter) or '')))}\n"
        f"PAIRS = {_literal(canonical)}\n"
    )


def _is_new(letter: str, newest: ModuleType) -> bool:
    return bool(unicodedata.category(letter) == "Cn" and newest.category(letter) != "Cn")


def _ranges(letters: list[str], value_of: Callable[[str], str]) -> Iterator[str]:
    """`FIRST-LAST=value` for each run of letters with the same value. Letters without a value are left out."""
    runs: list[tuple[int, int, str]] = []
    for code, value in ((ord(letter), value_of(letter)) for letter in letters):
        if runs and runs[-1][1:] == (code - 1, value):
            runs[-1] = (runs[-1][0], code, value)
        elif value:
            runs.append((code, code, value))
    return (f"{first:X}-{last:X}={value}" for first, last, value in runs)


def _literal(words: Iterator[str]) -> str:
    lines = textwrap.wrap(" ".join(words), 110, break_on_hyphens=False)
    return "".join(["(\n", *(f'    "{line} "\n' for line in lines), ")"])


if __name__ == "__main__":
    import unicodedata2  # type: ignore[import-not-found]  # only the generator needs it

    write(unicodedata2)
