-- The schema with its grants, as the migrations make it: to be read, and held equal to them by a test.
-- Renewed by `make schema`. Of the labels, only those of INTERNAL are here: the others are like them.
-- Which dictionary a text search configuration takes for which kind of word is left out.

CREATE SCHEMA muniment_auditor;

CREATE SCHEMA muniment_control;

CREATE SCHEMA muniment_eraser;

CREATE SCHEMA muniment_internal;

CREATE SCHEMA muniment_internal_trusted;

CREATE SCHEMA vault;

CREATE FUNCTION vault.clock() RETURNS timestamp with time zone
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN now();

CREATE TEXT SEARCH DICTIONARY vault.arabic (
    TEMPLATE = pg_catalog.snowball,
    language = 'arabic' );

CREATE TEXT SEARCH DICTIONARY vault.armenian (
    TEMPLATE = pg_catalog.snowball,
    language = 'armenian' );

CREATE TEXT SEARCH DICTIONARY vault.basque (
    TEMPLATE = pg_catalog.snowball,
    language = 'basque' );

CREATE TEXT SEARCH DICTIONARY vault.catalan (
    TEMPLATE = pg_catalog.snowball,
    language = 'catalan' );

CREATE TEXT SEARCH DICTIONARY vault.danish (
    TEMPLATE = pg_catalog.snowball,
    language = 'danish' );

CREATE TEXT SEARCH DICTIONARY vault.dutch (
    TEMPLATE = pg_catalog.snowball,
    language = 'dutch' );

CREATE TEXT SEARCH DICTIONARY vault.english (
    TEMPLATE = pg_catalog.snowball,
    language = 'english' );

CREATE TEXT SEARCH DICTIONARY vault.finnish (
    TEMPLATE = pg_catalog.snowball,
    language = 'finnish' );

CREATE TEXT SEARCH DICTIONARY vault.french (
    TEMPLATE = pg_catalog.snowball,
    language = 'french' );

CREATE TEXT SEARCH DICTIONARY vault.german (
    TEMPLATE = pg_catalog.snowball,
    language = 'german' );

CREATE TEXT SEARCH DICTIONARY vault.greek (
    TEMPLATE = pg_catalog.snowball,
    language = 'greek' );

CREATE TEXT SEARCH DICTIONARY vault.hindi (
    TEMPLATE = pg_catalog.snowball,
    language = 'hindi' );

CREATE TEXT SEARCH DICTIONARY vault.hungarian (
    TEMPLATE = pg_catalog.snowball,
    language = 'hungarian' );

CREATE TEXT SEARCH DICTIONARY vault.indonesian (
    TEMPLATE = pg_catalog.snowball,
    language = 'indonesian' );

CREATE TEXT SEARCH DICTIONARY vault.irish (
    TEMPLATE = pg_catalog.snowball,
    language = 'irish' );

CREATE TEXT SEARCH DICTIONARY vault.italian (
    TEMPLATE = pg_catalog.snowball,
    language = 'italian' );

CREATE TEXT SEARCH DICTIONARY vault.lithuanian (
    TEMPLATE = pg_catalog.snowball,
    language = 'lithuanian' );

CREATE TEXT SEARCH DICTIONARY vault.nepali (
    TEMPLATE = pg_catalog.snowball,
    language = 'nepali' );

CREATE TEXT SEARCH DICTIONARY vault.norwegian (
    TEMPLATE = pg_catalog.snowball,
    language = 'norwegian' );

CREATE TEXT SEARCH DICTIONARY vault.portuguese (
    TEMPLATE = pg_catalog.snowball,
    language = 'portuguese' );

CREATE TEXT SEARCH DICTIONARY vault.romanian (
    TEMPLATE = pg_catalog.snowball,
    language = 'romanian' );

CREATE TEXT SEARCH DICTIONARY vault.russian (
    TEMPLATE = pg_catalog.snowball,
    language = 'russian' );

CREATE TEXT SEARCH DICTIONARY vault.serbian (
    TEMPLATE = pg_catalog.snowball,
    language = 'serbian' );

CREATE TEXT SEARCH DICTIONARY vault.spanish (
    TEMPLATE = pg_catalog.snowball,
    language = 'spanish' );

CREATE TEXT SEARCH DICTIONARY vault.swedish (
    TEMPLATE = pg_catalog.snowball,
    language = 'swedish' );

CREATE TEXT SEARCH DICTIONARY vault.tamil (
    TEMPLATE = pg_catalog.snowball,
    language = 'tamil' );

CREATE TEXT SEARCH DICTIONARY vault.turkish (
    TEMPLATE = pg_catalog.snowball,
    language = 'turkish' );

CREATE TEXT SEARCH DICTIONARY vault.yiddish (
    TEMPLATE = pg_catalog.snowball,
    language = 'yiddish' );

