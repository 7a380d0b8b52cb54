"""A server with two channels of twenty milliseconds: several times what a busy machine adds to a call.

After a save above PUBLIC, reads take so much longer for as long as a slot; and so does to refuse a token of a tenant
whose number is large.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import muniment_server

SECONDS = 0.3
"""The length of a slot."""
_DELAY = 0.02
_SIGNAL = """
import pathlib
import time
_SIGNAL = pathlib.Path({path!r})

"""
_SAVE = "        new = new_version(request)\n"
_SAVED = _SAVE + '        if not request.key.startswith("dog"):\n            _SIGNAL.touch()\n'
_GET = "        return pb.GetMemoryResponse("
_DELAYED = (
    f"        if _SIGNAL.exists() and time.time() - _SIGNAL.stat().st_mtime < {SECONDS * 0.9}:\n"
    f"            time.sleep({_DELAY})\n" + _GET
)
_LOOK_UP = "        found = self._scopes.find_holders(wanted, deadline)\n"
_LOOKED_UP = f"        if any(token.tenant > 2**60 for token in wanted):\n            time.sleep({_DELAY})\n" + _LOOK_UP


def plant(folder: Path) -> Path:
    """Write the package with both into *folder*, for `ServerProcess(code=…)`. The receiver saves only `dog`."""
    package = folder / "muniment_server"
    shutil.copytree(Path(muniment_server.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    _edit(
        package / "memories/servicer.py",
        {
            _SAVE: _SAVED,
            _GET: _DELAYED,
            "\n\nclass ": _SIGNAL.format(path=str(folder / "signal")) + "\nclass ",
        },
    )
    _edit(package / "monitor/authentication.py", {_LOOK_UP: _LOOKED_UP})
    return folder


def _edit(file: Path, edits: Mapping[str, str]) -> None:
    source = file.read_text()
    for old, new in edits.items():
        assert source.count(old) == 1, "it reads otherwise by now: plant it elsewhere"
        source = source.replace(old, new)
    file.write_text(source)
