"""Grants, windows and roles, broken."""

from __future__ import annotations

from muniment_server.monitor import egress
from tests.noninterference import probes
from tests.noninterference.mutants.damage import (
    EVERYTHING_VISIBLE,
    PEEK,
)
from tests.noninterference.mutants.scheme import LEVELS, Mutant, setting

GRANTS = (
    *(
        Mutant(
            f"M52-57 {LEVELS[low]} may read {LEVELS[high]}",
            "walls",
            damage=(
                f"GRANT USAGE ON SCHEMA muniment_{LEVELS[high]} TO muniment_{LEVELS[low]}",
                f"GRANT SELECT ON muniment_{LEVELS[high]}.item TO muniment_{LEVELS[low]}",
            ),
        )
        for low in range(4)
        for high in range(low + 1, 4)
    ),
    Mutant(
        "M52 public may read restricted: nothing asks for it",
        "",
        damage=(
            "GRANT USAGE ON SCHEMA muniment_restricted TO muniment_public",
            "GRANT SELECT ON muniment_restricted.item TO muniment_public",
        ),
        covered_by="windows",
    ),
    Mutant(
        "M58 restricted may insert below",
        "walls",
        damage=("GRANT INSERT ON muniment_public.item TO muniment_restricted",),
    ),
    Mutant(
        "M59 restricted may update below",
        "walls",
        damage=("GRANT UPDATE (content) ON muniment_public.item TO muniment_restricted",),
    ),
    Mutant("M60 an owner's window over all levels", "walls", damage=EVERYTHING_VISIBLE),
    Mutant("M60 an owner's window over all levels, served", "egress", damage=EVERYTHING_VISIBLE),
    Mutant(
        "M60 an owner's window over all levels, no egress guard",
        "worlds",
        (setting(egress, "may_leave", lambda *_: True),),
        damage=EVERYTHING_VISIBLE,
    ),
    Mutant("no egress guard", "", (setting(egress, "may_leave", lambda *_: True),), covered_by="grants"),
    Mutant(
        "M61 a level may update its window on sessions",
        "walls",
        damage=("GRANT UPDATE ON muniment_internal.session TO muniment_internal",),
    ),
    Mutant(
        "M61 a level may update taints",
        "walls",
        damage=("GRANT UPDATE (taint) ON vault.conversation TO muniment_internal",),
    ),
    Mutant(
        "M61 a level lowers its own taint",
        "no level lowers a taint",
        damage=("GRANT UPDATE (taint) ON vault.conversation TO muniment_internal",),
        probe=probes.no_level_lowers_a_taint,
    ),
    Mutant(
        "M62 a level is a member of the next",
        "walls",
        damage=("GRANT muniment_confidential TO muniment_internal",),
    ),
    Mutant(
        "M62 a level reads all data",
        "walls",
        damage=("GRANT pg_read_all_data TO muniment_public",),
    ),
    Mutant(
        "M63 a level bypasses row security",
        "walls",
        damage=("ALTER ROLE muniment_public BYPASSRLS",),
    ),
    Mutant(
        "M63 a level is superuser",
        "walls",
        damage=("ALTER ROLE muniment_public SUPERUSER",),
    ),
    Mutant(
        "M64 a level owns its table", "walls", damage=("ALTER TABLE muniment_internal.item OWNER TO muniment_internal",)
    ),
    Mutant(
        "M65 a table does not pin its level",
        "walls",
        damage=("ALTER TABLE muniment_internal.item DROP CONSTRAINT item_is_internal",),
    ),
    Mutant(
        "M65 a table pins no level any more",
        "walls",
        damage=(
            "ALTER TABLE muniment_internal.item DROP CONSTRAINT item_is_internal",
            "ALTER TABLE muniment_internal.item ADD CONSTRAINT item_is_internal CHECK (level = 2) NOT VALID",
        ),
    ),
    Mutant("M66 a level may delete", "walls", damage=("GRANT DELETE ON muniment_internal.item TO muniment_internal",)),
    Mutant(
        "M66 a level may truncate", "walls", damage=("GRANT TRUNCATE ON muniment_internal.item TO muniment_internal",)
    ),
    Mutant(
        "M68 a level may update its audit",
        "walls",
        damage=("GRANT UPDATE ON muniment_internal.audit TO muniment_internal",),
    ),
    Mutant(
        "M68 a level may read its audit",
        "walls",
        damage=("GRANT SELECT ON muniment_internal.audit TO muniment_internal",),
    ),
    Mutant(
        "M71 a window without its barrier",
        "walls",
        damage=("ALTER VIEW muniment_internal.session RESET (security_barrier)",),
    ),
    Mutant("control may read items", "walls", damage=("GRANT SELECT ON muniment_public.item TO muniment_control",)),
    Mutant("everybody may read sessions", "walls", damage=("GRANT SELECT ON vault.session TO PUBLIC",)),
    Mutant(
        "a level may make temporary tables",
        "walls",
        damage=(
            """DO $$ BEGIN
                   EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO muniment_public', current_database());
               END $$""",
        ),
    ),
    Mutant("M32 a function with its owner's rights", "walls", damage=PEEK),
)
