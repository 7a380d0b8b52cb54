"""Every guard, broken on purpose, with the check that must notice.

The ids M01 to M103 are those of the threat model's list of leak mutants. A mutant is a patch of the
server's Python, an edit of a named query, or damage done to the schema; some are two at once. Its killer is
one of

* `worlds`: the observer below can tell the two worlds apart, with the model's verdict switched off;
* `alone`: a session can tell what other agents and tenants hold, by the difference of such worlds;
* `beside`: the observer can tell that sessions above call at the same time;
* `model`: the service answers otherwise than the reference model;
* `egress`: an answer above the taint was there, and the egress filter held it back;
* `fault`: another guard (a grant, a constraint) turned it into INTERNAL, or something was said that must not be;
* `grants`: the comparison of the catalog with the matrix, which stops the server from starting;
* a probe: one pointed check of `probes.py`.

Where another guard stands behind the one that is broken, the mutant alone changes nothing that can be
observed. Such a mutant names its `covered_by`, must pass, and stands beside one that breaks both.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.proof.noninterference.mutants.blocks import BLOCKS
from tests.proof.noninterference.mutants.callers import OTHER, PAGES_AND_TEXT, STATE
from tests.proof.noninterference.mutants.embeddings import EMBEDDINGS
from tests.proof.noninterference.mutants.grants import GRANTS
from tests.proof.noninterference.mutants.integrity import INTEGRITY
from tests.proof.noninterference.mutants.level_views import LEVEL_VIEWS
from tests.proof.noninterference.mutants.many import MANY
from tests.proof.noninterference.mutants.notes import NOTES
from tests.proof.noninterference.mutants.passages import PASSAGES, PROMPTS
from tests.proof.noninterference.mutants.reading import LATTICE, NEWER, ORDER
from tests.proof.noninterference.mutants.releases import RELEASES
from tests.proof.noninterference.mutants.scheme import Mutant as Mutant
from tests.proof.noninterference.mutants.scheme import applied as applied
from tests.proof.noninterference.mutants.scope import SCOPE
from tests.proof.noninterference.mutants.search import SEARCH
from tests.proof.noninterference.mutants.writing import EXISTENCE, WRITES

_FIRST: dict[str, int] = {
    "an item comes back at a lower level": 113,
    "a reset makes a read-only session one that writes": 142,
    "an item that has expired comes back": 11,
    "a host lists sessions of agents above its ceiling": 19,
    "M08 the label of an answer is the highest": 2,
    "a host raises sessions of agents above its ceiling": 17,
    "M86 the policy allows all": 2,
    "the ceiling of the agent is not checked on open": 4,
    "a host reads sessions of agents above its ceiling": 5,
    "M41 page tokens are not sealed": 4,
    "M78 prompts are remembered without the taint": 5,
    "M05 get takes the lowest": 2,
    "embeddings of any agent are compared": 3,
    "M12 how many chunks hold a word is counted over all levels": 4,
    "a refusal tells of own notes only": 2,
    "over the limit nothing may be shortened": 2,
    "M05 search takes the lowest": 19,
    "M09 list filters tags before the shadow": 2,
    "M10 list limits before the shadow": 2,
    "M10 search has no shadow": 2,
    "M12 scores count over all levels": 2,
    "M12 how many chunks there are is counted over all levels": 40,
    "M34 an expired row still stands": 2,
    "a save's etag is checked against a lower version": 2,
    "a delete ignores the etag": 3,
    "M26 the driver's detail is forwarded, a CHECK tests the expire time": 5,
    "a CHECK tests the expire time": 3,
    "M31 writes touch the agent": 5,
    "M32 delete tells what is above from nothing": 2,
    "M42 page tokens are any filter's": 8,
    "keys are not normalized": 2,
    "M45 the conversation's mark is skipped": 2,
    "M69 the view does not ask for the taint": 3,
    "M69 the view does not ask for the taint, no egress filter": 3,
    "M70 the view shows closed sessions": 3,
    "M70 the view shows expired sessions": 11,
    "M74 requests are logged": 14,
    "M89 sessions of any tenant": 2,
    "M09 notes are held against the tier before the shadow": 5,
    "M09 a search holds notes against the tier before the shadow": 8,
    "a duplicate is another note": 3,
    "notes of one call have one create_time": 2,
    "a delete is checked": 10,
    "the budget is held against each edit": 3,
    "an update ignores the etag": 2,
    "edits that are only to be checked are made": 4,
    "M13 a page of blocks goes on after the label": 2,
    "a higher shared block comes before the own one": 4,
    "M03 shared blocks of any session are read": 4,
    "M60 an owner's view over what is shared, served": 3,
    "M60 an owner's view over what is shared, no egress filter": 6,
    "M23 a label is unique across levels": 2,
    "the first of several places is replaced": 4,
    "lines end where Unicode says": 5,
    "a block may be of any size": 7,
    "a PUBLIC version is no hindrance to content": 3,
    "what is attached stays attached": 5,
    "M10 a search of passages has no shadow": 16,
    "the end of a time is in it": 2,
    "the end of a time is in it, in a search": 15,
    "the beginning of a time is not in it": 3,
    "a search in any thread": 2,
    "M13 a page of passages goes on after the event_time": 3,
    "a broken import does not tell how far it came": 3,
    "what comes after a conflict is stored": 4,
    "M32 a delete of a passage tells what is above from nothing": 7,
    "M10 a semantic search has no shadow": 4,
    "M09 a semantic search filters tags before the shadow": 6,
    "the chunk of another version is checked": 3,
    "M12 vectors of all levels are compared": 34,
    "a semantic search in any thread": 3,
    "who is calling is kept for all calls of the process": 2,
    "M88 the terms of any agent are counted, compared without others": 3,
    "M78 the counts of a query's words are remembered for whoever asks, compared without others": 37,
}
"""The first program that kills, where the first of all does not. It saves time and promises nothing: if programs
change, others near it are tried, and then all."""
MUTANTS = tuple(
    replace(mutant, seed=_FIRST.get(mutant.name, 1))
    for mutant in (
        *(*LATTICE, *INTEGRITY, *ORDER, *NEWER, *WRITES, *EXISTENCE, *PAGES_AND_TEXT, *STATE, *GRANTS, *OTHER),
        *(*NOTES, *BLOCKS, *PASSAGES, *PROMPTS, *SEARCH, *EMBEDDINGS, *SCOPE, *LEVEL_VIEWS, *MANY, *RELEASES),
    )
)
_BY_NAME = {mutant.name: mutant for mutant in MUTANTS}


def change(monkeypatch: pytest.MonkeyPatch, name: str, *, outside: bool = False) -> None:
    """Break the guard of the mutant *name*: of its patches, all or those outside of the monitor."""
    mutant = _BY_NAME[name]
    for patch in (mutant.outside if outside else mutant).patches:
        patch.apply(monkeypatch)
