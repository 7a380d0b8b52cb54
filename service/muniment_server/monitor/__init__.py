"""The reference monitor: the part of the server that must be trusted.

Callers are hosts (trusted with levels, up to a ceiling) and sessions (driven by a model, trusted with nothing). The
attacker holds session tokens, chooses every field of every request, and may have replaced the code of any noun.

The attacker must not read above the taint of its session, nor learn that something above exists; write or delete at
any other level; reach another agent or tenant; or undo a raise of taint. Every call passes the interceptors
(`interceptors.py`, in order). Every statement passes a scope (`session_scope.py`, `host_scope.py`, `audit_scope.py`),
whose predicate is composed with it (`queries.py`, `scope.sql`), and runs on a connection whose role has only the grants
of `grants.py`. The egress filter checks each response. Not defended here: hosts that declare wrong levels, operators,
timing (docs/threats.md), and code that keeps data of one call and returns it in another without its label (a lint
checks that nouns keep nothing).
"""
