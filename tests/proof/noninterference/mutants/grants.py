"""Grants, views and roles, broken."""

from __future__ import annotations

from muniment_server.monitor import egress
from tests.proof.noninterference import probes
from tests.proof.noninterference.mutants.damage import (
    EVERYTHING_VISIBLE,
    PEEK,
)
from tests.proof.noninterference.mutants.scheme import LEVELS, Mutant, setting

GRANTS = (
    *(
        Mutant(
            f"M52-57 {LEVELS[low]} may read {LEVELS[high]}",
            "grants",
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
        covered_by="views",
    ),
    Mutant(
        "M58 restricted may insert below",
        "grants",
        damage=("GRANT INSERT ON muniment_public.item TO muniment_restricted",),
    ),
    Mutant(
        "M59 restricted may update below",
        "grants",
        damage=("GRANT UPDATE (content) ON muniment_public.item TO muniment_restricted",),
    ),
    Mutant("M60 an owner's view over all levels", "grants", damage=EVERYTHING_VISIBLE),
    Mutant("M60 an owner's view over all levels, served", "egress", damage=EVERYTHING_VISIBLE),
    Mutant(
        "M60 an owner's view over all levels, no egress filter",
        "worlds",
        (setting(egress, "may_leave", lambda *_: True),),
        damage=EVERYTHING_VISIBLE,
    ),
    Mutant("no egress filter", "", (setting(egress, "may_leave", lambda *_: True),), covered_by="grants"),
    Mutant(
        "M61 a level may update its view of sessions",
        "grants",
        damage=("GRANT UPDATE ON muniment_internal.session TO muniment_internal",),
    ),
    Mutant(
        "M61 a level may update taints",
        "grants",
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
        "grants",
        damage=("GRANT muniment_confidential TO muniment_internal",),
    ),
    Mutant(
        "M62 a level reads all data",
        "grants",
        damage=("GRANT pg_read_all_data TO muniment_public",),
    ),
    Mutant(
        "M63 a level bypasses row security",
        "grants",
        damage=("ALTER ROLE muniment_public BYPASSRLS",),
    ),
    Mutant(
        "M63 a level is superuser",
        "grants",
        damage=("ALTER ROLE muniment_public SUPERUSER",),
    ),
    Mutant(
        "M64 a level owns its table",
        "grants",
        damage=("ALTER TABLE muniment_internal.item OWNER TO muniment_internal",),
    ),
    Mutant(
        "M65 a table does not pin its level",
        "grants",
        damage=("ALTER TABLE muniment_internal.item DROP CONSTRAINT item_is_internal",),
    ),
    Mutant(
        "M65 a table pins no level any more",
        "grants",
        damage=(
            "ALTER TABLE muniment_internal.item DROP CONSTRAINT item_is_internal",
            "ALTER TABLE muniment_internal.item ADD CONSTRAINT item_is_internal CHECK (level = 2) NOT VALID",
        ),
    ),
    Mutant("M66 a level may delete", "grants", damage=("GRANT DELETE ON muniment_internal.item TO muniment_internal",)),
    Mutant(
        "M66 a level may truncate", "grants", damage=("GRANT TRUNCATE ON muniment_internal.item TO muniment_internal",)
    ),
    Mutant(
        "M68 a level may update its audit",
        "grants",
        damage=("GRANT UPDATE ON muniment_internal.audit TO muniment_internal",),
    ),
    Mutant(
        "M68 a level may read its audit",
        "grants",
        damage=("GRANT SELECT ON muniment_internal.audit TO muniment_internal",),
    ),
    Mutant(
        "M71 a view without its barrier",
        "grants",
        damage=("ALTER VIEW muniment_internal.session RESET (security_barrier)",),
    ),
    Mutant("control may read items", "grants", damage=("GRANT SELECT ON muniment_public.item TO muniment_control",)),
    Mutant("everybody may read sessions", "grants", damage=("GRANT SELECT ON vault.session TO PUBLIC",)),
    Mutant(
        "a level may make temporary tables",
        "grants",
        damage=(
            """DO $$ BEGIN
                   EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO muniment_public', current_database());
               END $$""",
        ),
    ),
    Mutant("M32 a function with its owner's rights", "grants", damage=PEEK),
)
