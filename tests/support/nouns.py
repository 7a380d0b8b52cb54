"""What the code of a noun keeps between calls. It should be nothing: no monitor sees what code remembers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import muniment_server

SERVER = Path(muniment_server.__file__).parent
SERVED = frozenset(path.parent.name for path in SERVER.glob("*/servicer.py"))
"""The nouns with a servicer."""
NOUNS = (*sorted(SERVED), "items", "search")
_CHANGING = frozenset(
    {
        "add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault",
        "sort", "update", "__setitem__", "__setattr__",
    }
)  # fmt: skip
_REMEMBERING = frozenset({"cache", "cached_property", "lru_cache", "local", "ContextVar", "setattr", "globals", "vars"})


def files() -> list[Path]:
    """The Python of the nouns."""
    return sorted(path for noun in NOUNS for path in (SERVER / noun).rglob("*.py"))


def remembered(source: str) -> list[str]:
    """The lines of *source*, the text of a module, that keep something from one call to the next."""
    tree = ast.parse(source)
    found = {line: ast.get_source_segment(source, node) or "" for line, node in _keeping(tree)}
    return [f"{line}: {text.splitlines()[0]}" for line, text in sorted(found.items())]


def _keeping(tree: ast.Module) -> Iterator[tuple[int, ast.expr | ast.stmt]]:
    for node in ast.walk(tree):
        is_call = isinstance(node, ast.Name | ast.Attribute) and _name_of(node) in _REMEMBERING
        if is_call or isinstance(node, ast.Global | ast.Nonlocal):
            yield _found(node)
    modules = set(_modules(tree))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            own = _locals(function)
            for node in _body(function):
                if _is_change(node, own | modules, in_init=function.name == "__init__"):
                    yield _found(node)
            yield from ((default.lineno, default) for default in _mutable_defaults(function))


def _found(node: Any) -> tuple[int, ast.expr | ast.stmt]:
    return node.lineno, node


def _is_change(node: ast.AST, own: set[str], *, in_init: bool) -> bool:
    """Whether *node* changes something that is not of the function's own."""
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        root = _root(node)
        return root not in own if root != "self" else not (in_init and isinstance(node, ast.Attribute))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
        return _root(node.func) not in own
    return False


def _locals(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names that are made within *function*, not handed to it."""
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return stored | {node.name for node in ast.walk(function) if isinstance(node, ast.ExceptHandler) and node.name}


def _modules(tree: ast.Module) -> Iterator[str]:
    """The modules of the server that are imported: a function of theirs may be called `update`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("muniment_server."):
            folder = SERVER.joinpath(*str(node.module).split(".")[1:])
            yield from (alias.name for alias in node.names if (folder / f"{alias.name}.py").exists())


def _body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    for statement in function.body:
        yield from ast.walk(statement)


def _mutable_defaults(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    for default in (*function.args.defaults, *filter(None, function.args.kw_defaults)):
        if isinstance(default, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.Call):
            yield default


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _name_of(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr
