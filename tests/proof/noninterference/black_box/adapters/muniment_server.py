"""A Muniment server that runs already, by gRPC: MUNIMENT_ADDRESS names it. Both worlds are agents of one tenant."""

from __future__ import annotations

import muniment

from ..adapter import serve
from .muniment_grpc import Grpc


def main() -> None:
    """Serve the server that MUNIMENT_ADDRESS names."""
    with muniment.connect_host() as host:
        adapter = Grpc(host)
        try:
            serve(adapter)
        finally:
            adapter.agents.delete()


if __name__ == "__main__":
    main()
