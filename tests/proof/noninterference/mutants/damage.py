"""Damage to the schema: SQL that gives a low session a way to know what is above."""

from __future__ import annotations

from itertools import pairwise

from tests.proof.noninterference.mutants.scheme import LEVELS, view


def as_restricted(view: str) -> tuple[str, ...]:
    """The view of PUBLIC has its owner's rights, over every level."""
    return (
        f"""DO $$ BEGIN EXECUTE 'CREATE OR REPLACE VIEW muniment_public.{view} AS '
                  || pg_get_viewdef('muniment_restricted.{view}'::regclass); END $$""",
        f"ALTER VIEW muniment_public.{view} RESET (security_invoker)",
    )


PEEK = (
    """CREATE FUNCTION vault.peek(tenant bigint, agent bigint, name text) RETURNS smallint
       LANGUAGE sql STABLE SECURITY DEFINER AS
       $$ SELECT max(2 * item.level)::smallint FROM (
              SELECT * FROM muniment_public.item UNION ALL SELECT * FROM muniment_internal.item UNION ALL
              SELECT * FROM muniment_confidential.item UNION ALL SELECT * FROM muniment_restricted.item) AS item
           WHERE item.tenant = peek.tenant AND item.agent = peek.agent AND (peek.name IS NULL OR item.name = peek.name)
             AND item.delete_time IS NULL $$""",
    """CREATE FUNCTION vault.count(tenant bigint, agent bigint) RETURNS bigint
       LANGUAGE sql STABLE SECURITY DEFINER AS
       $$ SELECT count(*) FROM (
              SELECT * FROM muniment_public.item UNION ALL SELECT * FROM muniment_internal.item UNION ALL
              SELECT * FROM muniment_confidential.item UNION ALL SELECT * FROM muniment_restricted.item) AS item
           WHERE item.tenant = count.tenant AND item.agent = count.agent AND item.delete_time IS NULL $$""",
)
HIDDEN_CHARS = (
    """CREATE FUNCTION vault.hidden_chars(tenant bigint, agent bigint, tier integer, taint integer) RETURNS integer
       LANGUAGE sql STABLE SECURITY DEFINER AS
       $$ SELECT coalesce(sum(length(item.content)), 0)::integer FROM (
              SELECT * FROM muniment_internal.item UNION ALL
              SELECT * FROM muniment_confidential.item UNION ALL SELECT * FROM muniment_restricted.item) AS item
           WHERE item.tenant = hidden_chars.tenant AND item.agent = hidden_chars.agent AND item.kind = 2
             AND item.tier = hidden_chars.tier AND 2 * item.level > hidden_chars.taint
             AND item.delete_time IS NULL $$""",
)
ONE_NAME_FOR_ALL_LEVELS = (
    """CREATE FUNCTION vault.only_one() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
       BEGIN
           IF vault.peek(NEW.tenant, NEW.agent, NEW.name) > NEW.level THEN
               RAISE unique_violation;
           END IF;
           RETURN NEW;
       END $$""",
    *(
        f"CREATE TRIGGER only_one BEFORE INSERT ON muniment_{level}.item FOR EACH ROW EXECUTE FUNCTION vault.only_one()"
        for level in LEVELS
    ),
)
TOUCHED_AGENTS = (
    """CREATE FUNCTION vault.touch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
       BEGIN
           UPDATE vault.agent SET update_time = vault.clock() WHERE (tenant, agent) = (NEW.tenant, NEW.agent);
           RETURN NEW;
       END $$""",
    *(
        f"CREATE TRIGGER touch BEFORE INSERT ON muniment_{level}.item FOR EACH ROW EXECUTE FUNCTION vault.touch()"
        for level in LEVELS
    ),
)
ONE_COUNTER = (
    "CREATE SEQUENCE vault.counter",
    "GRANT USAGE ON SEQUENCE vault.counter TO PUBLIC",
    *(f"ALTER TABLE muniment_{level}.item ALTER revision SET DEFAULT nextval('vault.counter')" for level in LEVELS),
)
EVERYTHING_VISIBLE = as_restricted("visible")
SESSION_OPTIONS = "security_barrier = true"
NO_TAINT = (
    # No level at all is asked for: an old connection still finds the session that was raised.
    *(
        statement
        for number, level in enumerate(LEVELS, 1)
        for statement in (
            f"""DO $$
                DECLARE found text := pg_get_viewdef('muniment_{level}.session'::regclass);
                BEGIN
                    ASSERT found LIKE '%(conversation.taint = {number})%', found;
                    EXECUTE 'CREATE OR REPLACE VIEW muniment_{level}.session WITH ({SESSION_OPTIONS}) AS '
                         || replace(found, '(conversation.taint = {number})', 'true');
                END $$""",
        )
    ),
)
NO_CLOSE = view("session", "(session.close_time IS NULL)", "true", options=SESSION_OPTIONS)
NO_EXPIRY = view("session", "(session.expire_time > vault.clock())", "true", options=SESSION_OPTIONS)
VISIBLE_OPTIONS = "security_invoker = true"
EVERYTHING_SHARED = (
    # The view that has its owner's rights, over every level of what is shared.
    """DO $$ BEGIN EXECUTE 'CREATE OR REPLACE VIEW muniment_public.shared_visible AS '
              || replace(pg_get_viewdef('muniment_public.shared_visible'::regclass), 'JOIN muniment_public.visible ON',
                         'JOIN (' || rtrim(pg_get_viewdef('muniment_restricted.visible'::regclass), ';')
                         || ') AS visible ON'); END $$""",
    "ALTER VIEW muniment_public.shared_visible RESET (security_invoker)",
)
ANY_CONVERSATION = view(
    "session", "(tenant, agent, conversation_id, ceiling)", "(tenant, agent, conversation_id)", options=SESSION_OPTIONS
)
ANY_OWNER = view("link", "(agent.known_from <= session.ceiling)", "true", options=SESSION_OPTIONS)
ANY_LINK = view("link", "(block_link.consumer = session.agent)", "true", options=SESSION_OPTIONS)
ALL_EMBEDDINGS = as_restricted("visible_meaning")
EXPIRED_CHUNKS = view("visible_chunk", "(expire_time > vault.clock())", "true", options=VISIBLE_OPTIONS)
DELETED_ABOVE = tuple(
    f"""CREATE OR REPLACE VIEW muniment_{level}.deleted_item WITH (security_barrier = true) AS
        SELECT item.tenant, item.agent, item.kind, item.name, item.item_id, item.revision, item.tier, item.content,
               item.tags, item.thread, item.author, item.event_time, item.create_time, item.expire_time,
               item.delete_time
          FROM muniment_{above}.item
         WHERE item.delete_time IS NOT NULL"""
    for level, above in pairwise(LEVELS)
)
"""The deleted items of the level above."""
