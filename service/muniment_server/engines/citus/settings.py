"""The settings of connections of a Citus cluster that differ, and of those between its nodes."""

from __future__ import annotations

from collections.abc import Mapping

from muniment_server.postgres import roles
from muniment_server.postgres.pool import LONGEST_STATEMENT, SETTINGS

SETTINGS_ON_CLUSTER: Mapping[str, str] = {
    "plan_cache_mode": "auto",
    "max_parallel_workers_per_gather": "0",
    "citus.node_connection_timeout": "2s",
}
"""Settings that differ on a Citus cluster. It cannot plan most statements before it knows their tenant. Postgres
overestimates the intermediate results that Citus keeps within a write: it would start processes to read one row in
parallel, which takes half of the coordinator's time. A node that drops packets must not block calls to the others."""

_BETWEEN_NODES = (
    "TimeZone", "jit", "lock_timeout", "idle_in_transaction_session_timeout", "synchronous_commit",
    "log_parameter_max_length_on_error", "gin_pending_list_limit",
)  # fmt: skip
_OF_ALL_BETWEEN_NODES: Mapping[str, str] = {
    **{name: SETTINGS[name] for name in _BETWEEN_NODES},
    "statement_timeout": str(LONGEST_STATEMENT),
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}
SETTINGS_BETWEEN_NODES: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(roles.SERVING, _OF_ALL_BETWEEN_NODES),
    roles.ERASER: {**_OF_ALL_BETWEEN_NODES, "enable_seqscan": "off", "enable_bitmapscan": "off"},
}
"""The settings of the connections of a Citus cluster's coordinator to the other nodes, which do not get those of the
session. They are settings of the serving roles, by role. The coordinator cancels what exceeds the limit of a call; this
`statement_timeout` ends what is left over if the coordinator itself has died. No time limit ends a COPY that waits for
rows, which Citus uses between nodes: there, the keepalives notice within 40 seconds that the coordinator is gone. For
those of the eraser, see `prepare_batch` in `background/eraser.sql`."""
