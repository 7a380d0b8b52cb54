"""How to install an extra of this package, or the server, from a checkout and from the packages of `make dist`.

Neither is published, and in a public index anyone could own their names. So the commands name folders and files.
"""

from __future__ import annotations

from importlib.metadata import version


def commands_for_extra(extra: str) -> str:
    """How to install one extra of this package: two lines."""
    return _lines(f"'./clients/python[{extra}]'", f"'{_wheel('muniment')}[{extra}]'")


def commands_for_server() -> str:
    """How to install the server, which needs this package in the same version: two lines."""
    return _lines("./clients/python '.[semantic]'", f"{_wheel('muniment')} '{_wheel('muniment_server')}[semantic]'")


def _wheel(name: str) -> str:
    return f"dist/python/{name}-{version('muniment')}-py3-none-any.whl"


def _lines(checkout: str, dist: str) -> str:
    return (
        f"  in a checkout of Muniment: pip install {checkout}\n  from the packages of `make dist`: pip install {dist}"
    )
