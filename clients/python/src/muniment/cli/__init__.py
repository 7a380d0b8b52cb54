"""The command line, `muniment` (extra `cli`). Each command or group is a module that is imported when it is called."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.util import find_spec

from muniment._installing import commands_for_extra

_NEEDED = ("click", "jinja2", "rich", "yaml")


def main() -> None:
    """Run the command that the arguments name. Raises SystemExit afterwards, or if the extra `cli` is not installed."""
    if not all(map(find_spec, _NEEDED)):
        sys.exit(f"The command line is an extra, `cli`. Install it\n{commands_for_extra('cli')}")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # commands say themselves why there is no connection
    importlib.import_module("muniment.cli.root").main()
