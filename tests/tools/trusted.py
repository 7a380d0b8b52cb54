"""Count what must be trusted: `python -m tests.tools.trusted`, or `make trusted`.

Between levels: the reference monitor, the verification of pooled connections and of the database server behind them,
and the SQL of grants and views; on a Citus cluster, also what its engine does while serving. Between agents and
tenants, these and the query files that may name tables. Lines of code, without blank lines, comments and docstrings;
SQL without blank lines and comments.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import muniment_server
from muniment_server.monitor.queries import TRUSTED

ROOT = Path(muniment_server.__file__).parent
CITUS = ROOT / "engines" / "citus"
_COMMANDS_OF_CITUS = {"distribute.py", "distributing.py", "pausing.py"}
"""Commands of operators."""
LIMIT = 1750
"""The most lines of Python that the monitor may have."""
_CONNECTIONS = (
    "postgres/pool.py",
    "postgres/engine.py",
    "postgres/placement.py",
    "postgres/prepared.py",
    "postgres/epochs.py",
    "postgres/roles.py",
    "postgres/transaction.py",
    "postgres/rows.py",
    "postgres/queries.py",
)
_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}


def python_lines(path: Path) -> int:
    """Lines of Python with code on them."""
    text = path.read_text("utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    code = {
        line
        for token in tokens
        if token.type not in _LAYOUT and token.type != tokenize.ENDMARKER
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(code - set(_docstring_lines(ast.parse(text))))


def sql_lines(path: Path) -> int:
    """Lines of SQL with code on them."""
    lines = (line.split("--")[0].strip() for line in path.read_text("utf-8").splitlines())
    return sum(1 for line in lines if line)


_OF_THE_EMBEDDER = ("embedder/queue.sql", "embedder/lists.sql", "embedder/labels.sql")


def monitor() -> list[Path]:
    """The Python of the reference monitor."""
    return sorted((ROOT / "monitor").glob("*.py"))


def connections() -> list[Path]:
    """The Python that opens connections and verifies their roles and servers."""
    return [ROOT / name for name in _CONNECTIONS]


def grants() -> list[Path]:
    """The SQL of tables, grants and views, and of what the monitor asks the catalog and composes."""
    return [
        *sorted((ROOT / "postgres" / "migrations").glob("*.sql")),
        *sorted((ROOT / "monitor").glob("*.sql")),
    ]


def on_cluster() -> list[Path]:
    """The Python that changes statements and connections on a Citus cluster, and compares the grants of its nodes."""
    return sorted(path for path in CITUS.glob("*.py") if path.name not in _COMMANDS_OF_CITUS)


def grants_on_cluster() -> list[Path]:
    """The SQL of grants and views of a Citus cluster, and of what its nodes are asked."""
    return sorted(CITUS.glob("*.sql"))


def query_files() -> list[Path]:
    """The query files outside the monitor in which an error can mix up agents or tenants, though no role reads above
    its level. `sessions/queries.sql` also decides which level a session has."""
    trusted = [ROOT / package.removeprefix("muniment_server.") / file for package, file in TRUSTED]
    return sorted(
        [path for path in trusted if path.parent.name != "monitor"] + [ROOT / file for file in _OF_THE_EMBEDDER]
    )


def _docstring_lines(tree: ast.AST) -> Iterator[int]:
    """The lines of strings that stand alone: docstrings, and what describes a constant."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def main() -> None:
    """Print the count."""
    parts = (
        ("the reference monitor (Python)", monitor(), python_lines),
        ("connections and their verification (Python)", connections(), python_lines),
        ("tables, grants and views (SQL)", grants(), sql_lines),
        ("query files that may name tables (SQL)", query_files(), sql_lines),
        ("on a Citus cluster, its engine (Python)", on_cluster(), python_lines),
        ("on a Citus cluster, its grants and views (SQL)", grants_on_cluster(), sql_lines),
    )
    for title, paths, count in parts:
        counts = [count(path) for path in paths]
        print(f"{sum(counts):6} {title}")
        for path, lines in zip(paths, counts, strict=True):
            print(f"{lines:12}  {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