CREATE TEXT SEARCH CONFIGURATION vault.arabic (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.armenian (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.basque (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.catalan (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.danish (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.dutch (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.english (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.finnish (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.french (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.german (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.greek (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.hindi (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.hungarian (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.indonesian (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.irish (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.italian (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.lithuanian (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.nepali (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.norwegian (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.portuguese (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.romanian (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.russian (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.serbian (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.simple (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.spanish (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.swedish (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.tamil (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.turkish (
    PARSER = pg_catalog."default" );

CREATE TEXT SEARCH CONFIGURATION vault.yiddish (
    PARSER = pg_catalog."default" );

CREATE TABLE muniment_control.audit (
    tenant bigint NOT NULL,
    agent bigint,
    level smallint NOT NULL,
    event_id uuid NOT NULL,
    "time" timestamp with time zone DEFAULT vault.clock() NOT NULL,
    written_by xid8 DEFAULT pg_current_xact_id() NOT NULL,
    host_key_id uuid,
    session_id uuid,
    method text NOT NULL,
    outcome text NOT NULL,
    kind smallint,
    item_id uuid,
    revision integer,
    reason text,
    trusted boolean DEFAULT false NOT NULL,
    CONSTRAINT level_is_a_level CHECK (((level >= 1) AND (level <= 4)))
);

CREATE TABLE muniment_internal.audit (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    level smallint DEFAULT 2 NOT NULL,
    event_id uuid NOT NULL,
    "time" timestamp with time zone DEFAULT vault.clock() NOT NULL,
    written_by xid8 DEFAULT pg_current_xact_id() NOT NULL,
    session_id uuid NOT NULL,
    method text NOT NULL,
    outcome text NOT NULL,
    kind smallint,
    item_id uuid,
    revision integer,
    result_count integer,
    CONSTRAINT audit_is_internal CHECK ((level = 2))
);

CREATE TABLE muniment_internal_trusted.audit (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    level smallint DEFAULT 2 NOT NULL,
    event_id uuid NOT NULL,
    "time" timestamp with time zone DEFAULT vault.clock() NOT NULL,
    written_by xid8 DEFAULT pg_current_xact_id() NOT NULL,
    session_id uuid NOT NULL,
    method text NOT NULL,
    outcome text NOT NULL,
    kind smallint,
    item_id uuid,
    revision integer,
    result_count integer,
    CONSTRAINT audit_is_internal CHECK ((level = 2)),
    CONSTRAINT time_is_finite CHECK ((("time" > '2000-01-01 00:00:00+00'::timestamp with time zone) AND ("time" < '9000-01-01 00:00:00+00'::timestamp with time zone)))
);

CREATE VIEW muniment_auditor.audit WITH (security_invoker='true') AS
 SELECT audit.tenant,
    audit.agent,
    audit.level,
    audit.event_id,
    audit."time",
    NULL::uuid AS host_key_id,
    audit.session_id,
    audit.method,
    audit.outcome,
    audit.kind,
    audit.item_id,
    audit.revision,
    audit.result_count,
    NULL::text AS reason,
    false AS by_host,
    audit.level AS chain
   FROM muniment_public.audit
UNION ALL
 SELECT audit.tenant,
    audit.agent,
    audit.level,
    audit.event_id,
    audit."time",
    NULL::uuid AS host_key_id,
    audit.session_id,
    audit.method,
    audit.outcome,
    audit.kind,
    audit.item_id,
    audit.revision,
    audit.result_count,
    NULL::text AS reason,
    false AS by_host,
    audit.level AS chain
   FROM muniment_internal.audit
UNION ALL
 SELECT audit.tenant,
    audit.agent,
    audit.level,
    audit.event_id,
    audit."time",
    NULL::uuid AS host_key_id,
    audit.session_id,
    audit.method,
    audit.outcome,
    audit.kind,
    audit.item_id,
    audit.revision,
    audit.result_count,
    NULL::text AS reason,
    false AS by_host,
    audit.level AS chain
   FROM muniment_confidential.audit
UNION ALL
 SELECT audit.tenant,
    audit.agent,
    audit.level,
    audit.event_id,
    audit."time",
    NULL::uuid AS host_key_id,
    audit.session_id,
    audit.method,
    audit.outcome,
    audit.kind,
    audit.item_id,
    audit.revision,
    audit.result_count,
    NULL::text AS reason,
    false AS by_host,
    audit.level AS chain
   FROM muniment_restricted.audit
UNION ALL
 SELECT audit.tenant,
    audit.agent,
    audit.level,
    audit.event_id,
    audit."time",
    NULL::uuid AS host_key_id,
    audit.session_id,
    audit.method,
    audit.outcome,
    audit.kind,
    audit.item_id,
    audit.revision,
    audit.result_count,
    NULL::text AS reason,
    false AS by_host,
    ((audit.level + 4))::smallint AS chain
   FROM muniment_public_trusted.audit
UNION ALL
 SELECT audit.tenant,
    audit.agent,
    audit.level,
    audit.event_id,
    audit."time",
    NULL::uuid AS host_key_id,
    audit.session_id,
    audit.method,
    audit.outcome,
    audit.kind,
    audit.item_id,
    audit.revision,
    audit.result_count,
    NULL::text AS reason,
    false AS by_host,
    ((audit.level + 4))::smallint AS chain
   FROM muniment_internal_trusted.audit
UNION ALL
 SELECT audit.tenant,
    audit.agent,
    audit.level,
    audit.event_id,
    audit."time",
    NULL::uuid AS host_key_id,
    audit.session_id,
    audit.method,
    audit.outcome,
    audit.kind,
    audit.item_id,
    audit.revision,
    audit.result_count,
    NULL::text AS reason,
    false AS by_host,
    ((audit.level + 4))::smallint AS chain
   FROM muniment_confidential_trusted.audit
UNION ALL
 SELECT audit.tenant,
    audit.agent,
    audit.level,
    audit.event_id,
    audit."time",
    NULL::uuid AS host_key_id,
    audit.session_id,
    audit.method,
    audit.outcome,
    audit.kind,
    audit.item_id,
    audit.revision,
    audit.result_count,
    NULL::text AS reason,
    false AS by_host,
    ((audit.level + 4))::smallint AS chain
   FROM muniment_restricted_trusted.audit
UNION ALL
 SELECT audit.tenant,
    audit.agent,
    audit.level,
    audit.event_id,
    audit."time",
    audit.host_key_id,
    audit.session_id,
    audit.method,
    audit.outcome,
    audit.kind,
    audit.item_id,
    audit.revision,
    NULL::integer AS result_count,
    audit.reason,
    true AS by_host,
    ((audit.level + (4 * (audit.trusted)::integer)))::smallint AS chain
   FROM muniment_control.audit;

CREATE TABLE muniment_auditor.seal (
    tenant bigint NOT NULL,
    level smallint NOT NULL,
    number bigint NOT NULL,
    "time" timestamp with time zone NOT NULL,
    by_host boolean NOT NULL,
    event_count bigint NOT NULL,
    events_hash bytea NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT it_seals_an_event CHECK ((event_count >= 1)),
    CONSTRAINT level_is_a_chain CHECK (((level >= 1) AND (level <= 8))),
    CONSTRAINT seals_are_counted_from_1 CHECK (((number >= 1) AND (number <= '9007199254740991'::bigint)))
);

CREATE TABLE muniment_auditor.sealed_event (
    tenant bigint NOT NULL,
    level smallint NOT NULL,
    number bigint NOT NULL,
    by_host boolean NOT NULL,
    event_id uuid NOT NULL,
    CONSTRAINT level_is_a_chain CHECK (((level >= 1) AND (level <= 8)))
);

CREATE TABLE vault.conversation (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    conversation_id text NOT NULL COLLATE pg_catalog."C",
    taint smallint NOT NULL,
    create_time timestamp with time zone DEFAULT vault.clock() NOT NULL,
    fence smallint DEFAULT 0 NOT NULL,
    ceiling smallint DEFAULT 4 NOT NULL,
    trusted boolean DEFAULT false NOT NULL,
    CONSTRAINT ceiling_is_a_level CHECK (((ceiling >= taint) AND (ceiling <= 4))),
    CONSTRAINT fence_is_empty CHECK ((fence = 0)),
    CONSTRAINT taint_is_a_level CHECK (((taint >= 1) AND (taint <= 4)))
);

CREATE TABLE vault.session (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    session_id uuid NOT NULL,
    conversation_id text NOT NULL COLLATE pg_catalog."C",
    token_hash bytea NOT NULL,
    create_time timestamp with time zone DEFAULT vault.clock() NOT NULL,
    expire_time timestamp with time zone NOT NULL,
    close_time timestamp with time zone,
    level smallint DEFAULT 4 NOT NULL,
    fence smallint DEFAULT 0 NOT NULL,
    ceiling smallint DEFAULT 4 NOT NULL,
    trusted boolean DEFAULT false NOT NULL,
    read_only boolean DEFAULT false NOT NULL,
    renew_time timestamp with time zone,
    CONSTRAINT fence_is_empty CHECK ((fence = 0)),
    CONSTRAINT level_is_a_level CHECK (((level >= 1) AND (level <= 4)))
);

CREATE TABLE vault.agent (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    agent_id text NOT NULL COLLATE pg_catalog."C",
    display_name text NOT NULL,
    language text NOT NULL,
    memory_enabled boolean NOT NULL,
    user_profile_enabled boolean NOT NULL,
    memory_char_limit integer NOT NULL,
    user_char_limit integer NOT NULL,
    create_time timestamp with time zone DEFAULT vault.clock() NOT NULL,
    update_time timestamp with time zone DEFAULT vault.clock() NOT NULL,
    delete_time timestamp with time zone,
    calls_per_second integer DEFAULT 2000 NOT NULL,
    max_items bigint DEFAULT 1000000 NOT NULL,
    max_bytes bigint DEFAULT '4294967296'::bigint NOT NULL,
    max_revisions integer DEFAULT 100000 NOT NULL,
    ceiling smallint DEFAULT 4 NOT NULL,
    known_from smallint DEFAULT 4 NOT NULL,
    held boolean DEFAULT false NOT NULL,
    memory_ttl interval DEFAULT '00:00:00'::interval NOT NULL,
    passage_ttl interval DEFAULT '00:00:00'::interval NOT NULL,
    CONSTRAINT ceiling_is_a_level CHECK (((ceiling >= 1) AND (ceiling <= 4))),
    CONSTRAINT held_agents_stay CHECK (((NOT held) OR (delete_time IS NULL))),
    CONSTRAINT known_from_is_a_level CHECK (((known_from >= 1) AND (known_from <= ceiling))),
    CONSTRAINT ttls_are_not_negative CHECK (((memory_ttl >= '00:00:00'::interval) AND (passage_ttl >= '00:00:00'::interval)))
);

CREATE TABLE vault.erasure (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    erasure_id uuid NOT NULL,
    kind smallint NOT NULL,
    ceiling smallint NOT NULL,
    create_time timestamp with time zone DEFAULT vault.clock() NOT NULL
);

CREATE TABLE vault.block_link (
    tenant bigint NOT NULL,
    owner bigint NOT NULL,
    label text NOT NULL COLLATE pg_catalog."C",
    consumer bigint NOT NULL,
    CONSTRAINT nobody_consumes_its_own CHECK ((consumer <> owner))
);

CREATE TABLE muniment_internal.item (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    kind smallint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    level smallint DEFAULT 2 NOT NULL,
    item_id uuid NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    change_id uuid NOT NULL,
    tier smallint DEFAULT 1 NOT NULL,
    content text NOT NULL,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    thread text COLLATE pg_catalog."C",
    author text,
    event_time timestamp with time zone,
    create_time timestamp with time zone DEFAULT vault.clock() NOT NULL,
    update_time timestamp with time zone DEFAULT vault.clock() NOT NULL,
    expire_time timestamp with time zone,
    delete_time timestamp with time zone,
    CONSTRAINT expires_after_it_is_written CHECK ((expire_time > update_time)),
    CONSTRAINT item_is_internal CHECK ((level = 2)),
    CONSTRAINT kind_is_known CHECK (((kind >= 1) AND (kind <= 4))),
    CONSTRAINT only_blocks_may_be_empty CHECK (((content <> ''::text) OR (kind = 3))),
    CONSTRAINT only_memories_and_passages_expire CHECK (((expire_time IS NULL) OR (kind = ANY (ARRAY[1, 4])))),
    CONSTRAINT only_notes_have_a_second_tier CHECK (((tier = 1) OR ((kind = 2) AND (tier = 2)))),
    CONSTRAINT only_passages_have_thread_and_author CHECK (((kind = 4) OR ((thread IS NULL) AND (author IS NULL)))),
    CONSTRAINT passages_have_an_event_time CHECK (((kind = 4) = (event_time IS NOT NULL)))
);

CREATE TABLE muniment_internal_trusted.item (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    kind smallint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    level smallint DEFAULT 2 NOT NULL,
    item_id uuid NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    change_id uuid NOT NULL,
    tier smallint DEFAULT 1 NOT NULL,
    content text NOT NULL,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    thread text COLLATE pg_catalog."C",
    author text,
    event_time timestamp with time zone,
    create_time timestamp with time zone DEFAULT vault.clock() NOT NULL,
    update_time timestamp with time zone DEFAULT vault.clock() NOT NULL,
    expire_time timestamp with time zone,
    delete_time timestamp with time zone,
    CONSTRAINT expires_after_it_is_written CHECK ((expire_time > update_time)),
    CONSTRAINT item_is_internal CHECK ((level = 2)),
    CONSTRAINT kind_is_known CHECK (((kind >= 1) AND (kind <= 4))),
    CONSTRAINT only_blocks_may_be_empty CHECK (((content <> ''::text) OR (kind = 3))),
    CONSTRAINT only_memories_and_passages_expire CHECK (((expire_time IS NULL) OR (kind = ANY (ARRAY[1, 4])))),
    CONSTRAINT only_notes_have_a_second_tier CHECK (((tier = 1) OR ((kind = 2) AND (tier = 2)))),
    CONSTRAINT only_passages_have_thread_and_author CHECK (((kind = 4) OR ((thread IS NULL) AND (author IS NULL)))),
    CONSTRAINT passages_have_an_event_time CHECK (((kind = 4) = (event_time IS NOT NULL)))
);

CREATE TABLE muniment_internal.chunk (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    kind smallint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    level smallint DEFAULT 2 NOT NULL,
    change_id uuid NOT NULL,
    piece integer NOT NULL,
    is_whole boolean NOT NULL,
    start integer NOT NULL,
    size integer NOT NULL,
    tier smallint NOT NULL,
    tags text[] NOT NULL,
    thread text COLLATE pg_catalog."C",
    place text COLLATE pg_catalog."C",
    event_time timestamp with time zone,
    expire_time timestamp with time zone,
    sample integer NOT NULL,
    language text NOT NULL COLLATE pg_catalog."C",
    stems tsvector NOT NULL,
    grams tsvector NOT NULL,
    stem_count integer NOT NULL,
    gram_count integer NOT NULL,
    CONSTRAINT blocks_are_not_searched CHECK ((kind = ANY (ARRAY[1, 2, 4]))),
    CONSTRAINT chunk_is_internal CHECK ((level = 2))
)
WITH (toast_tuple_target='8160');

CREATE TABLE muniment_internal_trusted.chunk (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    kind smallint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    level smallint DEFAULT 2 NOT NULL,
    change_id uuid NOT NULL,
    piece integer NOT NULL,
    is_whole boolean NOT NULL,
    start integer NOT NULL,
    size integer NOT NULL,
    tier smallint NOT NULL,
    tags text[] NOT NULL,
    thread text COLLATE pg_catalog."C",
    place text COLLATE pg_catalog."C",
    event_time timestamp with time zone,
    expire_time timestamp with time zone,
    sample integer NOT NULL,
    language text NOT NULL COLLATE pg_catalog."C",
    stems tsvector NOT NULL,
    grams tsvector NOT NULL,
    stem_count integer NOT NULL,
    gram_count integer NOT NULL,
    CONSTRAINT blocks_are_not_searched CHECK ((kind = ANY (ARRAY[1, 2, 4]))),
    CONSTRAINT chunk_is_internal CHECK ((level = 2))
)
WITH (toast_tuple_target='8160');

CREATE TABLE muniment_internal.embedding_list (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    kind smallint NOT NULL,
    level smallint DEFAULT 2 NOT NULL,
    embedder smallint NOT NULL,
    number integer NOT NULL,
    signs bit(384),
    version integer DEFAULT 0 NOT NULL,
    is_retired boolean DEFAULT false NOT NULL,
    CONSTRAINT embedding_list_is_internal CHECK ((level = 2)),
    CONSTRAINT no_other_level_has_the_number CHECK (((number % 4) = (2 % 4)))
);

CREATE TABLE muniment_internal_trusted.embedding_list (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    kind smallint NOT NULL,
    level smallint DEFAULT 2 NOT NULL,
    embedder smallint NOT NULL,
    number integer NOT NULL,
    signs bit(384),
    version integer DEFAULT 0 NOT NULL,
    is_retired boolean DEFAULT false NOT NULL,
    CONSTRAINT embedding_list_is_internal CHECK ((level = 2)),
    CONSTRAINT no_other_label_has_the_number CHECK (((number < 0) AND (((- number) % 4) = (2 % 4))))
);

CREATE TABLE muniment_internal.meaning (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    kind smallint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    level smallint DEFAULT 2 NOT NULL,
    change_id uuid NOT NULL,
    piece integer NOT NULL,
    prior uuid,
    embedder smallint,
    signs bit(384),
    vector smallint[],
    list integer,
    CONSTRAINT meaning_is_internal CHECK ((level = 2)),
    CONSTRAINT meaning_waits_or_is_whole CHECK ((num_nulls(embedder, signs, vector) = ANY (ARRAY[0, 3])))
);

CREATE TABLE muniment_internal_trusted.meaning (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    kind smallint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    level smallint DEFAULT 2 NOT NULL,
    change_id uuid NOT NULL,
    piece integer NOT NULL,
    prior uuid,
    embedder smallint,
    signs bit(384),
    vector smallint[],
    list integer,
    CONSTRAINT meaning_is_internal CHECK ((level = 2)),
    CONSTRAINT meaning_waits_or_is_whole CHECK ((num_nulls(embedder, signs, vector) = ANY (ARRAY[0, 3])))
);

CREATE TABLE muniment_internal.remote_embedding (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    kind smallint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    level smallint DEFAULT 2 NOT NULL,
    change_id uuid NOT NULL,
    number integer NOT NULL,
    model integer NOT NULL,
    is_missing boolean NOT NULL,
    prior_name text COLLATE pg_catalog."C",
    signs bit varying,
    vector smallint[],
    CONSTRAINT remote_embedding_is_internal CHECK ((level = 2)),
    CONSTRAINT remote_embedding_waits_or_is_whole CHECK ((num_nulls(signs, vector) = ANY (ARRAY[0, 2])))
);

CREATE TABLE muniment_internal_trusted.remote_embedding (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    kind smallint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    level smallint DEFAULT 2 NOT NULL,
    change_id uuid NOT NULL,
    number integer NOT NULL,
    model integer NOT NULL,
    is_missing boolean NOT NULL,
    prior_name text COLLATE pg_catalog."C",
    signs bit varying,
    vector smallint[],
    CONSTRAINT remote_embedding_is_internal CHECK ((level = 2)),
    CONSTRAINT remote_embedding_waits_or_is_whole CHECK ((num_nulls(signs, vector) = ANY (ARRAY[0, 2])))
);

CREATE TABLE muniment_internal.revision (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    item_id uuid NOT NULL,
    revision integer NOT NULL,
    change_id uuid NOT NULL,
    kind smallint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    content text NOT NULL,
    tags text[] NOT NULL,
    update_time timestamp with time zone NOT NULL,
    expire_time timestamp with time zone
);

CREATE TABLE muniment_internal_trusted.revision (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    item_id uuid NOT NULL,
    revision integer NOT NULL,
    change_id uuid NOT NULL,
    kind smallint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    content text NOT NULL,
    tags text[] NOT NULL,
    update_time timestamp with time zone NOT NULL,
    expire_time timestamp with time zone
);

CREATE TABLE muniment_internal.stat (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    kind smallint NOT NULL,
    language text NOT NULL COLLATE pg_catalog."C",
    change_id uuid NOT NULL,
    chunks bigint NOT NULL,
    stems bigint NOT NULL,
    grams bigint NOT NULL,
    fence smallint DEFAULT 0 NOT NULL
);

CREATE TABLE muniment_internal_trusted.stat (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    kind smallint NOT NULL,
    language text NOT NULL COLLATE pg_catalog."C",
    change_id uuid NOT NULL,
    chunks bigint NOT NULL,
    stems bigint NOT NULL,
    grams bigint NOT NULL,
    fence smallint DEFAULT 0 NOT NULL
);

CREATE TABLE muniment_control.erased_agent (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    ceiling smallint NOT NULL,
    CONSTRAINT ceiling_is_a_level CHECK (((ceiling >= 1) AND (ceiling <= 4)))
);

CREATE TABLE vault.host_key (
    tenant bigint NOT NULL,
    host_key_id uuid NOT NULL,
    key_hash bytea NOT NULL,
    ceiling smallint NOT NULL,
    create_time timestamp with time zone DEFAULT vault.clock() NOT NULL,
    revoke_time timestamp with time zone,
    freeze_time timestamp with time zone,
    expire_time timestamp with time zone,
    only_service text,
    name text COLLATE pg_catalog."C",
    issuer text COLLATE pg_catalog."C",
    audience text COLLATE pg_catalog."C",
    subject text COLLATE pg_catalog."C",
    keys text COLLATE pg_catalog."C",
    trusted boolean DEFAULT true NOT NULL,
    may_declassify boolean DEFAULT false NOT NULL,
    may_endorse boolean DEFAULT false NOT NULL,
    CONSTRAINT ceiling_is_a_level CHECK (((ceiling >= 1) AND (ceiling <= 4))),
    CONSTRAINT identity_is_whole CHECK ((num_nulls(issuer, audience, subject, keys) = ANY (ARRAY[0, 4]))),
    CONSTRAINT name_not_empty CHECK ((name <> ''::text)),
    CONSTRAINT untrusted_keys_are_for_sessions CHECK ((trusted OR (NOT (only_service IS DISTINCT FROM 'SessionService'::text))))
);

CREATE VIEW muniment_control.host_key WITH (security_invoker='true') AS
 SELECT tenant,
    host_key_id,
    key_hash,
    ceiling,
    only_service,
    trusted
   FROM vault.host_key
  WHERE ((revoke_time IS NULL) AND (freeze_time IS NULL) AND ((expire_time IS NULL) OR (expire_time > vault.clock())));

CREATE VIEW muniment_control.session WITH (security_invoker='true') AS
 SELECT session.tenant,
    session.agent,
    session.session_id,
    session.conversation_id,
    conversation.taint,
    session.create_time,
    session.expire_time,
    session.token_hash,
    0 AS fence,
    session.ceiling,
    conversation.trusted,
    session.read_only
   FROM (vault.conversation
     JOIN vault.session USING (tenant, agent, conversation_id, ceiling))
  WHERE ((session.close_time IS NULL) AND (session.expire_time > vault.clock()));

CREATE VIEW muniment_control.unclosed WITH (security_invoker='true') AS
 SELECT session.tenant,
    session.agent,
    session.session_id,
    session.conversation_id,
    conversation.taint,
    session.create_time,
    session.expire_time,
    0 AS fence,
    session.ceiling,
    conversation.trusted,
    session.read_only
   FROM (vault.conversation
     JOIN vault.session USING (tenant, agent, conversation_id, ceiling))
  WHERE ((session.close_time IS NULL) OR (session.close_time = session.expire_time));

CREATE VIEW muniment_eraser.agent WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    ceiling
   FROM vault.agent
  WHERE (delete_time IS NOT NULL);

CREATE VIEW muniment_eraser.conversation WITH (security_barrier='true') AS
 SELECT ctid AS address,
    tenant,
    agent,
    conversation_id
   FROM vault.conversation
  WHERE (EXISTS ( SELECT
           FROM vault.agent
          WHERE (((agent.tenant = conversation.tenant) AND (agent.agent = conversation.agent)) AND (agent.delete_time IS NOT NULL))));

CREATE VIEW muniment_eraser.host_key WITH (security_barrier='true') AS
 SELECT tenant,
    host_key_id
   FROM vault.host_key
  WHERE ((revoke_time IS NULL) AND (freeze_time IS NULL) AND ((expire_time IS NULL) OR (expire_time > vault.clock())));

CREATE VIEW muniment_eraser.session WITH (security_barrier='true') AS
 SELECT ctid AS address,
    tenant,
    agent,
    create_time,
    session_id
   FROM vault.session
  WHERE (EXISTS ( SELECT
           FROM vault.agent
          WHERE (((agent.tenant = session.tenant) AND (agent.agent = session.agent)) AND (agent.delete_time IS NOT NULL))));

CREATE VIEW muniment_internal.session WITH (security_barrier='true') AS
 SELECT session.tenant,
    session.agent,
    session.session_id,
    session.conversation_id,
    conversation.taint,
    session.create_time,
    session.expire_time,
    0 AS fence,
    session.ceiling,
    (4)::smallint AS label,
    session.read_only
   FROM (vault.conversation
     JOIN vault.session USING (tenant, agent, conversation_id, ceiling))
  WHERE ((conversation.taint = 2) AND (conversation.trusted = false) AND (session.close_time IS NULL) AND (session.expire_time > vault.clock()));

CREATE VIEW muniment_internal.agent WITH (security_barrier='true') AS
 SELECT session.tenant,
    session.session_id,
    agent.agent_id,
    agent.language,
    agent.memory_enabled,
    agent.user_profile_enabled,
    agent.memory_char_limit,
    agent.user_char_limit,
    agent.max_items,
    agent.max_bytes,
    agent.max_revisions
   FROM (muniment_internal.session
     JOIN vault.agent USING (tenant, agent));

CREATE VIEW muniment_internal.deleted_item WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    name,
    item_id,
    revision,
    tier,
    content,
    tags,
    thread,
    author,
    event_time,
    create_time,
    expire_time,
    delete_time
   FROM muniment_internal.item
  WHERE (delete_time IS NOT NULL);

CREATE VIEW muniment_internal.erasable_chunk WITH (security_barrier='true') AS
 SELECT ctid AS address,
    tenant,
    agent,
    kind,
    sample
   FROM muniment_internal.chunk
  WHERE (EXISTS ( SELECT
           FROM vault.agent
          WHERE (((agent.tenant = chunk.tenant) AND (agent.agent = chunk.agent)) AND (agent.delete_time IS NOT NULL))));

CREATE VIEW muniment_internal.erasable_item WITH (security_barrier='true') AS
 SELECT ctid AS address,
    tenant,
    agent,
    item_id
   FROM muniment_internal.item
  WHERE (EXISTS ( SELECT
           FROM vault.agent
          WHERE (((agent.tenant = item.tenant) AND (agent.agent = item.agent)) AND (agent.delete_time IS NOT NULL))));

CREATE VIEW muniment_internal.erasable_revision WITH (security_barrier='true') AS
 SELECT ctid AS address,
    tenant,
    agent,
    item_id,
    revision
   FROM muniment_internal.revision
  WHERE (EXISTS ( SELECT
           FROM vault.agent
          WHERE (((agent.tenant = revision.tenant) AND (agent.agent = revision.agent)) AND (agent.delete_time IS NOT NULL))));

CREATE VIEW muniment_internal.erasable_stat WITH (security_barrier='true') AS
 SELECT ctid AS address,
    tenant,
    agent,
    kind,
    language,
    change_id
   FROM muniment_internal.stat
  WHERE (EXISTS ( SELECT
           FROM vault.agent
          WHERE (((agent.tenant = stat.tenant) AND (agent.agent = stat.agent)) AND (agent.delete_time IS NOT NULL))));

CREATE TABLE muniment_internal.storage (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    change_id uuid NOT NULL,
    items bigint NOT NULL,
    versions bigint NOT NULL,
    bytes bigint NOT NULL,
    fence smallint DEFAULT 0 NOT NULL
);

CREATE VIEW muniment_internal.erasable_storage WITH (security_barrier='true') AS
 SELECT ctid AS address,
    tenant,
    agent,
    change_id
   FROM muniment_internal.storage
  WHERE (EXISTS ( SELECT
           FROM vault.agent
          WHERE (((agent.tenant = storage.tenant) AND (agent.agent = storage.agent)) AND (agent.delete_time IS NOT NULL))));

CREATE VIEW muniment_internal.erasing_chunk WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    name,
    change_id,
    language,
    stem_count,
    gram_count
   FROM muniment_internal.chunk
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = chunk.tenant) AND (erasure.agent = chunk.agent) AND (erasure.kind = chunk.kind)) AND (erasure.ceiling >= 2))));

CREATE VIEW muniment_internal.erasing_embedding WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    prior,
    embedder,
    signs,
    vector,
    list
   FROM muniment_internal.meaning
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = meaning.tenant) AND (erasure.agent = meaning.agent) AND (erasure.kind = meaning.kind)) AND (erasure.ceiling >= 2))));

CREATE VIEW muniment_internal.erasing_embedding_list WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    embedder,
    number,
    signs,
    version
   FROM muniment_internal.embedding_list
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = embedding_list.tenant) AND (erasure.agent = embedding_list.agent) AND (erasure.kind = embedding_list.kind)) AND (erasure.ceiling >= 2))));

CREATE VIEW muniment_internal.erasing_item WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    name,
    item_id,
    revision,
    change_id,
    tags,
    delete_time,
    octet_length(content) AS bytes,
    0 AS fence
   FROM muniment_internal.item
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = item.tenant) AND (erasure.agent = item.agent) AND (erasure.kind = item.kind)) AND (erasure.ceiling >= 2))));

CREATE VIEW muniment_internal.erasing_remote_embedding WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    prior_name
   FROM muniment_internal.remote_embedding
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = remote_embedding.tenant) AND (erasure.agent = remote_embedding.agent) AND (erasure.kind = remote_embedding.kind)) AND (erasure.ceiling >= 2))));

CREATE VIEW muniment_internal.erasing_revision WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    name,
    item_id,
    revision,
    tags,
    octet_length(content) AS bytes
   FROM muniment_internal.revision
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = revision.tenant) AND (erasure.agent = revision.agent) AND (erasure.kind = revision.kind)) AND (erasure.ceiling >= 2))));

