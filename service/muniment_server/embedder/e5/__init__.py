"""The built-in embedding model, multilingual-e5-small, on ONNX Runtime.

ONNX Runtime has telemetry: when it is loaded, it keeps a device id and a database of events in the home directory, and
it can send them to its maker. The environment tells it not to, so this is set before any module imports it.
"""

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
