"""`make eval-people`: whether search finds what people type, by kind of query, by words alone and with embeddings."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from muniment import Classification, HostClient, SessionClient
from muniment_server.search.relevance import FITS
from tests.tools.bench.processes import serving
from tests.tools.eval.people.corpora import KINDS, NONE, SHARES_NO_WORD, Corpus, Query, corpora
from tests.tools.eval.systems import Muniment, WordsAlone
from tests.tools.eval.vectors import host_of, wait_for_vectors

_CONSOLE = Console()
_CALLERS = 2
_SAVED_AT_ONCE = 32
_TRIES = 50
"""On a machine that is busy a query may wait in vain for its vector."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The keys that a query found, best first, each with its relevance."""

    corpus: str
    query: Query
    found: Mapping[str, float]

    def among(self, first: int) -> bool:
        """Whether an expected key is among the *first*; if none is expected, whether nothing is found."""
        if not self.query.expected:
            return not self.found
        return not self.query.expected.isdisjoint(list(self.found)[:first])

    @property
    def relevance(self) -> float:
        """The highest relevance of what is expected; if nothing is expected, of what is found."""
        return max((fit for key, fit in self.found.items() if key in (self.query.expected or self.found)), default=0.0)


@click.command(epilog="Example: make eval-people ARGS='--words-alone --only kitchen --failures'")
@click.option("--only", default="", help="Only corpora whose name holds this.")
@click.option("--words-alone", is_flag=True, help="Not with embeddings.")
@click.option("--failures", is_flag=True, help="List the queries whose expected memory is not first.")
def main(only: str, words_alone: bool, failures: bool) -> None:
    """Ask for memories as people do, and count how often the right one is first or among the first three."""
    chosen = [corpus for corpus in corpora() if only in corpus.name]
    if not chosen:
        raise click.ClickException(f"no corpus is called {only}: there are {', '.join(one.name for one in corpora())}")
    answers = {WordsAlone.name: _asked(chosen, words_alone=True)}
    if not words_alone:
        answers[Muniment.name] = _asked(chosen, words_alone=False)
    _CONSOLE.print(_table(answers))
    for name, given in answers.items():
        _CONSOLE.print(_overlap(name, given))
    if failures:
        for name, given in answers.items():
            _list_failures(name, given)


def _asked(chosen: Sequence[Corpus], *, words_alone: bool) -> list[Answer]:
    folder = Path(tempfile.mkdtemp(prefix="muniment-people-"))
    folder.chmod(0o711)
    try:
        with serving(folder / "data", workers=1, threads=4, words_alone=words_alone) as service:
            host = host_of(service)
            sessions = [_saved(host, corpus) for corpus in chosen]
            if not words_alone:
                wait_for_vectors(service)
            pairs = track(zip(chosen, sessions, strict=True), "asking", len(chosen), console=Console(stderr=True))
            return [answer for corpus, session in pairs for answer in _answers(corpus, session, not words_alone)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _saved(host: HostClient, corpus: Corpus) -> SessionClient:
    session = host.open_session(host.create_agent(f"people-{corpus.name}").agent_id, Classification.INTERNAL)
    for begin in range(0, len(corpus.memories), _SAVED_AT_ONCE):
        session.save_memories(corpus.memories[begin : begin + _SAVED_AT_ONCE])
    return session


def _answers(corpus: Corpus, session: SessionClient, semantic: bool) -> list[Answer]:
    with ThreadPoolExecutor(_CALLERS) as pool:
        found = list(pool.map(lambda query: _search(session, query.text, semantic), corpus.queries))
    return [Answer(corpus.name, query, keys) for query, keys in zip(corpus.queries, found, strict=True)]


def _search(session: SessionClient, text: str, semantic: bool) -> dict[str, float]:
    """What is found; also that by words alone if a *semantic* search has no embedding after many tries."""
    tries = (session.search_memories(text, timeout=30) for _ in range(_TRIES))
    found = next((one for one in tries if one.semantic == semantic), None) or session.search_memories(text, timeout=30)
    return {result.memory.key: result.relevance for result in found}


def _table(answers: dict[str, list[Answer]]) -> Table:
    table = Table(title="What people type")
    table.add_column("kind")
    table.add_column("queries", justify="right")
    for name in answers:
        table.add_column(f"{name}\nR@1", justify="right")
        table.add_column("\nR@3", justify="right")
    for label, kinds in _groups():
        chosen = [[one for one in given if one.query.kind in kinds] for given in answers.values()]
        shares = [f"{_share(given, first):.3f}" for given in chosen if given for first in (1, 3)]
        if shares:
            table.add_row(label, str(len(chosen[0])), *shares)
    return table


def _groups() -> Iterable[tuple[str, frozenset[str]]]:
    yield "all that is there", frozenset(KINDS) - {NONE}
    yield "where words can", frozenset(KINDS) - {NONE} - SHARES_NO_WORD
    for kind in KINDS:
        yield kind, frozenset({kind})


def _share(answers: Sequence[Answer], first: int) -> float:
    return sum(one.among(first) for one in answers) / len(answers)


def _overlap(name: str, answers: Sequence[Answer]) -> str:
    """How well relevance separates right answers from the results of queries that nothing answers."""
    right = [one.relevance for one in answers if not one.query.expected.isdisjoint(one.found)]
    wrong = [one.relevance for one in answers if one.query.kind == NONE]
    if not right or not wrong:
        return f"{name}: relevance not compared"
    above = sum((one > other) + (one == other) / 2 for one in right for other in wrong) / len(right) / len(wrong)
    fit, fit_wrongly = (sum(one >= FITS for one in each) / len(each) for each in (right, wrong))
    return (
        f"{name}: in {above:.3f} of pairs, the right answer is more relevant than the result of a query without one; "
        f"{fit:.3f} of right answers have at least {FITS}, and {fit_wrongly:.3f} of the others"
    )


def _list_failures(name: str, answers: Sequence[Answer]) -> None:
    _CONSOLE.print(f"\n{name}: queries whose expected memory is not first")
    for one in answers:
        if not one.among(1):
            expected = " or ".join(sorted(one.query.expected)) or "nothing"
            found = ", ".join(list(one.found)[:3]) or "nothing"
            line = f"{one.corpus}  {one.query.kind}  {one.query.text}  expected {expected}, found {found}"
            _CONSOLE.print(line, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
