"""Scenario files: YAML in which everything is what it looks like."""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO, Any

import yaml

FOLDER = Path(__file__).parent / "scenarios"


class _Loader(yaml.SafeLoader):
    """JSON's types and no others: a time stays text, and so does `no`."""


_Loader.yaml_implicit_resolvers = {}
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"null$"), ["n"])
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(?:true|false)$"), ["t", "f"])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"-?(?:0|[1-9]\d*)$"), list("-0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"-?\d+\.\d+$"), list("-0123456789"))


def read(document: str | IO[str]) -> Any:
    """What a document says: a text, or a file that is open."""
    return yaml.load(document, Loader=_Loader)


def files(folder: Path = FOLDER) -> list[Path]:
    """All scenario files, by name."""
    return sorted(folder.glob("*.yaml"))
