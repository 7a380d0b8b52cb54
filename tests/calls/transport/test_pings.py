"""Clients ask whether a silent server is there."""

from __future__ import annotations

from muniment import _channel
from muniment_server.transport import server


def test_the_server_lets_clients_ask_as_often_as_they_do():
    allowed = server._OPTIONS["grpc.http2.min_ping_interval_without_data_ms"]

    assert allowed < dict(_channel.OPTIONS)["grpc.keepalive_time_ms"]