CREATE VIEW muniment_internal.erasing_stat WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    language,
    change_id,
    chunks,
    stems,
    grams
   FROM muniment_internal.stat
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = stat.tenant) AND (erasure.agent = stat.agent) AND (erasure.kind = stat.kind)) AND (erasure.ceiling >= 2))))
  WITH CASCADED CHECK OPTION;

CREATE VIEW muniment_internal.erasing_storage WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    change_id,
    items,
    versions,
    bytes
   FROM muniment_internal.storage
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = storage.tenant) AND (erasure.agent = storage.agent)) AND (erasure.ceiling >= 2))))
  WITH CASCADED CHECK OPTION;

CREATE VIEW muniment_internal.link WITH (security_barrier='true') AS
 SELECT session.tenant,
    session.session_id,
    block_link.owner,
    block_link.label,
    agent.agent_id AS owner_agent_id
   FROM ((muniment_internal.session
     JOIN vault.block_link ON (((block_link.tenant = session.tenant) AND (block_link.consumer = session.agent))))
     JOIN vault.agent ON (((agent.tenant = block_link.tenant) AND (agent.agent = block_link.owner))))
  WHERE (agent.known_from <= session.ceiling);

CREATE VIEW muniment_internal.visible WITH (security_invoker='true') AS
 SELECT tenant,
    agent,
    kind,
    name,
    level,
    item_id,
    revision,
    change_id,
    tier,
    content,
    tags,
    thread,
    author,
    event_time,
    create_time,
    update_time,
    expire_time,
    delete_time,
    label
   FROM ( SELECT item_1.tenant,
            item_1.agent,
            item_1.kind,
            item_1.name,
            item_1.level,
            item_1.item_id,
            item_1.revision,
            item_1.change_id,
            item_1.tier,
            item_1.content,
            item_1.tags,
            item_1.thread,
            item_1.author,
            item_1.event_time,
            item_1.create_time,
            item_1.update_time,
            item_1.expire_time,
            item_1.delete_time,
            (1)::smallint AS label
           FROM muniment_public_trusted.item item_1
        UNION ALL
         SELECT item_1.tenant,
            item_1.agent,
            item_1.kind,
            item_1.name,
            item_1.level,
            item_1.item_id,
            item_1.revision,
            item_1.change_id,
            item_1.tier,
            item_1.content,
            item_1.tags,
            item_1.thread,
            item_1.author,
            item_1.event_time,
            item_1.create_time,
            item_1.update_time,
            item_1.expire_time,
            item_1.delete_time,
            (2)::smallint AS label
           FROM muniment_public.item item_1
        UNION ALL
         SELECT item_1.tenant,
            item_1.agent,
            item_1.kind,
            item_1.name,
            item_1.level,
            item_1.item_id,
            item_1.revision,
            item_1.change_id,
            item_1.tier,
            item_1.content,
            item_1.tags,
            item_1.thread,
            item_1.author,
            item_1.event_time,
            item_1.create_time,
            item_1.update_time,
            item_1.expire_time,
            item_1.delete_time,
            (3)::smallint AS label
           FROM muniment_internal_trusted.item item_1
        UNION ALL
         SELECT item_1.tenant,
            item_1.agent,
            item_1.kind,
            item_1.name,
            item_1.level,
            item_1.item_id,
            item_1.revision,
            item_1.change_id,
            item_1.tier,
            item_1.content,
            item_1.tags,
            item_1.thread,
            item_1.author,
            item_1.event_time,
            item_1.create_time,
            item_1.update_time,
            item_1.expire_time,
            item_1.delete_time,
            (4)::smallint AS label
           FROM muniment_internal.item item_1) item
  WHERE ((delete_time IS NULL) AND ((expire_time IS NULL) OR (expire_time > vault.clock())));

CREATE VIEW muniment_internal.shared_visible WITH (security_invoker='true', security_barrier='true') AS
 SELECT link.session_id,
    link.owner_agent_id,
    visible.tenant,
    visible.agent,
    visible.kind,
    visible.name,
    visible.level,
    visible.item_id,
    visible.revision,
    visible.change_id,
    visible.tier,
    visible.content,
    visible.tags,
    visible.thread,
    visible.author,
    visible.event_time,
    visible.create_time,
    visible.update_time,
    visible.expire_time,
    visible.delete_time,
    visible.label
   FROM (muniment_internal.link
     JOIN muniment_internal.visible ON (((visible.tenant = link.tenant) AND (visible.agent = link.owner) AND (visible.kind = 3) AND (visible.name = link.label))));

CREATE TABLE muniment_internal.shelf (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    fence smallint DEFAULT 0 NOT NULL
);

CREATE VIEW muniment_internal.storage_size WITH (security_invoker='true') AS
 SELECT storage.tenant,
    storage.agent,
    storage.items,
    (storage.bytes + (256 * storage.versions)) AS bytes
   FROM muniment_internal.storage
UNION ALL
 SELECT stat.tenant,
    stat.agent,
    0 AS items,
    (((1500 * stat.chunks) + (20 * stat.stems)) + (20 * stat.grams)) AS bytes
   FROM muniment_internal.stat;

CREATE VIEW muniment_internal.visible_chunk WITH (security_invoker='true') AS
 SELECT tenant,
    agent,
    kind,
    name,
    level,
    change_id,
    piece,
    is_whole,
    start,
    size,
    tier,
    tags,
    thread,
    place,
    event_time,
    expire_time,
    sample,
    language,
    stems,
    grams,
    stem_count,
    gram_count,
    label
   FROM ( SELECT chunk_1.tenant,
            chunk_1.agent,
            chunk_1.kind,
            chunk_1.name,
            chunk_1.level,
            chunk_1.change_id,
            chunk_1.piece,
            chunk_1.is_whole,
            chunk_1.start,
            chunk_1.size,
            chunk_1.tier,
            chunk_1.tags,
            chunk_1.thread,
            chunk_1.place,
            chunk_1.event_time,
            chunk_1.expire_time,
            chunk_1.sample,
            chunk_1.language,
            chunk_1.stems,
            chunk_1.grams,
            chunk_1.stem_count,
            chunk_1.gram_count,
            (1)::smallint AS label
           FROM muniment_public_trusted.chunk chunk_1
        UNION ALL
         SELECT chunk_1.tenant,
            chunk_1.agent,
            chunk_1.kind,
            chunk_1.name,
            chunk_1.level,
            chunk_1.change_id,
            chunk_1.piece,
            chunk_1.is_whole,
            chunk_1.start,
            chunk_1.size,
            chunk_1.tier,
            chunk_1.tags,
            chunk_1.thread,
            chunk_1.place,
            chunk_1.event_time,
            chunk_1.expire_time,
            chunk_1.sample,
            chunk_1.language,
            chunk_1.stems,
            chunk_1.grams,
            chunk_1.stem_count,
            chunk_1.gram_count,
            (2)::smallint AS label
           FROM muniment_public.chunk chunk_1
        UNION ALL
         SELECT chunk_1.tenant,
            chunk_1.agent,
            chunk_1.kind,
            chunk_1.name,
            chunk_1.level,
            chunk_1.change_id,
            chunk_1.piece,
            chunk_1.is_whole,
            chunk_1.start,
            chunk_1.size,
            chunk_1.tier,
            chunk_1.tags,
            chunk_1.thread,
            chunk_1.place,
            chunk_1.event_time,
            chunk_1.expire_time,
            chunk_1.sample,
            chunk_1.language,
            chunk_1.stems,
            chunk_1.grams,
            chunk_1.stem_count,
            chunk_1.gram_count,
            (3)::smallint AS label
           FROM muniment_internal_trusted.chunk chunk_1
        UNION ALL
         SELECT chunk_1.tenant,
            chunk_1.agent,
            chunk_1.kind,
            chunk_1.name,
            chunk_1.level,
            chunk_1.change_id,
            chunk_1.piece,
            chunk_1.is_whole,
            chunk_1.start,
            chunk_1.size,
            chunk_1.tier,
            chunk_1.tags,
            chunk_1.thread,
            chunk_1.place,
            chunk_1.event_time,
            chunk_1.expire_time,
            chunk_1.sample,
            chunk_1.language,
            chunk_1.stems,
            chunk_1.grams,
            chunk_1.stem_count,
            chunk_1.gram_count,
            (4)::smallint AS label
           FROM muniment_internal.chunk chunk_1) chunk
  WHERE ((expire_time IS NULL) OR (expire_time > vault.clock()));

