"""What modules and classes hold that can change: it would outlive every call, session and server of the process."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.nouns import NOUNS, SERVER

FOLDERS = ("monitor", "postgres", *NOUNS)
_READ_ONLY = frozenset({"Mapping", "Sequence", "Collection", "Set", "frozenset", "tuple", "MappingProxyType"})
"""Types that have no method to change a value: mypy refuses it."""
_UNCHANGING = frozenset(
    {
        "MappingProxyType", "TypeVar", "UUID", "bytes", "datetime", "dumps", "field", "float", "frozenset", "getLogger",
        "int", "len", "str", "timedelta", "tuple",
    }
)  # fmt: skip
"""What makes a value that cannot change, a field of a dataclass, or a logger."""
_CACHES = frozenset({"cache", "cached_property", "lru_cache", "local", "ContextVar"})
_CHANGES = frozenset(
    {
        "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault",
        "sort", "update", "__setitem__", "__setattr__",
    }
)  # fmt: skip


def files() -> list[Path]:
    """The Python of the monitor, of `postgres/` and of the nouns."""
    return sorted(path for folder in FOLDERS for path in (SERVER / folder).rglob("*.py"))


def shared_state(source: str) -> list[str]:
    """The names in *source*, the text of a module, that hold what can change, and the lines that change such a name."""
    tree = ast.parse(source)
    return sorted({*_changeable(tree.body), *_caches(tree), *_changed(tree)})


def _changeable(body: list[ast.stmt]) -> Iterator[str]:
    """The names of a module, and of its classes, whose value can change and whose type does not forbid it."""
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from _changeable(statement.body)
        elif isinstance(statement, ast.Assign) and _can_change(statement.value):
            yield from map(ast.unparse, statement.targets)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            base = ast.unparse(statement.annotation).removeprefix("ClassVar[").partition("[")[0]
            if base not in _READ_ONLY and _can_change(statement.value):
                yield ast.unparse(statement.target)


def _can_change(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        is_pattern = ast.unparse(value.func) == "re.compile"
        return not is_pattern and _last(value.func) not in _UNCHANGING
    changing = (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Set, ast.SetComp, ast.GeneratorExp)
    return isinstance(value, changing)


def _caches(tree: ast.Module) -> Iterator[str]:
    """Functions that remember their results, and what belongs to a thread."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                function = decorator.func if isinstance(decorator, ast.Call) else decorator
                if _last(function) in _CACHES:
                    yield node.name
        elif isinstance(node, ast.Call) and _last(node.func) in _CACHES:
            yield ast.unparse(node)


def _changed(tree: ast.Module) -> Iterator[str]:
    """Statements of functions that change what belongs to the module or to a class."""
    names = set(_names_of(tree))
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        own = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
        own |= {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        shared = (names - own) | {"cls"}
        for node in ast.walk(function):
            if isinstance(node, ast.Global) or _changes(node, shared):
                yield ast.unparse(node)
        defaults = filter(None, (*function.args.defaults, *function.args.kw_defaults))
        yield from (ast.unparse(one) for one in defaults if _grows(one))


def _changes(node: ast.AST, shared: set[str]) -> bool:
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        return _belongs(node.value, shared)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in {"setattr", "delattr"} and node.args:
            return _belongs(node.args[0], shared)
        return isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES and _belongs(node.func.value, shared)
    return False


def _belongs(value: ast.expr, shared: set[str]) -> bool:
    """Whether *value* is something of the module or of a class, and not what a function returned."""
    if isinstance(value, ast.Name):
        return value.id in shared
    if isinstance(value, ast.Attribute | ast.Subscript):
        return (value.__class__ is ast.Attribute and value.attr == "__class__") or _belongs(value.value, shared)
    return isinstance(value, ast.Call) and ast.unparse(value.func) in {"type", "vars", "globals"}


def _grows(default: ast.expr) -> bool:
    return isinstance(default, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)


def _names_of(tree: ast.Module) -> Iterator[str]:
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Assign):
            yield from (one.id for one in statement.targets if isinstance(one, ast.Name))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id


def _last(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
