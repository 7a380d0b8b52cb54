"""The labels that most tests mean when they name a level, and which labels flow to which, without the server's word."""

from __future__ import annotations

from muniment_server.domain.classification import Classification, Integrity, Label


def untrusted(level: int) -> Label:
    """The untrusted label of *level*."""
    return Label.of(Classification(level), Integrity.UNTRUSTED)


def trusted(level: int) -> Label:
    """The trusted label of *level*."""
    return Label.of(Classification(level), Integrity.TRUSTED)


FLOWS: dict[Label, frozenset[Label]] = {
    Label.PUBLIC_TRUSTED: frozenset({Label.PUBLIC_TRUSTED}),
    Label.PUBLIC: frozenset({Label.PUBLIC_TRUSTED, Label.PUBLIC}),
    Label.INTERNAL_TRUSTED: frozenset({Label.PUBLIC_TRUSTED, Label.INTERNAL_TRUSTED}),
    Label.INTERNAL: frozenset({Label.PUBLIC_TRUSTED, Label.PUBLIC, Label.INTERNAL_TRUSTED, Label.INTERNAL}),
    Label.CONFIDENTIAL_TRUSTED: frozenset({Label.PUBLIC_TRUSTED, Label.INTERNAL_TRUSTED, Label.CONFIDENTIAL_TRUSTED}),
    Label.CONFIDENTIAL: frozenset(Label) - {Label.RESTRICTED_TRUSTED, Label.RESTRICTED},
    Label.RESTRICTED_TRUSTED: frozenset(
        {Label.PUBLIC_TRUSTED, Label.INTERNAL_TRUSTED, Label.CONFIDENTIAL_TRUSTED, Label.RESTRICTED_TRUSTED}
    ),
    Label.RESTRICTED: frozenset(Label),
}
"""What may flow to each label."""
FORBIDDEN = [(label, other) for label in Label for other in Label if other not in FLOWS[label]]
"""A label, and one of those that it must not know of."""
