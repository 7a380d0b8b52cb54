"""The gRPC server: dispatch, receive timeout, health, reflection."""
