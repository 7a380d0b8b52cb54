"""A server with a channel: after a save above PUBLIC, reads take five milliseconds longer, for as long as a slot."""

from __future__ import annotations

import shutil
from pathlib import Path

import muniment_server

SECONDS = 0.3
"""The length of a slot."""
_FILE = "memories/servicer.py"
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
    "            time.sleep(0.005)\n" + _GET
)


def plant(folder: Path) -> Path:
    """Write the package with the channel into *folder*, for `ServerProcess(code=…)`. The receiver saves only `dog`."""
    package = folder / "muniment_server"
    shutil.copytree(Path(muniment_server.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    file = package / _FILE
    source = file.read_text()
    for old, new in (
        (_SAVE, _SAVED),
        (_GET, _DELAYED),
        ("\n\nclass ", _SIGNAL.format(path=str(folder / "signal")) + "\nclass "),
    ):
        assert source.count(old) == 1, "it reads otherwise by now: plant it elsewhere"
        source = source.replace(old, new)
    file.write_text(source)
    return folder
