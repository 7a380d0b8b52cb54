"""Serves the model in the file $1 over `/v1/embeddings` on port $2 of 127.0.0.1, until its input ends.

Run by the Python of `.venv-llama`. Writes its URL when it is ready.
"""

from __future__ import annotations

import sys

import xllamacpp


def main(path: str, port: str) -> None:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.port = int(port)
    parameters.embedding = True
    parameters.cpuparams.n_threads = 1  # several would use the processor while they wait for each other
    server = xllamacpp.Server(parameters)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
