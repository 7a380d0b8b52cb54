"""Generates the modules of `muniment.aio` that differ from the synchronous ones only in `async` and `await`.

python clients/python/tools/aio.py          writes them
python clients/python/tools/aio.py --check  fails if one of them is not up to date

What waits is found, not marked: the calls in WAITS, and every method that makes one of them. Whatever has nothing to do
with a client is imported from the synchronous module.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "muniment"
GENERATED = (
    "_blocks",
    "_connect",
    "_conversation",
    "_memories",
    "_notes",
    "_passages",
    "_prompts",
    "_releases",
    "_versions",
    "host",
    "session",
)
WRITTEN = ("_calls", "_channel", "_listing")
"""The modules of `muniment.aio` that are written by hand, because they make the calls."""
MODULES = {f"muniment.{each}" for each in (*GENERATED, *WRITTEN)}
"""Those whose names come from `muniment.aio` instead."""

WAITS = frozenset(
    {
        "self._calls",
        "self._calls.stream",
        "self._calls.close",
        "self._calls.renew_if_due",
        "self._conversation._renew",
        "self._conversation._renew_if_due",
        "self._host.renew_session",
        "session.keep_open",
        "super().__call__",
        "super().stream",
    }
)
RENAMED = {"__enter__": "__aenter__", "__exit__": "__aexit__"}
"""Methods that Python itself waits for."""

PHRASES = {
    "session": {
        "Safe to use from several threads": "It belongs to one event loop",
        "As a context manager": "In `async with`",
        "it, which it requests now if it has not yet": "it. ValueError: it has not yet, so await `get_session` first",
        "self._session or self.get_session()": "known(self._session)",
        "For a session from a token, the first access asks the server": "ValueError as for `session`",
    },
    "host": {
        "Safe to use from several threads": "It belongs to one event loop",
        "As a context manager": "In `async with`",
    },
    "_conversation": {
        "Safe to use from several threads": "It belongs to one event loop",
        "As a context manager, it": "`async with`",
        "grpc.UnaryUnaryMultiCallable[Request, Response]": "Unary[Request, Response]",
        "grpc.StreamUnaryMultiCallable": "aio.StreamUnaryMultiCallable",
        "requests: Iterable[Request]": "requests: AsyncIterable[Request]",
    },
    "_passages": {
        "passages: Iterable[NewPassage]": "passages: AsyncIterable[NewPassage] | Iterable[NewPassage]",
        "for each in passages\n": "async for each in each_of(passages)\n",
        "is read in the caller's thread, as": "is read as",
    },
}
"""What is said otherwise, by module. Each must occur."""
IMPORTS = """\
from collections.abc import AsyncIterable
from grpc import aio
from muniment.aio._calls import Unary, each_of, known
"""
"""What the phrases need. Unused names are removed."""


def generate(name: str) -> str:
    """The asynchronous form of a synchronous module."""
    source = (PACKAGE / f"{name}.py").read_text(encoding="utf-8")
    for phrase, other in PHRASES.get(name, {}).items():
        if phrase not in source:
            raise SystemExit(f"{name}.py does not have the phrase {phrase!r}: see PHRASES")
        source = source.replace(phrase, other)
    tree = ast.parse(source)
    made = ast.fix_missing_locations(Asynchronous(name, tree).visit(tree))
    return tidy(f"# Generated from ../{name}.py: make aio.\n{ast.unparse(made)}", PACKAGE / "aio" / f"{name}.py")


class Asynchronous(ast.NodeTransformer):
    """Turns one synchronous module into an asynchronous one."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self._name = name
        self._waits = waits(tree)
        self._shared = shared(tree)

    def visit_Module(self, node: ast.Module) -> ast.AST:
        kept = [each for each in node.body if not names_of(each) & self._shared]
        here = f"from muniment.{self._name} import {', '.join(sorted(self._shared))}\n" if self._shared else ""
        returned = (each.returns for each in ast.walk(node) if isinstance(each, ast.FunctionDef) and each.returns)
        stubs = sorted({ast.unparse(each) for each in returned if is_stub(each)})
        typed = "".join(f"    from muniment.v1.{module_of(each)} import {asynchronous(each)}\n" for each in stubs)
        if typed:
            typed = f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n{typed}"
        begin = next(number for number, each in enumerate(kept) if number > 1 and not is_import(each))
        kept[begin:begin] = ast.parse(IMPORTS + here + typed).body
        return self.generic_visit(ast.Module(kept, type_ignores=[]))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.module in MODULES and node.module != f"muniment.{self._name}":
            node.module = node.module.replace("muniment.", "muniment.aio.")
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.returns is not None and is_stub(node.returns):
            node.returns = ast.Name(asynchronous(ast.unparse(node.returns)))
        self.generic_visit(node)
        if not (node.name in RENAMED or any(map(self._waits_here, own_nodes(node)))):
            return node
        fields = {name: getattr(node, name) for name in node._fields}
        return ast.AsyncFunctionDef(**{**fields, "name": RENAMED.get(node.name, node.name)})

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node  # it returns what its caller awaits

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return ast.Await(node) if self._waits_here(node) else node

    def _waits_here(self, node: ast.AST) -> bool:
        return is_call_of(node, self._waits) or isinstance(node, ast.Await)


