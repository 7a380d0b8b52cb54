"""The built-in embedding model, multilingual-e5-small, on ONNX Runtime."""
