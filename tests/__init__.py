"""Tests of Muniment."""

import os

# Before gRPC is imported: its handlers of fork() abort a child now and then, and Postgres is forked beside servers.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
