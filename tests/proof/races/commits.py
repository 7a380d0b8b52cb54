"""The order of commits, as Postgres itself records it (track_commit_timestamp), not as callers happen to see it.

A writer that holds the session lock commits, and lets its lock go, before a raise gets it: so no row with a label may
have been committed later than the rise of its conversation above that label. Callers are promised less: they
learn of the rise only after its commit.
"""

from __future__ import annotations

from typing import Any

import psycopg

from muniment_server.domain.classification import Label

_WRITTEN = """
    SELECT {number} AS level, {trusted} AS trusted, audit.tenant, audit.session_id,
           greatest(pg_xact_commit_timestamp(audit.xmin), pg_xact_commit_timestamp(revision.xmin),
                    pg_xact_commit_timestamp(item.xmin)) AS time
      FROM {level}.audit
           LEFT JOIN {level}.revision ON (revision.tenant, revision.change_id) = (audit.tenant, audit.event_id)
           LEFT JOIN {level}.item ON (item.tenant, item.change_id) = (audit.tenant, audit.event_id)
     WHERE audit.outcome = 'OK'
"""
_LATE = """
WITH written AS MATERIALIZED ({written}),
done AS MATERIALIZED (
    SELECT session.tenant, session.agent, session.conversation_id, audit.level, audit.trusted, audit.method,
           audit.outcome, audit.session_id, pg_xact_commit_timestamp(audit.xmin) AS time
      FROM muniment_control.audit
           JOIN vault.session USING (tenant, session_id)
           JOIN vault.agent ON (agent.tenant, agent.agent) = (session.tenant, session.agent)
     WHERE agent.agent_id LIKE %(agents)s
)
"""
_BELOW_A_RISE = """
SELECT count(*)
  FROM written
       JOIN vault.session USING (tenant, session_id)
       JOIN done USING (tenant, agent, conversation_id)
 WHERE done.outcome = 'OK'
   AND done.method IN ('OpenSession', 'RaiseTaint')
   AND (written.level < done.level OR written.trusted AND NOT done.trusted)
   AND written.time > done.time
"""
_AFTER_A_RESET = """
SELECT count(*) FILTER (WHERE written.time > reset.time) AS writes
  FROM done AS reset
       JOIN vault.session AS ended
            ON (ended.tenant, ended.agent, ended.conversation_id) = (reset.tenant, reset.agent, reset.conversation_id)
       JOIN done AS opened
            ON (opened.tenant, opened.session_id) = (ended.tenant, ended.session_id)
           AND opened.method = 'OpenSession'
       JOIN written
            ON (written.tenant, written.session_id) = (ended.tenant, ended.session_id)
 WHERE reset.outcome = 'CLOSED'
   AND opened.time < reset.time
"""
_RAISED_AFTER_A_RESET = """
SELECT count(*)
  FROM done AS reset
       JOIN done AS opened USING (tenant, agent, conversation_id)
       JOIN done AS raised USING (tenant, agent, conversation_id)
 WHERE reset.outcome = 'CLOSED'
   AND (opened.method, opened.outcome) = ('OpenSession', 'OK')
   AND opened.time < reset.time
   AND raised.method = 'RaiseTaint'
   AND raised.session_id = opened.session_id
   AND raised.time > reset.time
"""
_LEFT_OPEN = """
SELECT count(*)
  FROM done AS reset
       JOIN done AS opened USING (tenant, agent, conversation_id)
       JOIN vault.session
            ON (session.tenant, session.session_id) = (opened.tenant, opened.session_id)
 WHERE reset.outcome = 'CLOSED'
   AND (opened.method, opened.outcome) = ('OpenSession', 'OK')
   AND opened.time < reset.time
   AND session.close_time IS NULL
"""
_BEYOND = """
SELECT count(*)
  FROM done AS reset
       JOIN vault.conversation USING (tenant, agent, conversation_id)
 WHERE reset.outcome = 'CLOSED'
   AND conversation.taint <> (
           SELECT coalesce(max(later.level), 1)
             FROM done AS later
            WHERE (later.tenant, later.agent, later.conversation_id)
                  = (reset.tenant, reset.agent, reset.conversation_id)
              AND (later.method, later.outcome) IN (('OpenSession', 'OK'), ('RaiseTaint', 'OK'))
              AND later.time > reset.time
       )
"""
_TAINTS = """
SELECT agent.agent_id, conversation.conversation_id, conversation.taint
  FROM vault.conversation JOIN vault.agent USING (tenant, agent)
 WHERE agent.agent_id LIKE %s
"""


class Commits:
    """What was committed for the agents whose id is LIKE a pattern."""

    def __init__(self, owner: psycopg.Connection[Any], agents: str) -> None:
        owner.execute("SET enable_nestloop = off")  # nothing here was ever analyzed
        self._owner = owner
        self._agents = agents

    def below_a_rise(self) -> int:
        """Rows written below a label after their conversation rose to it, by RaiseTaint or by OpenSession."""
        return self._count(_BELOW_A_RISE)

    def after_a_reset(self) -> int:
        """Rows written by a session after the reset that closed it."""
        return self._count(_AFTER_A_RESET)

    def raised_after_a_reset(self) -> int:
        """Raises, through a session that a reset had closed, of the conversation that is another's by then."""
        return self._count(_RAISED_AFTER_A_RESET)

    def left_open(self) -> int:
        """Sessions that were there at a reset, and are open after it."""
        return self._count(_LEFT_OPEN)

    def taints_beyond(self) -> int:
        """Conversations whose taint is not what was acknowledged after their one reset, PUBLIC when nothing was."""
        return self._count(_BEYOND)

    def taints(self) -> dict[str, int]:
        """Every conversation's taint, as it is."""
        rows = self._owner.execute(_TAINTS.encode(), [self._agents]).fetchall()
        return {row.conversation_id: row.taint for row in rows}

    def _count(self, question: str) -> int:
        written = " UNION ALL ".join(
            _WRITTEN.replace("{level}", label.role)
            .replace("{number}", str(int(label.level)))
            .replace("{trusted}", str(label.is_trusted))
            for label in Label
        )
        text = _LATE.replace("{written}", written) + question
        return int(self._owner.execute(text.encode(), {"agents": self._agents}).fetchone()[0])  # type: ignore[index]
