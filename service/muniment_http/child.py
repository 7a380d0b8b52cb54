"""The gateway of `muniment serve --http`: a process of its own, which the supervisor starts, watches and restarts.

Its HTTP library is native code, and it parses what strangers send. In a worker, a crash, a leak or a busy loop of it
would end or delay calls by gRPC, and it would run beside connections to the database. As a process, it costs its own
callers a second, and knows the server by its address alone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from muniment_http import serving
from muniment_http.options import Options
from muniment_server.process import child_main
from muniment_server.process.child_main import Orders
from muniment_server.runtime.configuration import split_address


def main() -> None:
    """Serve until the input ends or SIGTERM arrives."""
    orders = child_main.receive_orders("gateway")
    if orders is None or (listen := orders.assignment.http) is None:
        return
    threading.Thread(target=_end_after_orders, args=(orders,), daemon=True).start()
    try:
        serving.serve(Options(*split_address(listen), orders.assignment.listen), on_ready=_report_ready)
    except OSError as error:
        sys.exit(f"the HTTP gateway cannot listen at {listen}: {os.strerror(error.errno or 0)}")


def _report_ready() -> None:
    child_main.report_ready()
    child_main.beat_while(lambda: True)


def _end_after_orders(orders: Orders) -> None:
    while not orders.stop.wait(60.0):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
