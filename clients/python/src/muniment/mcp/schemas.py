"""Schemas of arguments without what a model does not need: they are part of every prompt."""

from __future__ import annotations

from typing import Any


def shortened(schema: Any, *, names: bool = False) -> Any:
    """*schema* without titles and empty defaults: the list of required arguments says which may be left out.

    *names*: its members are names of properties, such as `title`, and not keywords.
    """
    if isinstance(schema, list):
        return [shortened(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: shortened(value, names=not names and key in ("properties", "$defs"))
        for key, value in schema.items()
        if names or not (key == "title" or (key == "default" and not value))
    }
