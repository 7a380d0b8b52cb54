"""What the modules and classes of the monitor, of `postgres/` and of the nouns hold in this process."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

from tests.support.shared_state import FOLDERS

_PREFIXES = tuple(f"muniment_server.{folder}" for folder in FOLDERS)
_CONTAINERS = (dict, list, set, deque, Mapping, tuple, frozenset)


def state() -> Mapping[str, str]:
    """Everything that could remember, by name, as a text: containers, caches, what functions and classes hold."""
    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith(_PREFIXES)]
    return dict(found for module in modules for found in _held(module.__name__, vars(module), module))


def _held(place: str, names: Mapping[str, Any], module: ModuleType) -> Iterator[tuple[str, str]]:
    for name, value in sorted(names.items()):
        if name.startswith("__"):
            continue
        yield f"{place}.{name}", _text(value)
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield from _held(f"{place}.{name}", vars(value), module)


def _text(value: Any, depth: int = 4) -> str:
    """*value*, if it is data; its type, if it is not."""
    value = getattr(value, "__func__", value)
    if isinstance(value, str | bytes | int | float | None):
        return repr(value)
    if depth and isinstance(value, _CONTAINERS):
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        texts = [f"{_text(key, depth - 1)}: {_text(one, depth - 1)}" for key, one in pairs]
        return "; ".join(sorted(texts) if isinstance(value, set | frozenset) else texts)
    if hasattr(value, "cache_info"):
        return str(value.cache_info().currsize)
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return _text([cells, value.__defaults__, value.__kwdefaults__, vars(value)], depth - 1) if depth else ""
    return type(value).__name__
