"""Makes the metrics of one process. `runtime.metrics_endpoint` adds up those of all processes and serves them.

If PROMETHEUS_MULTIPROC_DIR is set when this module is first imported, values are kept in files in that directory. A
metric without labels exists, with the value 0, as soon as its module is imported: each kind of process has its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, mmap_dict, values

_mmap_dict: Any = mmap_dict  # has no types
_values: Any = values
_FILE_BYTES = 512 * 1024
"""Room for some 3,000 values, more than a process has: their labels are bounded. It is kept small because the files of
processes that have ended stay."""


class _AllocatedFile(_mmap_dict.MmapedDict):  # type: ignore[misc]
    """A file of values that has its room on the disk before a value is written.

    The library's own file is sparse: a process that adds a value while the disk is full is killed (SIGBUS), and so is
    each one that is started in its place. Any caller can cause it, since a refusal for a new reason adds a value.
    """

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        """Raises OSError if the disk has no room for the file."""
        if not read_mode:
            _allocate(Path(filename))
        super().__init__(filename, read_mode)


def _allocate(file: Path) -> None:
    try:
        with file.open("ab") as appended:
            appended.write(bytes(max(0, _FILE_BYTES - appended.tell())))
    except OSError:
        file.unlink(missing_ok=True)  # readers expect a whole page
        raise


_values.MmapedDict = _AllocatedFile  # the library has no setting for this

REGISTRY = CollectorRegistry()
"""The metrics of this process."""
OTHERS = "others"
"""The label of all tenants that have none of their own."""


def gauge(name: str, text: str, *labels: str, of_all: str = "livesum") -> Gauge:
    """A gauge that is served as the sum over all live processes, or as their *of_all*."""
    return Gauge(name, text, labels, registry=REGISTRY, multiprocess_mode=of_all)  # type: ignore[arg-type]