CREATE VIEW muniment_internal.visible_embedding_list WITH (security_invoker='true') AS
 SELECT embedding_list.tenant,
    embedding_list.agent,
    embedding_list.kind,
    embedding_list.level,
    embedding_list.embedder,
    embedding_list.number,
    embedding_list.signs,
    embedding_list.version,
    embedding_list.is_retired,
    (1)::smallint AS label
   FROM muniment_public_trusted.embedding_list
UNION ALL
 SELECT embedding_list.tenant,
    embedding_list.agent,
    embedding_list.kind,
    embedding_list.level,
    embedding_list.embedder,
    embedding_list.number,
    embedding_list.signs,
    embedding_list.version,
    embedding_list.is_retired,
    (2)::smallint AS label
   FROM muniment_public.embedding_list
UNION ALL
 SELECT embedding_list.tenant,
    embedding_list.agent,
    embedding_list.kind,
    embedding_list.level,
    embedding_list.embedder,
    embedding_list.number,
    embedding_list.signs,
    embedding_list.version,
    embedding_list.is_retired,
    (3)::smallint AS label
   FROM muniment_internal_trusted.embedding_list
UNION ALL
 SELECT embedding_list.tenant,
    embedding_list.agent,
    embedding_list.kind,
    embedding_list.level,
    embedding_list.embedder,
    embedding_list.number,
    embedding_list.signs,
    embedding_list.version,
    embedding_list.is_retired,
    (4)::smallint AS label
   FROM muniment_internal.embedding_list;

CREATE VIEW muniment_internal.visible_meaning WITH (security_invoker='true') AS
 SELECT meaning.tenant,
    meaning.agent,
    meaning.kind,
    meaning.name,
    meaning.level,
    meaning.change_id,
    meaning.piece,
    meaning.prior,
    meaning.embedder,
    meaning.signs,
    meaning.vector,
    meaning.list,
    (1)::smallint AS label
   FROM muniment_public_trusted.meaning
UNION ALL
 SELECT meaning.tenant,
    meaning.agent,
    meaning.kind,
    meaning.name,
    meaning.level,
    meaning.change_id,
    meaning.piece,
    meaning.prior,
    meaning.embedder,
    meaning.signs,
    meaning.vector,
    meaning.list,
    (2)::smallint AS label
   FROM muniment_public.meaning
UNION ALL
 SELECT meaning.tenant,
    meaning.agent,
    meaning.kind,
    meaning.name,
    meaning.level,
    meaning.change_id,
    meaning.piece,
    meaning.prior,
    meaning.embedder,
    meaning.signs,
    meaning.vector,
    meaning.list,
    (3)::smallint AS label
   FROM muniment_internal_trusted.meaning
UNION ALL
 SELECT meaning.tenant,
    meaning.agent,
    meaning.kind,
    meaning.name,
    meaning.level,
    meaning.change_id,
    meaning.piece,
    meaning.prior,
    meaning.embedder,
    meaning.signs,
    meaning.vector,
    meaning.list,
    (4)::smallint AS label
   FROM muniment_internal.meaning;

CREATE VIEW muniment_internal.visible_remote_embedding WITH (security_invoker='true') AS
 SELECT remote_embedding.tenant,
    remote_embedding.agent,
    remote_embedding.kind,
    remote_embedding.name,
    remote_embedding.level,
    remote_embedding.change_id,
    remote_embedding.number,
    remote_embedding.model,
    remote_embedding.is_missing,
    remote_embedding.prior_name,
    remote_embedding.signs,
    remote_embedding.vector,
    (1)::smallint AS label
   FROM muniment_public_trusted.remote_embedding
UNION ALL
 SELECT remote_embedding.tenant,
    remote_embedding.agent,
    remote_embedding.kind,
    remote_embedding.name,
    remote_embedding.level,
    remote_embedding.change_id,
    remote_embedding.number,
    remote_embedding.model,
    remote_embedding.is_missing,
    remote_embedding.prior_name,
    remote_embedding.signs,
    remote_embedding.vector,
    (2)::smallint AS label
   FROM muniment_public.remote_embedding
UNION ALL
 SELECT remote_embedding.tenant,
    remote_embedding.agent,
    remote_embedding.kind,
    remote_embedding.name,
    remote_embedding.level,
    remote_embedding.change_id,
    remote_embedding.number,
    remote_embedding.model,
    remote_embedding.is_missing,
    remote_embedding.prior_name,
    remote_embedding.signs,
    remote_embedding.vector,
    (3)::smallint AS label
   FROM muniment_internal_trusted.remote_embedding
UNION ALL
 SELECT remote_embedding.tenant,
    remote_embedding.agent,
    remote_embedding.kind,
    remote_embedding.name,
    remote_embedding.level,
    remote_embedding.change_id,
    remote_embedding.number,
    remote_embedding.model,
    remote_embedding.is_missing,
    remote_embedding.prior_name,
    remote_embedding.signs,
    remote_embedding.vector,
    (4)::smallint AS label
   FROM muniment_internal.remote_embedding;

CREATE VIEW muniment_internal.visible_revision WITH (security_invoker='true') AS
 SELECT tenant,
    agent,
    level,
    item_id,
    revision,
    content,
    tags,
    update_time,
    expire_time,
    label
   FROM ( SELECT revision_1.tenant,
            revision_1.agent,
            (1)::smallint AS level,
            revision_1.item_id,
            revision_1.revision,
            revision_1.content,
            revision_1.tags,
            revision_1.update_time,
            revision_1.expire_time,
            (1)::smallint AS label
           FROM muniment_public_trusted.revision revision_1
        UNION ALL
         SELECT revision_1.tenant,
            revision_1.agent,
            (1)::smallint AS level,
            revision_1.item_id,
            revision_1.revision,
            revision_1.content,
            revision_1.tags,
            revision_1.update_time,
            revision_1.expire_time,
            (2)::smallint AS label
           FROM muniment_public.revision revision_1
        UNION ALL
         SELECT revision_1.tenant,
            revision_1.agent,
            (2)::smallint AS level,
            revision_1.item_id,
            revision_1.revision,
            revision_1.content,
            revision_1.tags,
            revision_1.update_time,
            revision_1.expire_time,
            (3)::smallint AS label
           FROM muniment_internal_trusted.revision revision_1
        UNION ALL
         SELECT revision_1.tenant,
            revision_1.agent,
            (2)::smallint AS level,
            revision_1.item_id,
            revision_1.revision,
            revision_1.content,
            revision_1.tags,
            revision_1.update_time,
            revision_1.expire_time,
            (4)::smallint AS label
           FROM muniment_internal.revision revision_1) revision
  WHERE ((expire_time IS NULL) OR (expire_time > vault.clock()));

CREATE VIEW muniment_internal.visible_stat WITH (security_invoker='true') AS
 SELECT stat.tenant,
    stat.agent,
    stat.kind,
    stat.language,
    stat.change_id,
    stat.chunks,
    stat.stems,
    stat.grams,
    stat.fence,
    (1)::smallint AS label
   FROM muniment_public_trusted.stat
UNION ALL
 SELECT stat.tenant,
    stat.agent,
    stat.kind,
    stat.language,
    stat.change_id,
    stat.chunks,
    stat.stems,
    stat.grams,
    stat.fence,
    (2)::smallint AS label
   FROM muniment_public.stat
UNION ALL
 SELECT stat.tenant,
    stat.agent,
    stat.kind,
    stat.language,
    stat.change_id,
    stat.chunks,
    stat.stems,
    stat.grams,
    stat.fence,
    (3)::smallint AS label
   FROM muniment_internal_trusted.stat
UNION ALL
 SELECT stat.tenant,
    stat.agent,
    stat.kind,
    stat.language,
    stat.change_id,
    stat.chunks,
    stat.stems,
    stat.grams,
    stat.fence,
    (4)::smallint AS label
   FROM muniment_internal.stat;

CREATE VIEW muniment_internal_trusted.session WITH (security_barrier='true') AS
 SELECT session.tenant,
    session.agent,
    session.session_id,
    session.conversation_id,
    conversation.taint,
    session.create_time,
    session.expire_time,
    0 AS fence,
    session.ceiling,
    (3)::smallint AS label,
    session.read_only
   FROM (vault.conversation
     JOIN vault.session USING (tenant, agent, conversation_id, ceiling))
  WHERE ((conversation.taint = 2) AND (conversation.trusted = true) AND (session.close_time IS NULL) AND (session.expire_time > vault.clock()));

CREATE VIEW muniment_internal_trusted.agent WITH (security_barrier='true') AS
 SELECT session.tenant,
    session.session_id,
    agent.agent_id,
    agent.language,
    agent.memory_enabled,
    agent.user_profile_enabled,
    agent.memory_char_limit,
    agent.user_char_limit,
    agent.max_items,
    agent.max_bytes,
    agent.max_revisions
   FROM (muniment_internal_trusted.session
     JOIN vault.agent USING (tenant, agent));

CREATE VIEW muniment_internal_trusted.deleted_item WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    name,
    item_id,
    revision,
    tier,
    content,
    tags,
    thread,
    author,
    event_time,
    create_time,
    expire_time,
    delete_time
   FROM muniment_internal_trusted.item
  WHERE (delete_time IS NOT NULL);

CREATE VIEW muniment_internal_trusted.erasable_chunk WITH (security_barrier='true') AS
 SELECT ctid AS address,
    tenant,
    agent,
    kind,
    sample
   FROM muniment_internal_trusted.chunk
  WHERE (EXISTS ( SELECT
           FROM vault.agent
          WHERE (((agent.tenant = chunk.tenant) AND (agent.agent = chunk.agent)) AND (agent.delete_time IS NOT NULL))));

CREATE VIEW muniment_internal_trusted.erasable_item WITH (security_barrier='true') AS
 SELECT ctid AS address,
    tenant,
    agent,
    item_id
   FROM muniment_internal_trusted.item
  WHERE (EXISTS ( SELECT
           FROM vault.agent
          WHERE (((agent.tenant = item.tenant) AND (agent.agent = item.agent)) AND (agent.delete_time IS NOT NULL))));

CREATE VIEW muniment_internal_trusted.erasable_revision WITH (security_barrier='true') AS
 SELECT ctid AS address,
    tenant,
    agent,
    item_id,
    revision
   FROM muniment_internal_trusted.revision
  WHERE (EXISTS ( SELECT
           FROM vault.agent
          WHERE (((agent.tenant = revision.tenant) AND (agent.agent = revision.agent)) AND (agent.delete_time IS NOT NULL))));

CREATE VIEW muniment_internal_trusted.erasable_stat WITH (security_barrier='true') AS
 SELECT ctid AS address,
    tenant,
    agent,
    kind,
    language,
    change_id
   FROM muniment_internal_trusted.stat
  WHERE (EXISTS ( SELECT
           FROM vault.agent
          WHERE (((agent.tenant = stat.tenant) AND (agent.agent = stat.agent)) AND (agent.delete_time IS NOT NULL))));

CREATE TABLE muniment_internal_trusted.storage (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    change_id uuid NOT NULL,
    items bigint NOT NULL,
    versions bigint NOT NULL,
    bytes bigint NOT NULL,
    fence smallint DEFAULT 0 NOT NULL
);

CREATE VIEW muniment_internal_trusted.erasable_storage WITH (security_barrier='true') AS
 SELECT ctid AS address,
    tenant,
    agent,
    change_id
   FROM muniment_internal_trusted.storage
  WHERE (EXISTS ( SELECT
           FROM vault.agent
          WHERE (((agent.tenant = storage.tenant) AND (agent.agent = storage.agent)) AND (agent.delete_time IS NOT NULL))));

CREATE VIEW muniment_internal_trusted.erasing_chunk WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    name,
    change_id,
    language,
    stem_count,
    gram_count
   FROM muniment_internal_trusted.chunk
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = chunk.tenant) AND (erasure.agent = chunk.agent) AND (erasure.kind = chunk.kind)) AND (erasure.ceiling >= 2))));

CREATE VIEW muniment_internal_trusted.erasing_embedding WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    prior,
    embedder,
    signs,
    vector,
    list
   FROM muniment_internal_trusted.meaning
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = meaning.tenant) AND (erasure.agent = meaning.agent) AND (erasure.kind = meaning.kind)) AND (erasure.ceiling >= 2))));

CREATE VIEW muniment_internal_trusted.erasing_embedding_list WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    embedder,
    number,
    signs,
    version
   FROM muniment_internal_trusted.embedding_list
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = embedding_list.tenant) AND (erasure.agent = embedding_list.agent) AND (erasure.kind = embedding_list.kind)) AND (erasure.ceiling >= 2))));

CREATE VIEW muniment_internal_trusted.erasing_item WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    name,
    item_id,
    revision,
    change_id,
    tags,
    delete_time,
    octet_length(content) AS bytes,
    0 AS fence
   FROM muniment_internal_trusted.item
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = item.tenant) AND (erasure.agent = item.agent) AND (erasure.kind = item.kind)) AND (erasure.ceiling >= 2))));

CREATE VIEW muniment_internal_trusted.erasing_remote_embedding WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    prior_name
   FROM muniment_internal_trusted.remote_embedding
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = remote_embedding.tenant) AND (erasure.agent = remote_embedding.agent) AND (erasure.kind = remote_embedding.kind)) AND (erasure.ceiling >= 2))));