def waits(tree: ast.Module) -> frozenset[str]:
    """What is awaited when it is called: WAITS, and the methods that call any of these."""
    methods = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
    found = WAITS
    while (
        more := {f"self.{each.name}" for each in methods if any(is_call_of(node, found) for node in own_nodes(each))}
        - found
    ):
        found |= more
    return found


def shared(tree: ast.Module) -> set[str]:
    """The names of a module that have nothing to do with a client: nothing of `muniment.aio` occurs in them."""
    own = {name: node for node in tree.body for name in names_of(node)}
    imports = (each for each in tree.body if isinstance(each, ast.ImportFrom) and each.module in MODULES)
    clients = {name.name for each in imports for name in each.names}
    clients |= {each.name for each in tree.body if isinstance(each, ast.ClassDef)}
    while more := {name for name, node in own.items() if clients & names_in(node)} - clients:
        clients |= more
    return own.keys() - clients


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """What is below a function, other than the bodies of functions in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield child
            yield from own_nodes(child)


def is_call_of(node: ast.AST, names: frozenset[str]) -> bool:
    """Whether *node* calls one of *names*."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) in names


def is_import(node: ast.stmt) -> bool:
    """Whether a statement is an import, or one for type checkers alone."""
    return isinstance(node, ast.Import | ast.ImportFrom | ast.If)


def is_stub(node: ast.expr) -> bool:
    """Whether *node* names the generated stub of a service."""
    return isinstance(node, ast.Name) and node.id.endswith("ServiceStub")


def asynchronous(stub: str) -> str:
    """`MemoryServiceAsyncStub` for `MemoryServiceStub`: a type for type checkers alone."""
    return f"{stub.removesuffix('Stub')}AsyncStub"


def module_of(stub: str) -> str:
    """`memory_service_pb2_grpc` for `MemoryServiceStub`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", stub.removesuffix("Stub")).lower() + "_pb2_grpc"


def names_of(node: ast.stmt) -> set[str]:
    """The names that a statement of a module defines, other than by import."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {each.id for each in node.targets if isinstance(each, ast.Name)}
    return set()


def names_in(node: ast.AST) -> set[str]:
    """All names that occur in a statement."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def tidy(text: str, path: Path) -> str:
    """*text* without unused imports, and formatted."""
    ruff = Path(sys.executable).with_name("ruff")
    check = ("check", "--fix", "--quiet", "--select", "F401,I001,UP")
    for command in (check, ("format", "--quiet")):
        full = [ruff, *command, "--config", "lint.isort.known-first-party=['muniment']", "--stdin-filename", path, "-"]
        done = subprocess.run(full, input=text, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{path}: {done.stdout}{done.stderr}")
        text = done.stdout
    return text


def main() -> None:
    """Write the modules, or compare them."""
    for name in GENERATED:
        path, text = PACKAGE / "aio" / f"{name}.py", generate(name)
        if "--check" not in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            raise SystemExit(f"{path.relative_to(PACKAGE)} is not what {name}.py makes of it: make aio")


if __name__ == "__main__":
    main()
