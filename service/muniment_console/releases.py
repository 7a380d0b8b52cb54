"""The release desk: a list of releases, and one release with its texts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from muniment import Classification, HostClient, Release, ReleaseState
from muniment_console.rendering import level_of

MAX_SHOWN = 100
MAX_READ = 1000
"""How many releases a page shows, and how many it looks at for these."""
STATES = ("open", "done", "all")


def releases_page(host: HostClient, given: Mapping[str, str]) -> tuple[Classification, dict[str, object]]:
    """The releases in the state that *given* names, of all agents or one, newest first. Reads no texts."""
    agent, state = (given.get(name, "").strip() for name in ("agent", "state"))
    listed = host.list_releases(agent_id=agent or None, include_closed=state in ("done", "all"), page_size=250)
    read = list(islice(listed, MAX_READ + 1))
    found = [each for each in read if state != "done" or each.state is not ReleaseState.OPEN]
    return level_of([level for each in read for level in _levels(each)]), {
        "releases": found[:MAX_SHOWN],
        "more": len(read) > MAX_READ or len(found) > MAX_SHOWN,
        "agent": agent,
        "state": state if state in STATES else STATES[0],
        "states": STATES,
    }


def release_page(host: HostClient, release_id: str) -> tuple[Classification, dict[str, object]]:
    """One release; while it is open, with its text and the item that it replaces, a look at which is audited."""
    found = host.get_release(release_id)
    return level_of(_levels(found)), {"it": found}


def _levels(release: Release) -> tuple[Classification, Classification]:
    return release.source_classification, release.classification