CREATE VIEW muniment_internal_trusted.erasing_revision WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    name,
    item_id,
    revision,
    tags,
    octet_length(content) AS bytes
   FROM muniment_internal_trusted.revision
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = revision.tenant) AND (erasure.agent = revision.agent) AND (erasure.kind = revision.kind)) AND (erasure.ceiling >= 2))));

CREATE VIEW muniment_internal_trusted.erasing_stat WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    kind,
    language,
    change_id,
    chunks,
    stems,
    grams
   FROM muniment_internal_trusted.stat
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = stat.tenant) AND (erasure.agent = stat.agent) AND (erasure.kind = stat.kind)) AND (erasure.ceiling >= 2))))
  WITH CASCADED CHECK OPTION;

CREATE VIEW muniment_internal_trusted.erasing_storage WITH (security_barrier='true') AS
 SELECT tenant,
    agent,
    change_id,
    items,
    versions,
    bytes
   FROM muniment_internal_trusted.storage
  WHERE (EXISTS ( SELECT
           FROM vault.erasure
          WHERE (((erasure.tenant = storage.tenant) AND (erasure.agent = storage.agent)) AND (erasure.ceiling >= 2))))
  WITH CASCADED CHECK OPTION;

CREATE VIEW muniment_internal_trusted.link WITH (security_barrier='true') AS
 SELECT session.tenant,
    session.session_id,
    block_link.owner,
    block_link.label,
    agent.agent_id AS owner_agent_id
   FROM ((muniment_internal_trusted.session
     JOIN vault.block_link ON (((block_link.tenant = session.tenant) AND (block_link.consumer = session.agent))))
     JOIN vault.agent ON (((agent.tenant = block_link.tenant) AND (agent.agent = block_link.owner))))
  WHERE (agent.known_from <= session.ceiling);

CREATE VIEW muniment_internal_trusted.visible WITH (security_invoker='true') AS
 SELECT tenant,
    agent,
    kind,
    name,
    level,
    item_id,
    revision,
    change_id,
    tier,
    content,
    tags,
    thread,
    author,
    event_time,
    create_time,
    update_time,
    expire_time,
    delete_time,
    label
   FROM ( SELECT item_1.tenant,
            item_1.agent,
            item_1.kind,
            item_1.name,
            item_1.level,
            item_1.item_id,
            item_1.revision,
            item_1.change_id,
            item_1.tier,
            item_1.content,
            item_1.tags,
            item_1.thread,
            item_1.author,
            item_1.event_time,
            item_1.create_time,
            item_1.update_time,
            item_1.expire_time,
            item_1.delete_time,
            (1)::smallint AS label
           FROM muniment_public_trusted.item item_1
        UNION ALL
         SELECT item_1.tenant,
            item_1.agent,
            item_1.kind,
            item_1.name,
            item_1.level,
            item_1.item_id,
            item_1.revision,
            item_1.change_id,
            item_1.tier,
            item_1.content,
            item_1.tags,
            item_1.thread,
            item_1.author,
            item_1.event_time,
            item_1.create_time,
            item_1.update_time,
            item_1.expire_time,
            item_1.delete_time,
            (3)::smallint AS label
           FROM muniment_internal_trusted.item item_1) item
  WHERE ((delete_time IS NULL) AND ((expire_time IS NULL) OR (expire_time > vault.clock())));

CREATE VIEW muniment_internal_trusted.shared_visible WITH (security_invoker='true', security_barrier='true') AS
 SELECT link.session_id,
    link.owner_agent_id,
    visible.tenant,
    visible.agent,
    visible.kind,
    visible.name,
    visible.level,
    visible.item_id,
    visible.revision,
    visible.change_id,
    visible.tier,
    visible.content,
    visible.tags,
    visible.thread,
    visible.author,
    visible.event_time,
    visible.create_time,
    visible.update_time,
    visible.expire_time,
    visible.delete_time,
    visible.label
   FROM (muniment_internal_trusted.link
     JOIN muniment_internal_trusted.visible ON (((visible.tenant = link.tenant) AND (visible.agent = link.owner) AND (visible.kind = 3) AND (visible.name = link.label))));

CREATE TABLE muniment_internal_trusted.shelf (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    fence smallint DEFAULT 0 NOT NULL
);

CREATE VIEW muniment_internal_trusted.storage_size WITH (security_invoker='true') AS
 SELECT storage.tenant,
    storage.agent,
    storage.items,
    (storage.bytes + (256 * storage.versions)) AS bytes
   FROM muniment_internal_trusted.storage
UNION ALL
 SELECT stat.tenant,
    stat.agent,
    0 AS items,
    (((1500 * stat.chunks) + (20 * stat.stems)) + (20 * stat.grams)) AS bytes
   FROM muniment_internal_trusted.stat;

CREATE VIEW muniment_internal_trusted.visible_chunk WITH (security_invoker='true') AS
 SELECT tenant,
    agent,
    kind,
    name,
    level,
    change_id,
    piece,
    is_whole,
    start,
    size,
    tier,
    tags,
    thread,
    place,
    event_time,
    expire_time,
    sample,
    language,
    stems,
    grams,
    stem_count,
    gram_count,
    label
   FROM ( SELECT chunk_1.tenant,
            chunk_1.agent,
            chunk_1.kind,
            chunk_1.name,
            chunk_1.level,
            chunk_1.change_id,
            chunk_1.piece,
            chunk_1.is_whole,
            chunk_1.start,
            chunk_1.size,
            chunk_1.tier,
            chunk_1.tags,
            chunk_1.thread,
            chunk_1.place,
            chunk_1.event_time,
            chunk_1.expire_time,
            chunk_1.sample,
            chunk_1.language,
            chunk_1.stems,
            chunk_1.grams,
            chunk_1.stem_count,
            chunk_1.gram_count,
            (1)::smallint AS label
           FROM muniment_public_trusted.chunk chunk_1
        UNION ALL
         SELECT chunk_1.tenant,
            chunk_1.agent,
            chunk_1.kind,
            chunk_1.name,
            chunk_1.level,
            chunk_1.change_id,
            chunk_1.piece,
            chunk_1.is_whole,
            chunk_1.start,
            chunk_1.size,
            chunk_1.tier,
            chunk_1.tags,
            chunk_1.thread,
            chunk_1.place,
            chunk_1.event_time,
            chunk_1.expire_time,
            chunk_1.sample,
            chunk_1.language,
            chunk_1.stems,
            chunk_1.grams,
            chunk_1.stem_count,
            chunk_1.gram_count,
            (3)::smallint AS label
           FROM muniment_internal_trusted.chunk chunk_1) chunk
  WHERE ((expire_time IS NULL) OR (expire_time > vault.clock()));

CREATE VIEW muniment_internal_trusted.visible_embedding_list WITH (security_invoker='true') AS
 SELECT embedding_list.tenant,
    embedding_list.agent,
    embedding_list.kind,
    embedding_list.level,
    embedding_list.embedder,
    embedding_list.number,
    embedding_list.signs,
    embedding_list.version,
    embedding_list.is_retired,
    (1)::smallint AS label
   FROM muniment_public_trusted.embedding_list
UNION ALL
 SELECT embedding_list.tenant,
    embedding_list.agent,
    embedding_list.kind,
    embedding_list.level,
    embedding_list.embedder,
    embedding_list.number,
    embedding_list.signs,
    embedding_list.version,
    embedding_list.is_retired,
    (3)::smallint AS label
   FROM muniment_internal_trusted.embedding_list;

CREATE VIEW muniment_internal_trusted.visible_meaning WITH (security_invoker='true') AS
 SELECT meaning.tenant,
    meaning.agent,
    meaning.kind,
    meaning.name,
    meaning.level,
    meaning.change_id,
    meaning.piece,
    meaning.prior,
    meaning.embedder,
    meaning.signs,
    meaning.vector,
    meaning.list,
    (1)::smallint AS label
   FROM muniment_public_trusted.meaning
UNION ALL
 SELECT meaning.tenant,
    meaning.agent,
    meaning.kind,
    meaning.name,
    meaning.level,
    meaning.change_id,
    meaning.piece,
    meaning.prior,
    meaning.embedder,
    meaning.signs,
    meaning.vector,
    meaning.list,
    (3)::smallint AS label
   FROM muniment_internal_trusted.meaning;

CREATE VIEW muniment_internal_trusted.visible_remote_embedding WITH (security_invoker='true') AS
 SELECT remote_embedding.tenant,
    remote_embedding.agent,
    remote_embedding.kind,
    remote_embedding.name,
    remote_embedding.level,
    remote_embedding.change_id,
    remote_embedding.number,
    remote_embedding.model,
    remote_embedding.is_missing,
    remote_embedding.prior_name,
    remote_embedding.signs,
    remote_embedding.vector,
    (1)::smallint AS label
   FROM muniment_public_trusted.remote_embedding
UNION ALL
 SELECT remote_embedding.tenant,
    remote_embedding.agent,
    remote_embedding.kind,
    remote_embedding.name,
    remote_embedding.level,
    remote_embedding.change_id,
    remote_embedding.number,
    remote_embedding.model,
    remote_embedding.is_missing,
    remote_embedding.prior_name,
    remote_embedding.signs,
    remote_embedding.vector,
    (3)::smallint AS label
   FROM muniment_internal_trusted.remote_embedding;

CREATE VIEW muniment_internal_trusted.visible_revision WITH (security_invoker='true') AS
 SELECT tenant,
    agent,
    level,
    item_id,
    revision,
    content,
    tags,
    update_time,
    expire_time,
    label
   FROM ( SELECT revision_1.tenant,
            revision_1.agent,
            (1)::smallint AS level,
            revision_1.item_id,
            revision_1.revision,
            revision_1.content,
            revision_1.tags,
            revision_1.update_time,
            revision_1.expire_time,
            (1)::smallint AS label
           FROM muniment_public_trusted.revision revision_1
        UNION ALL
         SELECT revision_1.tenant,
            revision_1.agent,
            (2)::smallint AS level,
            revision_1.item_id,
            revision_1.revision,
            revision_1.content,
            revision_1.tags,
            revision_1.update_time,
            revision_1.expire_time,
            (3)::smallint AS label
           FROM muniment_internal_trusted.revision revision_1) revision
  WHERE ((expire_time IS NULL) OR (expire_time > vault.clock()));

CREATE VIEW muniment_internal_trusted.visible_stat WITH (security_invoker='true') AS
 SELECT stat.tenant,
    stat.agent,
    stat.kind,
    stat.language,
    stat.change_id,
    stat.chunks,
    stat.stems,
    stat.grams,
    stat.fence,
    (1)::smallint AS label
   FROM muniment_public_trusted.stat
UNION ALL
 SELECT stat.tenant,
    stat.agent,
    stat.kind,
    stat.language,
    stat.change_id,
    stat.chunks,
    stat.stems,
    stat.grams,
    stat.fence,
    (3)::smallint AS label
   FROM muniment_internal_trusted.stat;

CREATE TABLE vault.migration (
    version integer NOT NULL,
    name text NOT NULL,
    apply_time timestamp with time zone DEFAULT now() NOT NULL,
    oldest_server integer,
    grants text[]
);

CREATE TABLE vault.release (
    tenant bigint NOT NULL,
    agent bigint NOT NULL,
    release_id uuid NOT NULL,
    kind smallint NOT NULL,
    item_id uuid NOT NULL,
    revision integer NOT NULL,
    content_hash bytea NOT NULL,
    source smallint NOT NULL,
    target smallint NOT NULL,
    declassifies boolean GENERATED ALWAYS AS ((((source + 1) / 2) > ((target + 1) / 2))) STORED NOT NULL,
    endorses boolean GENERATED ALWAYS AS ((((source)::integer % 2) < ((target)::integer % 2))) STORED NOT NULL,
    reason text NOT NULL,
    requester uuid NOT NULL,
    state smallint DEFAULT 1 NOT NULL,
    refusal text DEFAULT ''::text NOT NULL,
    writer uuid,
    new_item_id uuid,
    new_revision integer,
    create_time timestamp with time zone DEFAULT vault.clock() NOT NULL,
    expire_time timestamp with time zone NOT NULL,
    CONSTRAINT content_hash_is_sha256 CHECK ((octet_length(content_hash) = 32)),
    CONSTRAINT it_needs_a_right CHECK (((((source + 1) / 2) > ((target + 1) / 2)) OR (((source)::integer % 2) < ((target)::integer % 2)))),
    CONSTRAINT source_is_a_label CHECK (((source >= 1) AND (source <= 8))),
    CONSTRAINT state_is_known CHECK (((state >= 1) AND (state <= 3))),
    CONSTRAINT target_is_a_label CHECK (((target >= 1) AND (target <= 8))),
    CONSTRAINT what_is_released_is_written CHECK (((state = 2) = (new_item_id IS NOT NULL)))
);

CREATE TABLE vault.release_approval (
    tenant bigint NOT NULL,
    release_id uuid NOT NULL,
    host_key_id uuid NOT NULL,
    approve_time timestamp with time zone DEFAULT vault.clock() NOT NULL
);

