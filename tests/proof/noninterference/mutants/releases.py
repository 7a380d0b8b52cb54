"""Guards of the release desk, broken: who approves, how many do, and that what is released is what they approved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from muniment_server.domain.releases import Release
from muniment_server.items.own_session import end_session
from muniment_server.releases import desk, repository
from tests.proof.noninterference.mutants.scheme import Mutant, setting

_approve, _request, _why_not = repository.approve, desk.request, desk._refusal


def _one_is_enough(scope: Any, release: Release) -> Release:
    return replace(_approve(scope, release), required=1)


def _released_at_once(context: Any, wanted: Any) -> Release:
    release = _request(context, wanted)
    with context.host_scope() as scope:
        writer = desk._claim(scope, release)
    try:
        desk._write(context, release, writer)
    finally:
        end_session(context, writer)
    return release


def _by_anyone(release: Release, content_hash: bytes | None) -> Any:
    return _why_not(replace(release, is_own=False), content_hash)


RELEASES = (
    Mutant(
        "an item is released as soon as a key asks for it",
        "worlds",
        (setting(desk, "request", _released_at_once),),
        about="releases",
    ),
    Mutant(
        "one approval releases an item",
        "worlds",
        (setting(repository, "approve", _one_is_enough),),
        about="releases",
        trusted=True,
    ),
    Mutant(
        "the key that asked for a release approves it",
        "worlds",
        (setting(desk, "_refusal", _by_anyone),),
        about="releases",
    ),
    Mutant(
        "a release writes another text than was approved",
        "worlds",
        (setting(Release, "is_of", lambda _, item: item is not None),),
        about="releases",
        trusted=True,
    ),
)
