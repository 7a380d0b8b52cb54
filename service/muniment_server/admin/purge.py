"""`muniment purge`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import click
from rich.console import Console

from muniment.cli.content import confirm
from muniment.cli.failures import Discreet, Failure
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import DURATION, TEXT
from muniment_server.admin.connection import Operator, require_tenant
from muniment_server.admin.database import LEVEL, with_operator
from muniment_server.admin.history import KINDS, stored_name
from muniment_server.admin.holds import held_agents
from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.ids import AgentNumber, SessionId, TenantNumber
from muniment_server.domain.items import ItemKind
from muniment_server.runtime import clocks

_BATCH_SESSIONS = 1000
"""How many sessions one transaction purges."""
_SHORTEST = timedelta(days=30)
_VERSIONS = ("classification", "items", "revisions")
_SESSIONS = ("classification", "sessions")


@click.command(cls=Discreet)
@click.option("--sessions", is_flag=True, help="Purge closed and expired sessions, and no versions.")
@click.option("--older-than", required=True, type=DURATION, help="The minimum age, such as 90d or 52w.")
@click.option("--tenant", type=TEXT, help="Only what belongs to this tenant.")
@click.option("--agent", "agent_id", metavar="NAME", type=TEXT, help="Only what belongs to this agent of the tenant.")
@click.option("--kind", type=click.Choice(list(KINDS)), help="Only items of this kind.")
@click.option("--level", type=LEVEL, help="Only versions at this level, such as after a shorter time than others.")
@click.option("--name", type=TEXT, help="Only items of this name: a key, a label, or an id. Needs --agent and --kind.")
@click.option("--force", count=True, help="Given twice, allows less than 30 days.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@with_output
@with_operator
def purge(
    operator: Operator,
    output: Output,
    sessions: bool,
    older_than: timedelta,
    tenant: str | None,
    agent_id: str | None,
    kind: str | None,
    level: Classification | None,
    name: str | None,
    force: int,
    yes: bool,
) -> None:
    """Permanently remove versions that were deleted, overwritten or expired that long ago, at all levels.

    Live items and audit rows stay, and so does all that agents have that are held (see `muniment hold`). With
    --sessions, the command removes sessions that were closed or expired that long ago instead. Their conversations and
    taint stay.

    Columns in a pipe: classification, items, revisions. With --sessions: classification, sessions.

    \b
    Examples:
      muniment purge --older-than 90d
      muniment purge --older-than 30d --level restricted
      muniment purge --older-than 30d --tenant acme --agent alice --kind memory --name plan
      muniment purge --older-than 1h --force --force --yes
      muniment purge --sessions --older-than 90d --tenant acme
    """
    if sessions and (kind, name, level) != (None, None, None):
        raise click.UsageError("--sessions excludes --kind, --name and --level: a session has none of them")
    before = end_of(operator, "sessions" if sessions else "versions", older_than, force=force)
    if name is not None and (agent_id is None or kind is None):
        raise click.UsageError("--name needs --agent and --kind")
    stored = stored_name(kind, name) if kind is not None and name is not None else None
    what = purgeable(operator, tenant=tenant, agent_id=agent_id, kind=KINDS[kind] if kind else None, name=stored)
    held = held_agents(operator, what.tenant, what.agent)
    _announce(sessions, _extent(tenant, agent_id, kind), "all levels" if level is None else level.name, before)
    if held:
        print_note(f"! {len(held)} of the agents are held, and left out: muniment hold list")
    if not yes:
        confirm("Remove them?")
    with Console(stderr=True).status("Purging…"):
        if sessions:
            removed = _purge_sessions(operator, what, before)
        else:
            removed = [asdict(level) for level in remove_versions(operator, what, before=before, level=level)]
    output.rows(removed, _SESSIONS if sessions else _VERSIONS)


def end_of(operator: Operator, things: str, older_than: timedelta, *, force: int) -> datetime:
    """Before when *things* are removed that are *older_than* that. Raises Failure if it is too short, or in doubt."""
    if older_than < _SHORTEST and force < 2:
        raise Failure(f"{things} are kept for at least 30 days", "choose a longer time, or give --force twice")
    if warnings := clocks.warnings(operator.connection):
        raise Failure(f"{things} are removed by their age, and the time is in doubt", warnings[0])
    return datetime.now(UTC) - older_than


def _announce(sessions: bool, extent: str, levels: str, before: datetime) -> None:
    done = "Sessions{} closed or expired" if sessions else "Versions{} deleted, overwritten or expired"
    print_note(f"{done.format(extent)} before {before:%Y-%m-%d %H:%M}Z will be removed, at {levels}.")
    print_note(f"{'Open sessions, conversations' if sessions else 'Live items'} and audit rows stay.")


def _purge_sessions(operator: Operator, what: Purgeable, before: datetime) -> list[dict[str, object]]:
    counts = Counter(each.taint for batch in remove_sessions(operator, what, before=before) for each in batch)
    return [{"classification": level, "sessions": counts[level]} for level in Classification]


def _extent(tenant: str | None, agent_id: str | None, kind: str | None) -> str:
    """Whose versions or sessions, for the question. It does not repeat a name of an item, which may be secret."""
    words = [f"of the kind {kind}" if kind else "", f"of the agent {agent_id}" if agent_id else ""]
    words.append(f"of the tenant {tenant}" if tenant else "")
    return "".join(f" {word}" for word in words if word)


@dataclass(frozen=True, slots=True)
class Purgeable:
    """What to purge. None restricts nothing."""

    tenant: TenantNumber | None = None
    agent: AgentNumber | None = None
    kind: ItemKind | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Purged:
    """How much was purged at one level."""

    classification: Label
    items: int
    revisions: int


@dataclass(frozen=True, slots=True)
class PurgedSession:
    """A session that was purged. *taint* is that of its conversation, which stays."""

    session_id: SessionId
    taint: Classification


@dataclass(frozen=True, slots=True)
class _Counts:
    items: int
    revisions: int
    tenants: list[TenantNumber] | None
    agents: list[AgentNumber] | None
    """The agents whose items were purged, and the tenant of each, in the same order. None if there were none."""


def purgeable(
    operator: Operator, *, tenant: str | None, agent_id: str | None, kind: ItemKind | None, name: str | None
) -> Purgeable:
    """What to purge: everything, or what belongs to those that are named. Raises NoSuchTenant or NoSuchAgent.

    Fails if they do not say whose it is, so that a forgotten option purges no more.
    """
    require_tenant(tenant, agent_id)
    if tenant is None:
        return Purgeable(kind=kind, name=name)
    number = operator.tenant(tenant)
    agent = None if agent_id is None else operator.agent(tenant, agent_id).agent
    return Purgeable(number, agent, kind, name)


def remove_versions(
    operator: Operator, what: Purgeable, *, before: datetime, level: Classification | None = None
) -> Iterator[Purged]:
    """Remove, label by label, versions that were deleted, overwritten or expired before *before*.

    With *level*, only those at that level. The answer has no trusted label of which nothing was removed.
    """
    for label in (label for label in Label if level in (None, label.level)):
        with operator.at(label):
            counts = operator.one("purge", _Counts, before=before, number=label.level, **asdict(what))
        with operator.at(label):
            of_purged = {"tenants": counts.tenants, "agents": counts.agents, "kind": what.kind}
            operator.execute("clear_centers_of_purged", **of_purged)
        if counts.items or counts.revisions or not label.is_trusted:
            yield Purged(label, counts.items, counts.revisions)


def remove_sessions(operator: Operator, what: Purgeable, *, before: datetime) -> Iterator[list[PurgedSession]]:
    """Remove, in batches, sessions that were closed or expired before *before*, of the owner in *what*."""
    for tenant in operator.values("list_tenants") if what.tenant is None else [what.tenant]:
        last = SessionId(UUID(int=0))
        while batch := operator.rows(
            "purge_sessions",
            PurgedSession,
            before=before,
            tenant=tenant,
            agent=what.agent,
            last_session=last,
            most=_BATCH_SESSIONS,
        ):
            yield batch
            last = batch[-1].session_id