CREATE TABLE vault.shared_block (
    tenant bigint NOT NULL,
    owner bigint NOT NULL,
    label text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE vault.tenant (
    tenant bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    max_agents bigint,
    calls_per_second bigint,
    max_items bigint,
    max_bytes bigint,
    fence smallint DEFAULT 0 NOT NULL,
    moving_to text COLLATE pg_catalog."C",
    moving_from text COLLATE pg_catalog."C",
    release_approvals smallint DEFAULT 1 NOT NULL,
    CONSTRAINT a_release_needs_approval CHECK (((release_approvals >= 1) AND (release_approvals <= 16))),
    CONSTRAINT it_moves_one_way CHECK (((moving_to IS NULL) OR (moving_from IS NULL))),
    CONSTRAINT tenant_has_a_name CHECK ((name <> ''::text))
);

ALTER TABLE vault.tenant ALTER COLUMN tenant ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME vault.tenant_tenant_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE ONLY muniment_auditor.seal
    ADD CONSTRAINT seal_pkey PRIMARY KEY (tenant, level, number);

ALTER TABLE ONLY muniment_auditor.sealed_event
    ADD CONSTRAINT sealed_event_pkey PRIMARY KEY (tenant, by_host, event_id);

ALTER TABLE ONLY muniment_control.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (tenant, event_id);

ALTER TABLE ONLY muniment_control.erased_agent
    ADD CONSTRAINT erased_agent_pkey PRIMARY KEY (tenant, agent);

ALTER TABLE muniment_control.audit
    ADD CONSTRAINT time_is_finite CHECK ((("time" > '2000-01-01 00:00:00+00'::timestamp with time zone) AND ("time" < '9000-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID;

ALTER TABLE ONLY muniment_internal.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (tenant, event_id);

ALTER TABLE ONLY muniment_internal.chunk
    ADD CONSTRAINT chunk_pkey PRIMARY KEY (tenant, agent, kind, name, change_id, piece);

ALTER TABLE ONLY muniment_internal.embedding_list
    ADD CONSTRAINT embedding_list_pkey PRIMARY KEY (tenant, agent, kind, embedder, number);

ALTER TABLE ONLY muniment_internal.item
    ADD CONSTRAINT item_pkey PRIMARY KEY (tenant, agent, item_id);

ALTER TABLE ONLY muniment_internal.meaning
    ADD CONSTRAINT meaning_pkey PRIMARY KEY (tenant, agent, kind, name, change_id, piece);

ALTER TABLE ONLY muniment_internal.remote_embedding
    ADD CONSTRAINT remote_embedding_pkey PRIMARY KEY (tenant, agent, kind, name, change_id, number, model);

ALTER TABLE ONLY muniment_internal.revision
    ADD CONSTRAINT revision_pkey PRIMARY KEY (tenant, agent, item_id, revision);

ALTER TABLE ONLY muniment_internal.shelf
    ADD CONSTRAINT shelf_pkey PRIMARY KEY (tenant, agent);

ALTER TABLE ONLY muniment_internal.stat
    ADD CONSTRAINT stat_pkey PRIMARY KEY (tenant, agent, kind, language, change_id);

ALTER TABLE ONLY muniment_internal.storage
    ADD CONSTRAINT storage_pkey PRIMARY KEY (tenant, agent, change_id);

ALTER TABLE muniment_internal.audit
    ADD CONSTRAINT time_is_finite CHECK ((("time" > '2000-01-01 00:00:00+00'::timestamp with time zone) AND ("time" < '9000-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID;

ALTER TABLE ONLY muniment_internal_trusted.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (tenant, event_id);

ALTER TABLE ONLY muniment_internal_trusted.chunk
    ADD CONSTRAINT chunk_pkey PRIMARY KEY (tenant, agent, kind, name, change_id, piece);

ALTER TABLE ONLY muniment_internal_trusted.embedding_list
    ADD CONSTRAINT embedding_list_pkey PRIMARY KEY (tenant, agent, kind, embedder, number);

ALTER TABLE ONLY muniment_internal_trusted.item
    ADD CONSTRAINT item_pkey PRIMARY KEY (tenant, agent, item_id);

ALTER TABLE ONLY muniment_internal_trusted.meaning
    ADD CONSTRAINT meaning_pkey PRIMARY KEY (tenant, agent, kind, name, change_id, piece);

ALTER TABLE ONLY muniment_internal_trusted.remote_embedding
    ADD CONSTRAINT remote_embedding_pkey PRIMARY KEY (tenant, agent, kind, name, change_id, number, model);

ALTER TABLE ONLY muniment_internal_trusted.revision
    ADD CONSTRAINT revision_pkey PRIMARY KEY (tenant, agent, item_id, revision);

ALTER TABLE ONLY muniment_internal_trusted.shelf
    ADD CONSTRAINT shelf_pkey PRIMARY KEY (tenant, agent);

ALTER TABLE ONLY muniment_internal_trusted.stat
    ADD CONSTRAINT stat_pkey PRIMARY KEY (tenant, agent, kind, language, change_id);

ALTER TABLE ONLY muniment_internal_trusted.storage
    ADD CONSTRAINT storage_pkey PRIMARY KEY (tenant, agent, change_id);

ALTER TABLE ONLY vault.agent
    ADD CONSTRAINT agent_pkey PRIMARY KEY (tenant, agent);

ALTER TABLE ONLY vault.agent
    ADD CONSTRAINT agent_tenant_agent_id_key UNIQUE (tenant, agent_id);

ALTER TABLE ONLY vault.block_link
    ADD CONSTRAINT block_link_pkey PRIMARY KEY (tenant, consumer, owner, label);

ALTER TABLE ONLY vault.block_link
    ADD CONSTRAINT block_link_tenant_owner_label_consumer_key UNIQUE (tenant, owner, label, consumer);

ALTER TABLE ONLY vault.conversation
    ADD CONSTRAINT conversation_pkey PRIMARY KEY (tenant, agent, conversation_id, ceiling);

ALTER TABLE ONLY vault.erasure
    ADD CONSTRAINT erasure_pkey PRIMARY KEY (tenant, agent, erasure_id);

ALTER TABLE ONLY vault.host_key
    ADD CONSTRAINT host_key_pkey PRIMARY KEY (tenant, host_key_id);

ALTER TABLE ONLY vault.host_key
    ADD CONSTRAINT host_key_tenant_key_hash_key UNIQUE (tenant, key_hash);

ALTER TABLE ONLY vault.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (version);

ALTER TABLE ONLY vault.release_approval
    ADD CONSTRAINT release_approval_pkey PRIMARY KEY (tenant, release_id, host_key_id);

ALTER TABLE ONLY vault.release
    ADD CONSTRAINT release_pkey PRIMARY KEY (tenant, release_id);

ALTER TABLE ONLY vault.session
    ADD CONSTRAINT session_pkey PRIMARY KEY (tenant, session_id);

ALTER TABLE ONLY vault.session
    ADD CONSTRAINT session_tenant_token_hash_key UNIQUE (tenant, token_hash);

ALTER TABLE ONLY vault.shared_block
    ADD CONSTRAINT shared_block_pkey PRIMARY KEY (tenant, owner, label);

ALTER TABLE ONLY vault.tenant
    ADD CONSTRAINT tenant_pkey PRIMARY KEY (tenant);

CREATE INDEX sealed_event_of_seal ON muniment_auditor.sealed_event USING btree (tenant, level, number, by_host, event_id);

CREATE INDEX audit_newest ON muniment_control.audit USING btree (tenant, "time" DESC, event_id DESC);

CREATE INDEX audit_newest ON muniment_internal.audit USING btree (tenant, "time" DESC, event_id DESC);

CREATE INDEX chunk_grams ON muniment_internal.chunk USING gin (grams);

CREATE INDEX chunk_sample ON muniment_internal.chunk USING btree (tenant, agent, kind, sample) WHERE (start >= 0);

CREATE INDEX chunk_stems ON muniment_internal.chunk USING gin (stems);

CREATE INDEX chunk_thread ON muniment_internal.chunk USING btree (tenant, agent, thread, place) WHERE ((thread IS NOT NULL) AND (piece = 0));

CREATE UNIQUE INDEX item_live ON muniment_internal.item USING btree (tenant, agent, kind, name, level DESC) WHERE (delete_time IS NULL);

CREATE INDEX item_passages ON muniment_internal.item USING btree (tenant, agent, event_time DESC, create_time DESC, name DESC) WHERE ((kind = 4) AND (delete_time IS NULL));

CREATE INDEX meaning_prior ON muniment_internal.meaning USING btree (tenant, agent, prior) WHERE (prior IS NOT NULL);

CREATE INDEX meaning_signs ON muniment_internal.meaning USING btree (tenant, agent, kind, embedder, list) INCLUDE (signs, name, level, change_id, piece) WHERE (embedder IS NOT NULL);

CREATE INDEX meaning_waiting ON muniment_internal.meaning USING btree (tenant, agent, kind, name, change_id, piece) WHERE (embedder IS NULL);

CREATE INDEX remote_embedding_missing ON muniment_internal.remote_embedding USING btree (tenant, agent, kind, model, name, change_id, number) WHERE ((signs IS NULL) AND is_missing);

CREATE INDEX remote_embedding_prior ON muniment_internal.remote_embedding USING btree (tenant, agent, kind, prior_name) WHERE (prior_name IS NOT NULL);

CREATE INDEX remote_embedding_signs ON muniment_internal.remote_embedding USING btree (tenant, agent, kind, model) INCLUDE (signs, name, level, change_id, number) WHERE (signs IS NOT NULL);

CREATE INDEX remote_embedding_waiting ON muniment_internal.remote_embedding USING btree (tenant, agent, kind, model, name, change_id, number) WHERE ((signs IS NULL) AND (NOT is_missing));

CREATE INDEX audit_newest ON muniment_internal_trusted.audit USING btree (tenant, "time" DESC, event_id DESC);

CREATE INDEX chunk_grams ON muniment_internal_trusted.chunk USING gin (grams);

CREATE INDEX chunk_sample ON muniment_internal_trusted.chunk USING btree (tenant, agent, kind, sample) WHERE (start >= 0);

CREATE INDEX chunk_stems ON muniment_internal_trusted.chunk USING gin (stems);

CREATE INDEX chunk_thread ON muniment_internal_trusted.chunk USING btree (tenant, agent, thread, place) WHERE ((thread IS NOT NULL) AND (piece = 0));

CREATE UNIQUE INDEX item_live ON muniment_internal_trusted.item USING btree (tenant, agent, kind, name, level DESC) WHERE (delete_time IS NULL);

CREATE INDEX item_passages ON muniment_internal_trusted.item USING btree (tenant, agent, event_time DESC, create_time DESC, name DESC) WHERE ((kind = 4) AND (delete_time IS NULL));

CREATE INDEX meaning_prior ON muniment_internal_trusted.meaning USING btree (tenant, agent, prior) WHERE (prior IS NOT NULL);

CREATE INDEX meaning_signs ON muniment_internal_trusted.meaning USING btree (tenant, agent, kind, embedder, list) INCLUDE (signs, name, level, change_id, piece) WHERE (embedder IS NOT NULL);

CREATE INDEX meaning_waiting ON muniment_internal_trusted.meaning USING btree (tenant, agent, kind, name, change_id, piece) WHERE (embedder IS NULL);

CREATE INDEX remote_embedding_missing ON muniment_internal_trusted.remote_embedding USING btree (tenant, agent, kind, model, name, change_id, number) WHERE ((signs IS NULL) AND is_missing);

CREATE INDEX remote_embedding_prior ON muniment_internal_trusted.remote_embedding USING btree (tenant, agent, kind, prior_name) WHERE (prior_name IS NOT NULL);

CREATE INDEX remote_embedding_signs ON muniment_internal_trusted.remote_embedding USING btree (tenant, agent, kind, model) INCLUDE (signs, name, level, change_id, number) WHERE (signs IS NOT NULL);

CREATE INDEX remote_embedding_waiting ON muniment_internal_trusted.remote_embedding USING btree (tenant, agent, kind, model, name, change_id, number) WHERE ((signs IS NULL) AND (NOT is_missing));

CREATE INDEX agent_deleted ON vault.agent USING btree (tenant, agent) WHERE (delete_time IS NOT NULL);

CREATE INDEX release_newest ON vault.release USING btree (tenant, create_time DESC, release_id DESC);

CREATE INDEX release_of_agent ON vault.release USING btree (tenant, agent);

CREATE INDEX session_newest ON vault.session USING btree (tenant, agent, create_time DESC, session_id DESC);

CREATE INDEX session_of_conversation ON vault.session USING btree (tenant, agent, conversation_id);

ALTER TABLE ONLY muniment_auditor.sealed_event
    ADD CONSTRAINT sealed_event_tenant_level_number_fkey FOREIGN KEY (tenant, level, number) REFERENCES muniment_auditor.seal(tenant, level, number);

ALTER TABLE ONLY muniment_control.erased_agent
    ADD CONSTRAINT erased_agent_tenant_fkey FOREIGN KEY (tenant) REFERENCES vault.tenant(tenant);

ALTER TABLE ONLY muniment_internal.chunk
    ADD CONSTRAINT chunk_tenant_agent_fkey FOREIGN KEY (tenant, agent) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY muniment_internal.embedding_list
    ADD CONSTRAINT embedding_list_tenant_agent_fkey FOREIGN KEY (tenant, agent) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY muniment_internal.item
    ADD CONSTRAINT item_tenant_agent_fkey FOREIGN KEY (tenant, agent) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY muniment_internal.meaning
    ADD CONSTRAINT list_exists FOREIGN KEY (tenant, agent, kind, embedder, list) REFERENCES muniment_internal.embedding_list(tenant, agent, kind, embedder, number);

ALTER TABLE ONLY muniment_internal.meaning
    ADD CONSTRAINT meaning_tenant_agent_kind_name_change_id_piece_fkey FOREIGN KEY (tenant, agent, kind, name, change_id, piece) REFERENCES muniment_internal.chunk(tenant, agent, kind, name, change_id, piece) ON DELETE CASCADE;

ALTER TABLE ONLY muniment_internal.remote_embedding
    ADD CONSTRAINT remote_embedding_tenant_agent_kind_name_change_id_number_fkey FOREIGN KEY (tenant, agent, kind, name, change_id, number) REFERENCES muniment_internal.meaning(tenant, agent, kind, name, change_id, piece) ON DELETE CASCADE;

ALTER TABLE ONLY muniment_internal.revision
    ADD CONSTRAINT revision_tenant_agent_fkey FOREIGN KEY (tenant, agent) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY muniment_internal.shelf
    ADD CONSTRAINT shelf_tenant_agent_fkey FOREIGN KEY (tenant, agent) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY muniment_internal.stat
    ADD CONSTRAINT stat_tenant_agent_fkey FOREIGN KEY (tenant, agent) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY muniment_internal_trusted.chunk
    ADD CONSTRAINT chunk_tenant_agent_fkey FOREIGN KEY (tenant, agent) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY muniment_internal_trusted.embedding_list
    ADD CONSTRAINT embedding_list_tenant_agent_fkey FOREIGN KEY (tenant, agent) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY muniment_internal_trusted.item
    ADD CONSTRAINT item_tenant_agent_fkey FOREIGN KEY (tenant, agent) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY muniment_internal_trusted.meaning
    ADD CONSTRAINT list_exists FOREIGN KEY (tenant, agent, kind, embedder, list) REFERENCES muniment_internal_trusted.embedding_list(tenant, agent, kind, embedder, number);

ALTER TABLE ONLY muniment_internal_trusted.meaning
    ADD CONSTRAINT meaning_tenant_agent_kind_name_change_id_piece_fkey FOREIGN KEY (tenant, agent, kind, name, change_id, piece) REFERENCES muniment_internal_trusted.chunk(tenant, agent, kind, name, change_id, piece) ON DELETE CASCADE;

ALTER TABLE ONLY muniment_internal_trusted.remote_embedding
    ADD CONSTRAINT remote_embedding_tenant_agent_kind_name_change_id_number_fkey FOREIGN KEY (tenant, agent, kind, name, change_id, number) REFERENCES muniment_internal_trusted.meaning(tenant, agent, kind, name, change_id, piece) ON DELETE CASCADE;

ALTER TABLE ONLY muniment_internal_trusted.revision
    ADD CONSTRAINT revision_tenant_agent_fkey FOREIGN KEY (tenant, agent) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY muniment_internal_trusted.shelf
    ADD CONSTRAINT shelf_tenant_agent_fkey FOREIGN KEY (tenant, agent) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY muniment_internal_trusted.stat
    ADD CONSTRAINT stat_tenant_agent_fkey FOREIGN KEY (tenant, agent) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY vault.agent
    ADD CONSTRAINT agent_tenant_fkey FOREIGN KEY (tenant) REFERENCES vault.tenant(tenant);

ALTER TABLE ONLY vault.block_link
    ADD CONSTRAINT block_link_tenant_consumer_fkey FOREIGN KEY (tenant, consumer) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY vault.block_link
    ADD CONSTRAINT block_link_tenant_owner_label_fkey FOREIGN KEY (tenant, owner, label) REFERENCES vault.shared_block(tenant, owner, label) ON DELETE CASCADE;

ALTER TABLE ONLY vault.conversation
    ADD CONSTRAINT conversation_tenant_agent_fkey FOREIGN KEY (tenant, agent) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY vault.erasure
    ADD CONSTRAINT erasure_tenant_agent_fkey FOREIGN KEY (tenant, agent) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY vault.host_key
    ADD CONSTRAINT host_key_tenant_fkey FOREIGN KEY (tenant) REFERENCES vault.tenant(tenant);

ALTER TABLE ONLY vault.release_approval
    ADD CONSTRAINT release_approval_tenant_release_id_fkey FOREIGN KEY (tenant, release_id) REFERENCES vault.release(tenant, release_id) ON DELETE CASCADE;

ALTER TABLE ONLY vault.release
    ADD CONSTRAINT release_tenant_agent_fkey FOREIGN KEY (tenant, agent) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

ALTER TABLE ONLY vault.session
    ADD CONSTRAINT session_conversation_fkey FOREIGN KEY (tenant, agent, conversation_id, ceiling) REFERENCES vault.conversation(tenant, agent, conversation_id, ceiling) ON DELETE CASCADE;

ALTER TABLE ONLY vault.shared_block
    ADD CONSTRAINT shared_block_tenant_owner_fkey FOREIGN KEY (tenant, owner) REFERENCES vault.agent(tenant, agent) ON DELETE CASCADE;

GRANT USAGE ON SCHEMA muniment_auditor TO muniment_auditor;

GRANT USAGE ON SCHEMA muniment_control TO muniment_control;

GRANT USAGE ON SCHEMA muniment_control TO muniment_auditor;

GRANT USAGE ON SCHEMA muniment_control TO muniment_eraser;

GRANT USAGE ON SCHEMA muniment_eraser TO muniment_eraser;

GRANT USAGE ON SCHEMA muniment_internal TO muniment_internal;

GRANT USAGE ON SCHEMA muniment_internal TO muniment_confidential;

GRANT USAGE ON SCHEMA muniment_internal TO muniment_restricted;

GRANT USAGE ON SCHEMA muniment_internal TO muniment_control;

GRANT USAGE ON SCHEMA muniment_internal TO muniment_auditor;

GRANT USAGE ON SCHEMA muniment_internal TO muniment_eraser;

GRANT USAGE ON SCHEMA muniment_internal_trusted TO muniment_internal_trusted;

GRANT USAGE ON SCHEMA muniment_internal_trusted TO muniment_control;

GRANT USAGE ON SCHEMA muniment_internal_trusted TO muniment_auditor;

GRANT USAGE ON SCHEMA muniment_internal_trusted TO muniment_eraser;

GRANT USAGE ON SCHEMA muniment_internal_trusted TO muniment_internal;

GRANT USAGE ON SCHEMA muniment_internal_trusted TO muniment_confidential_trusted;

GRANT USAGE ON SCHEMA muniment_internal_trusted TO muniment_confidential;

GRANT USAGE ON SCHEMA muniment_internal_trusted TO muniment_restricted_trusted;

GRANT USAGE ON SCHEMA muniment_internal_trusted TO muniment_restricted;

GRANT USAGE ON SCHEMA vault TO muniment_public;

GRANT USAGE ON SCHEMA vault TO muniment_internal;

GRANT USAGE ON SCHEMA vault TO muniment_confidential;

GRANT USAGE ON SCHEMA vault TO muniment_restricted;

GRANT USAGE ON SCHEMA vault TO muniment_control;

GRANT USAGE ON SCHEMA vault TO muniment_auditor;

GRANT USAGE ON SCHEMA vault TO muniment_public_trusted;

GRANT USAGE ON SCHEMA vault TO muniment_internal_trusted;

GRANT USAGE ON SCHEMA vault TO muniment_confidential_trusted;

GRANT USAGE ON SCHEMA vault TO muniment_restricted_trusted;

REVOKE ALL ON FUNCTION pg_catalog.lo_close(integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.lo_creat(integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.lo_create(oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.lo_from_bytea(oid, bytea) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.lo_get(oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.lo_get(oid, bigint, integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.lo_lseek(integer, integer, integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.lo_lseek64(integer, bigint, integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.lo_open(oid, integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.lo_put(oid, bigint, bytea) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.lo_tell(integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.lo_tell64(integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.lo_truncate(integer, integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.lo_truncate64(integer, bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.lo_unlink(oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.loread(integer, integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION pg_catalog.lowrite(integer, bytea) FROM PUBLIC;

GRANT INSERT ON TABLE muniment_control.audit TO muniment_control;

GRANT SELECT ON TABLE muniment_control.audit TO muniment_auditor;

GRANT INSERT ON TABLE muniment_control.audit TO muniment_eraser;

GRANT INSERT ON TABLE muniment_internal.audit TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.audit TO muniment_auditor;

GRANT INSERT ON TABLE muniment_internal_trusted.audit TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.audit TO muniment_auditor;

GRANT SELECT ON TABLE muniment_auditor.audit TO muniment_auditor;

GRANT SELECT,INSERT ON TABLE muniment_auditor.seal TO muniment_auditor;

GRANT SELECT,INSERT ON TABLE muniment_auditor.sealed_event TO muniment_auditor;

GRANT SELECT,INSERT ON TABLE vault.conversation TO muniment_control;

GRANT UPDATE(taint) ON TABLE vault.conversation TO muniment_control;

GRANT UPDATE(trusted) ON TABLE vault.conversation TO muniment_control;

GRANT SELECT,INSERT ON TABLE vault.session TO muniment_control;

GRANT SELECT(tenant) ON TABLE vault.session TO muniment_auditor;

GRANT SELECT(agent) ON TABLE vault.session TO muniment_auditor;

GRANT SELECT(session_id) ON TABLE vault.session TO muniment_auditor;

GRANT UPDATE(expire_time) ON TABLE vault.session TO muniment_control;

GRANT UPDATE(close_time) ON TABLE vault.session TO muniment_control;

GRANT SELECT(ceiling) ON TABLE vault.session TO muniment_auditor;

GRANT UPDATE(renew_time) ON TABLE vault.session TO muniment_control;

GRANT SELECT,INSERT ON TABLE vault.agent TO muniment_control;

GRANT SELECT(tenant) ON TABLE vault.agent TO muniment_auditor;

GRANT SELECT(agent) ON TABLE vault.agent TO muniment_auditor;

GRANT SELECT(agent_id) ON TABLE vault.agent TO muniment_auditor;

GRANT UPDATE(agent_id) ON TABLE vault.agent TO muniment_control;

GRANT UPDATE(display_name) ON TABLE vault.agent TO muniment_control;

GRANT UPDATE(language) ON TABLE vault.agent TO muniment_control;

GRANT UPDATE(memory_enabled) ON TABLE vault.agent TO muniment_control;

GRANT UPDATE(user_profile_enabled) ON TABLE vault.agent TO muniment_control;

GRANT UPDATE(memory_char_limit) ON TABLE vault.agent TO muniment_control;

GRANT UPDATE(user_char_limit) ON TABLE vault.agent TO muniment_control;

GRANT UPDATE(update_time) ON TABLE vault.agent TO muniment_control;

GRANT UPDATE(delete_time) ON TABLE vault.agent TO muniment_control;

GRANT UPDATE(calls_per_second) ON TABLE vault.agent TO muniment_control;

GRANT UPDATE(max_items) ON TABLE vault.agent TO muniment_control;

GRANT UPDATE(max_bytes) ON TABLE vault.agent TO muniment_control;

GRANT UPDATE(max_revisions) ON TABLE vault.agent TO muniment_control;

GRANT SELECT(ceiling) ON TABLE vault.agent TO muniment_auditor;

GRANT UPDATE(known_from) ON TABLE vault.agent TO muniment_control;

GRANT SELECT(known_from) ON TABLE vault.agent TO muniment_auditor;

GRANT UPDATE(memory_ttl) ON TABLE vault.agent TO muniment_control;

GRANT UPDATE(passage_ttl) ON TABLE vault.agent TO muniment_control;

GRANT SELECT,INSERT,DELETE ON TABLE vault.erasure TO muniment_control;

GRANT SELECT,INSERT,DELETE ON TABLE vault.block_link TO muniment_control;

GRANT SELECT,INSERT ON TABLE muniment_internal.item TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.item TO muniment_confidential;

GRANT SELECT ON TABLE muniment_internal.item TO muniment_restricted;

GRANT UPDATE(item_id) ON TABLE muniment_internal.item TO muniment_internal;

GRANT UPDATE(revision) ON TABLE muniment_internal.item TO muniment_internal;

GRANT UPDATE(change_id) ON TABLE muniment_internal.item TO muniment_internal;

GRANT UPDATE(content) ON TABLE muniment_internal.item TO muniment_internal;

GRANT UPDATE(tags) ON TABLE muniment_internal.item TO muniment_internal;

GRANT UPDATE(create_time) ON TABLE muniment_internal.item TO muniment_internal;

GRANT UPDATE(update_time) ON TABLE muniment_internal.item TO muniment_internal;

GRANT UPDATE(expire_time) ON TABLE muniment_internal.item TO muniment_internal;

GRANT UPDATE(delete_time) ON TABLE muniment_internal.item TO muniment_internal;

GRANT SELECT,INSERT ON TABLE muniment_internal_trusted.item TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.item TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal_trusted.item TO muniment_confidential_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.item TO muniment_confidential;

GRANT SELECT ON TABLE muniment_internal_trusted.item TO muniment_restricted_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.item TO muniment_restricted;

GRANT UPDATE(item_id) ON TABLE muniment_internal_trusted.item TO muniment_internal_trusted;

GRANT UPDATE(revision) ON TABLE muniment_internal_trusted.item TO muniment_internal_trusted;

GRANT UPDATE(change_id) ON TABLE muniment_internal_trusted.item TO muniment_internal_trusted;

GRANT UPDATE(content) ON TABLE muniment_internal_trusted.item TO muniment_internal_trusted;

GRANT UPDATE(tags) ON TABLE muniment_internal_trusted.item TO muniment_internal_trusted;

GRANT UPDATE(create_time) ON TABLE muniment_internal_trusted.item TO muniment_internal_trusted;

GRANT UPDATE(update_time) ON TABLE muniment_internal_trusted.item TO muniment_internal_trusted;

GRANT UPDATE(expire_time) ON TABLE muniment_internal_trusted.item TO muniment_internal_trusted;

GRANT UPDATE(delete_time) ON TABLE muniment_internal_trusted.item TO muniment_internal_trusted;

GRANT SELECT,INSERT,DELETE ON TABLE muniment_internal.chunk TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.chunk TO muniment_confidential;

GRANT SELECT ON TABLE muniment_internal.chunk TO muniment_restricted;

GRANT SELECT,INSERT,DELETE ON TABLE muniment_internal_trusted.chunk TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.chunk TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal_trusted.chunk TO muniment_confidential_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.chunk TO muniment_confidential;

GRANT SELECT ON TABLE muniment_internal_trusted.chunk TO muniment_restricted_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.chunk TO muniment_restricted;

GRANT SELECT,INSERT,DELETE ON TABLE muniment_internal.embedding_list TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.embedding_list TO muniment_confidential;

GRANT SELECT ON TABLE muniment_internal.embedding_list TO muniment_restricted;

GRANT UPDATE(signs) ON TABLE muniment_internal.embedding_list TO muniment_internal;

GRANT UPDATE(version) ON TABLE muniment_internal.embedding_list TO muniment_internal;

GRANT UPDATE(is_retired) ON TABLE muniment_internal.embedding_list TO muniment_internal;

GRANT SELECT,INSERT,DELETE ON TABLE muniment_internal_trusted.embedding_list TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.embedding_list TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal_trusted.embedding_list TO muniment_confidential_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.embedding_list TO muniment_confidential;

GRANT SELECT ON TABLE muniment_internal_trusted.embedding_list TO muniment_restricted_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.embedding_list TO muniment_restricted;

GRANT UPDATE(signs) ON TABLE muniment_internal_trusted.embedding_list TO muniment_internal_trusted;

GRANT UPDATE(version) ON TABLE muniment_internal_trusted.embedding_list TO muniment_internal_trusted;

GRANT UPDATE(is_retired) ON TABLE muniment_internal_trusted.embedding_list TO muniment_internal_trusted;

GRANT SELECT,INSERT ON TABLE muniment_internal.meaning TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.meaning TO muniment_confidential;

GRANT SELECT ON TABLE muniment_internal.meaning TO muniment_restricted;

GRANT UPDATE(prior) ON TABLE muniment_internal.meaning TO muniment_internal;

GRANT UPDATE(embedder) ON TABLE muniment_internal.meaning TO muniment_internal;

GRANT UPDATE(signs) ON TABLE muniment_internal.meaning TO muniment_internal;

GRANT UPDATE(vector) ON TABLE muniment_internal.meaning TO muniment_internal;

GRANT UPDATE(list) ON TABLE muniment_internal.meaning TO muniment_internal;

GRANT SELECT,INSERT ON TABLE muniment_internal_trusted.meaning TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.meaning TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal_trusted.meaning TO muniment_confidential_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.meaning TO muniment_confidential;

GRANT SELECT ON TABLE muniment_internal_trusted.meaning TO muniment_restricted_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.meaning TO muniment_restricted;

GRANT UPDATE(prior) ON TABLE muniment_internal_trusted.meaning TO muniment_internal_trusted;

GRANT UPDATE(embedder) ON TABLE muniment_internal_trusted.meaning TO muniment_internal_trusted;

GRANT UPDATE(signs) ON TABLE muniment_internal_trusted.meaning TO muniment_internal_trusted;

GRANT UPDATE(vector) ON TABLE muniment_internal_trusted.meaning TO muniment_internal_trusted;

GRANT UPDATE(list) ON TABLE muniment_internal_trusted.meaning TO muniment_internal_trusted;

GRANT SELECT,INSERT,DELETE ON TABLE muniment_internal.remote_embedding TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.remote_embedding TO muniment_confidential;

GRANT SELECT ON TABLE muniment_internal.remote_embedding TO muniment_restricted;

GRANT UPDATE(prior_name) ON TABLE muniment_internal.remote_embedding TO muniment_internal;

GRANT UPDATE(signs) ON TABLE muniment_internal.remote_embedding TO muniment_internal;

GRANT UPDATE(vector) ON TABLE muniment_internal.remote_embedding TO muniment_internal;

GRANT SELECT,INSERT,DELETE ON TABLE muniment_internal_trusted.remote_embedding TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.remote_embedding TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal_trusted.remote_embedding TO muniment_confidential_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.remote_embedding TO muniment_confidential;

GRANT SELECT ON TABLE muniment_internal_trusted.remote_embedding TO muniment_restricted_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.remote_embedding TO muniment_restricted;

GRANT UPDATE(prior_name) ON TABLE muniment_internal_trusted.remote_embedding TO muniment_internal_trusted;

GRANT UPDATE(signs) ON TABLE muniment_internal_trusted.remote_embedding TO muniment_internal_trusted;

GRANT UPDATE(vector) ON TABLE muniment_internal_trusted.remote_embedding TO muniment_internal_trusted;

GRANT SELECT,INSERT ON TABLE muniment_internal.revision TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.revision TO muniment_confidential;

GRANT SELECT ON TABLE muniment_internal.revision TO muniment_restricted;

GRANT SELECT,INSERT ON TABLE muniment_internal_trusted.revision TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.revision TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal_trusted.revision TO muniment_confidential_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.revision TO muniment_confidential;

GRANT SELECT ON TABLE muniment_internal_trusted.revision TO muniment_restricted_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.revision TO muniment_restricted;

GRANT SELECT,INSERT,DELETE ON TABLE muniment_internal.stat TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.stat TO muniment_confidential;

GRANT SELECT ON TABLE muniment_internal.stat TO muniment_restricted;

GRANT SELECT(tenant) ON TABLE muniment_internal.stat TO muniment_control;

GRANT SELECT(agent) ON TABLE muniment_internal.stat TO muniment_control;

GRANT SELECT(chunks) ON TABLE muniment_internal.stat TO muniment_control;

GRANT SELECT(stems) ON TABLE muniment_internal.stat TO muniment_control;

GRANT SELECT(grams) ON TABLE muniment_internal.stat TO muniment_control;

GRANT UPDATE(fence) ON TABLE muniment_internal.stat TO muniment_internal;

GRANT SELECT,INSERT,DELETE ON TABLE muniment_internal_trusted.stat TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.stat TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal_trusted.stat TO muniment_confidential_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.stat TO muniment_confidential;

GRANT SELECT ON TABLE muniment_internal_trusted.stat TO muniment_restricted_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.stat TO muniment_restricted;

GRANT SELECT(tenant) ON TABLE muniment_internal_trusted.stat TO muniment_control;

GRANT SELECT(agent) ON TABLE muniment_internal_trusted.stat TO muniment_control;

GRANT SELECT(chunks) ON TABLE muniment_internal_trusted.stat TO muniment_control;

GRANT SELECT(stems) ON TABLE muniment_internal_trusted.stat TO muniment_control;

GRANT SELECT(grams) ON TABLE muniment_internal_trusted.stat TO muniment_control;

GRANT UPDATE(fence) ON TABLE muniment_internal_trusted.stat TO muniment_internal_trusted;

GRANT INSERT ON TABLE muniment_control.erased_agent TO muniment_eraser;

GRANT SELECT ON TABLE muniment_control.erased_agent TO muniment_auditor;

GRANT SELECT ON TABLE vault.host_key TO muniment_control;

GRANT SELECT ON TABLE muniment_control.host_key TO muniment_control;

GRANT SELECT ON TABLE muniment_control.session TO muniment_control;

GRANT UPDATE(fence) ON TABLE muniment_control.session TO muniment_control;

GRANT SELECT ON TABLE muniment_control.unclosed TO muniment_control;

GRANT UPDATE(fence) ON TABLE muniment_control.unclosed TO muniment_control;

GRANT SELECT,DELETE ON TABLE muniment_eraser.agent TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_eraser.conversation TO muniment_eraser;

GRANT SELECT ON TABLE muniment_eraser.host_key TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_eraser.session TO muniment_eraser;

GRANT SELECT ON TABLE muniment_internal.session TO muniment_internal;

GRANT UPDATE(fence) ON TABLE muniment_internal.session TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.agent TO muniment_internal;

GRANT SELECT,DELETE ON TABLE muniment_internal.deleted_item TO muniment_internal;

GRANT SELECT,DELETE ON TABLE muniment_internal.erasable_chunk TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_internal.erasable_item TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_internal.erasable_revision TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_internal.erasable_stat TO muniment_eraser;

GRANT SELECT,INSERT,DELETE ON TABLE muniment_internal.storage TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.storage TO muniment_control;

GRANT UPDATE(fence) ON TABLE muniment_internal.storage TO muniment_internal;

GRANT SELECT,DELETE ON TABLE muniment_internal.erasable_storage TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_internal.erasing_chunk TO muniment_eraser;

GRANT SELECT(tenant) ON TABLE muniment_internal.erasing_embedding TO muniment_eraser;

GRANT SELECT(agent) ON TABLE muniment_internal.erasing_embedding TO muniment_eraser;

GRANT SELECT(kind) ON TABLE muniment_internal.erasing_embedding TO muniment_eraser;

GRANT SELECT(prior),UPDATE(prior) ON TABLE muniment_internal.erasing_embedding TO muniment_eraser;

GRANT UPDATE(embedder) ON TABLE muniment_internal.erasing_embedding TO muniment_eraser;

GRANT UPDATE(signs) ON TABLE muniment_internal.erasing_embedding TO muniment_eraser;

GRANT UPDATE(vector) ON TABLE muniment_internal.erasing_embedding TO muniment_eraser;

GRANT UPDATE(list) ON TABLE muniment_internal.erasing_embedding TO muniment_eraser;

GRANT SELECT(tenant) ON TABLE muniment_internal.erasing_embedding_list TO muniment_eraser;

GRANT SELECT(agent) ON TABLE muniment_internal.erasing_embedding_list TO muniment_eraser;

GRANT SELECT(kind) ON TABLE muniment_internal.erasing_embedding_list TO muniment_eraser;

GRANT SELECT(embedder) ON TABLE muniment_internal.erasing_embedding_list TO muniment_eraser;

GRANT SELECT(number) ON TABLE muniment_internal.erasing_embedding_list TO muniment_eraser;

GRANT UPDATE(signs) ON TABLE muniment_internal.erasing_embedding_list TO muniment_eraser;

GRANT SELECT(version),UPDATE(version) ON TABLE muniment_internal.erasing_embedding_list TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_internal.erasing_item TO muniment_eraser;

GRANT UPDATE(fence) ON TABLE muniment_internal.erasing_item TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_internal.erasing_remote_embedding TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_internal.erasing_revision TO muniment_eraser;

GRANT INSERT ON TABLE muniment_internal.erasing_stat TO muniment_eraser;

GRANT INSERT ON TABLE muniment_internal.erasing_storage TO muniment_eraser;

GRANT SELECT ON TABLE muniment_internal.link TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.visible TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.shared_visible TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.shelf TO muniment_internal;

GRANT INSERT ON TABLE muniment_internal.shelf TO muniment_control;

GRANT UPDATE(fence) ON TABLE muniment_internal.shelf TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.storage_size TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.storage_size TO muniment_control;

GRANT SELECT ON TABLE muniment_internal.visible_chunk TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.visible_embedding_list TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.visible_meaning TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.visible_remote_embedding TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.visible_revision TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal.visible_stat TO muniment_internal;

GRANT SELECT ON TABLE muniment_internal_trusted.session TO muniment_internal_trusted;

GRANT UPDATE(fence) ON TABLE muniment_internal_trusted.session TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.agent TO muniment_internal_trusted;

GRANT SELECT,DELETE ON TABLE muniment_internal_trusted.deleted_item TO muniment_internal_trusted;

GRANT SELECT,DELETE ON TABLE muniment_internal_trusted.erasable_chunk TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_internal_trusted.erasable_item TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_internal_trusted.erasable_revision TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_internal_trusted.erasable_stat TO muniment_eraser;

GRANT SELECT,INSERT,DELETE ON TABLE muniment_internal_trusted.storage TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.storage TO muniment_control;

GRANT UPDATE(fence) ON TABLE muniment_internal_trusted.storage TO muniment_internal_trusted;

GRANT SELECT,DELETE ON TABLE muniment_internal_trusted.erasable_storage TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_internal_trusted.erasing_chunk TO muniment_eraser;

GRANT SELECT(tenant) ON TABLE muniment_internal_trusted.erasing_embedding TO muniment_eraser;

GRANT SELECT(agent) ON TABLE muniment_internal_trusted.erasing_embedding TO muniment_eraser;

GRANT SELECT(kind) ON TABLE muniment_internal_trusted.erasing_embedding TO muniment_eraser;

GRANT SELECT(prior),UPDATE(prior) ON TABLE muniment_internal_trusted.erasing_embedding TO muniment_eraser;

GRANT UPDATE(embedder) ON TABLE muniment_internal_trusted.erasing_embedding TO muniment_eraser;

GRANT UPDATE(signs) ON TABLE muniment_internal_trusted.erasing_embedding TO muniment_eraser;

GRANT UPDATE(vector) ON TABLE muniment_internal_trusted.erasing_embedding TO muniment_eraser;

GRANT UPDATE(list) ON TABLE muniment_internal_trusted.erasing_embedding TO muniment_eraser;

GRANT SELECT(tenant) ON TABLE muniment_internal_trusted.erasing_embedding_list TO muniment_eraser;

GRANT SELECT(agent) ON TABLE muniment_internal_trusted.erasing_embedding_list TO muniment_eraser;

GRANT SELECT(kind) ON TABLE muniment_internal_trusted.erasing_embedding_list TO muniment_eraser;

GRANT SELECT(embedder) ON TABLE muniment_internal_trusted.erasing_embedding_list TO muniment_eraser;

GRANT SELECT(number) ON TABLE muniment_internal_trusted.erasing_embedding_list TO muniment_eraser;

GRANT UPDATE(signs) ON TABLE muniment_internal_trusted.erasing_embedding_list TO muniment_eraser;

GRANT SELECT(version),UPDATE(version) ON TABLE muniment_internal_trusted.erasing_embedding_list TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_internal_trusted.erasing_item TO muniment_eraser;

GRANT UPDATE(fence) ON TABLE muniment_internal_trusted.erasing_item TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_internal_trusted.erasing_remote_embedding TO muniment_eraser;

GRANT SELECT,DELETE ON TABLE muniment_internal_trusted.erasing_revision TO muniment_eraser;

GRANT INSERT ON TABLE muniment_internal_trusted.erasing_stat TO muniment_eraser;

GRANT INSERT ON TABLE muniment_internal_trusted.erasing_storage TO muniment_eraser;

GRANT SELECT ON TABLE muniment_internal_trusted.link TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.visible TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.shared_visible TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.shelf TO muniment_internal_trusted;

GRANT INSERT ON TABLE muniment_internal_trusted.shelf TO muniment_control;

GRANT UPDATE(fence) ON TABLE muniment_internal_trusted.shelf TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.storage_size TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.storage_size TO muniment_control;

GRANT SELECT ON TABLE muniment_internal_trusted.visible_chunk TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.visible_embedding_list TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.visible_meaning TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.visible_remote_embedding TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.visible_revision TO muniment_internal_trusted;

GRANT SELECT ON TABLE muniment_internal_trusted.visible_stat TO muniment_internal_trusted;

GRANT SELECT ON TABLE vault.migration TO muniment_control;

GRANT SELECT,INSERT ON TABLE vault.release TO muniment_control;

GRANT UPDATE(state) ON TABLE vault.release TO muniment_control;

GRANT UPDATE(refusal) ON TABLE vault.release TO muniment_control;

GRANT UPDATE(writer) ON TABLE vault.release TO muniment_control;

GRANT UPDATE(new_item_id) ON TABLE vault.release TO muniment_control;

GRANT UPDATE(new_revision) ON TABLE vault.release TO muniment_control;

GRANT SELECT,INSERT ON TABLE vault.release_approval TO muniment_control;

GRANT SELECT,INSERT,DELETE ON TABLE vault.shared_block TO muniment_control;

GRANT SELECT ON TABLE vault.tenant TO muniment_control;

GRANT SELECT(tenant) ON TABLE vault.tenant TO muniment_auditor;

GRANT UPDATE(fence) ON TABLE vault.tenant TO muniment_control;
