#!/usr/bin/python3
"""Ask a server for its health: `muniment-health [liveness|readiness]`. Exits with 0 if the answer is SERVING.

`muniment-health http` asks the gateway at port 8080 of this container, by HTTPS.

The server is the one that MUNIMENT_ADDRESS, MUNIMENT_TLS_CA, MUNIMENT_TLS_CERT and MUNIMENT_TLS_KEY name.
"""

from __future__ import annotations

import os
import ssl
import sys
from typing import Any
from urllib.request import urlopen

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

import muniment

_SECONDS = 5.0
_GATEWAY = "https://localhost:8080/openapi.json"


def open_channel() -> grpc.Channel:
    """A channel to the server, with TLS if an authority is named."""
    address = os.environ.get("MUNIMENT_ADDRESS") or "localhost:50051"
    ca, certificate, key = (os.environ.get(f"MUNIMENT_TLS_{name}") or None for name in ("CA", "CERT", "KEY"))
    if ca is None:
        return grpc.insecure_channel(address)
    return grpc.secure_channel(address, muniment.TLS(ca=ca, certificate=certificate, key=key).credentials())


def ask_gateway() -> None:
    """Exit with 0 if the gateway answers."""
    trusted = ssl.create_default_context(cafile=os.environ.get("MUNIMENT_TLS_CA"))
    # By default, Python 3.13 refuses authorities without an extension that gRPC, curl and browsers do not ask for.
    trusted.verify_flags &= ~ssl.VERIFY_X509_STRICT
    try:
        urlopen(_GATEWAY, timeout=_SECONDS, context=trusted).close()
    except OSError as error:
        sys.exit(f"http: {error}")


def main() -> None:
    """Exit with the answer."""
    name = sys.argv[1] if len(sys.argv) > 1 else "liveness"
    if name == "http":
        ask_gateway()
        return
    with open_channel() as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # the stubs of its types know no methods
        try:
            answer = stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=_SECONDS)
        except grpc.RpcError as error:
            sys.exit(f"{name}: {error.code().name} {error.details()}")
    status = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    if status != "SERVING":
        sys.exit(f"{name}: {status}")


if __name__ == "__main__":
    main()
