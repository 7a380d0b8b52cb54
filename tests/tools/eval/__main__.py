"""`make eval`: how well search finds, measured through the service and beside FTS5 and ILIKE, in one run."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import psycopg
from rich.console import Console
from rich.progress import track
from rich.table import Table

from muniment_server.embedder.e5.model import Model
from muniment_server.search.embeddings import readable
from tests.support.embedding_server import answer_with, embedding_server
from tests.tools.bench.processes import Service, serving
from tests.tools.eval import picture
from tests.tools.eval.corpora import BARE_TURNS, Corpus, corpora
from tests.tools.eval.folder import data_option
from tests.tools.eval.measures import NAMES, Scores, measured
from tests.tools.eval.systems import ByAddress, Fts5, Ilike, Muniment, System, WordsAlone
from tests.tools.eval.vectors import host_of, wait_for_vectors

_CONSOLE = Console()
_SYSTEMS = (Muniment.name, WordsAlone.name, Fts5.name, Ilike.name)
_OURS = (Muniment.name, WordsAlone.name, ByAddress.name)
_CALLERS = 2
FLOORS = {
    Muniment.name: {
        ("LoCoMo turns", "R@5"): 0.69, ("LoCoMo turns", "R@10"): 0.78, ("LoCoMo turns", "MRR"): 0.55,
        ("LoCoMo facts", "R@10"): 0.74, ("XQuAD", "R@1"): 0.93,
    },
    WordsAlone.name: {
        ("LoCoMo turns", "R@5"): 0.65, ("LoCoMo turns", "R@10"): 0.74, ("LoCoMo turns", "MRR"): 0.51,
        ("LoCoMo facts", "R@10"): 0.74, ("XQuAD", "R@1"): 0.91,
    },
}  # fmt: skip
"""What the service must reach, with the embedder and without."""
_BUILT_IN = "built-in"
_SLOWEST_QUERY = 0.030
"""Seconds in which a query gets its vector, on a quiet machine."""
PUBLISHED = "BM25 .616/.481, multilingual-e5-small .546/.404, the best models of 9 billion parameters .780/.623"
"""R@10/nDCG@10 of MTEB's task LoCoMo, of all ten conversations: those here are five of them."""
LEAD = 0.15
"""How far it must be ahead of FTS5 in recall at 10 of LoCoMo's turns."""
WORST_LANGUAGE = 0.06
"""How far below English a language may be in recall at 1."""


@click.command(epilog="Example: make eval ARGS='--only XQuAD'")
@click.option("--only", default="", help="Only sets whose name, or agent, holds this. Floors are those of whole sets.")
@data_option
@click.option(
    "--by-address",
    is_flag=False,
    flag_value=_BUILT_IN,
    metavar="[URL]",
    help="Also with the model that another program serves at URL, the built-in one without it. Takes twice as long.",
)
@click.option("--svg", default=None, type=click.Path(path_type=Path), help="Where to draw a picture.")
def main(only: str, data: Path, by_address: str | None, svg: Path | None) -> None:
    """Measure search on this machine. Takes some minutes. Fails when a floor of a whole set is missed."""
    every = corpora(data)
    chosen = [corpus for corpus in every if only in corpus.name or only in corpus.agent_id]
    if not chosen:
        there_are = ", ".join(dict.fromkeys([each.name for each in every] + [each.agent_id for each in every]))
        raise click.ClickException(f"no set is called {only}: there are {there_are}")
    folder = Path(tempfile.mkdtemp(prefix="muniment-eval-"))
    folder.chmod(0o711)
    try:
        with (
            serving(folder / "both", workers=1, threads=4) as service,
            serving(folder / "words", workers=1, threads=4, words_alone=True) as words_alone,
            _by_address(folder / "address", chosen, by_address) as other,
        ):
            scores = _run(service, words_alone, other, chosen)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _time_queries([question.text for corpus in chosen for question in corpus.questions][:200])
    names = list(dict.fromkeys(corpus.name for corpus in chosen))
    for name in names:
        _report(scores, name)
    if svg:
        svg.write_text(_drawn(scores, names), "utf-8")
    parts = {corpus.name for corpus in every if corpus not in chosen}
    missed = _missed(scores, [name for name in names if name not in parts])
    for name in names:
        if name in parts:
            _CONSOLE.print(f"{name}: not checked by its floors, which are those of the whole set")
    for line in missed:
        _CONSOLE.print(f"[red]missed:[/red] {line}")
    sys.exit(bool(missed))


@contextmanager
def _by_address(folder: Path, chosen: list[Corpus], url: str | None) -> Iterator[Service | None]:
    """A service with the model at *url*."""
    if url is None:
        yield None
    elif url == _BUILT_IN:
        with _built_in_by_address(folder, chosen) as service:
            yield service
    else:
        with serving(folder, workers=1, threads=4, more=("--embedder", url, "--embedder-model", "other")) as service:
            yield service


@contextmanager
def _built_in_by_address(folder: Path, chosen: list[Corpus]) -> Iterator[Service]:
    """A service with the built-in model at an address, which knows queries from chunks by the questions."""
    model = Model()
    queries = {readable(question.text) for corpus in chosen for question in corpus.questions}

    def embed(text: str) -> Sequence[int]:
        return model.embed_query(text) if text in queries else model.embed_chunk(text)

    with embedding_server() as server:
        server.answer = lambda handler, texts: answer_with(handler, [list(embed(text)) for text in texts])
        options = ("--embedder", server.url, "--embedder-model", "built-in")
        with serving(folder, workers=1, threads=4, more=options) as service:
            yield service
        asked = sum(text in queries for text in server.texts)
        _CONSOLE.print(f"the address embedded {len(server.texts) - asked:,} chunks and {asked:,} queries")


def _run(service: Service, words_alone: Service, by_address: Service | None, chosen: list[Corpus]) -> Scores:
    scores = Scores()
    seconds: dict[str, list[float]] = defaultdict(list)
    host, other = host_of(service), host_of(words_alone)
    with psycopg.connect(service.conninfo("postgres"), autocommit=True) as admin:
        for corpus in track(chosen, "asking", console=Console(stderr=True)):
            systems: dict[str, System] = {
                WordsAlone.name: WordsAlone(other, corpus),
                Muniment.name: Muniment(host, corpus),
                Fts5.name: Fts5(host, corpus),
                Ilike.name: Ilike(admin, corpus),
            }
            wait_for_vectors(service)
            if by_address is not None:
                systems[ByAddress.name] = ByAddress(host_of(by_address), corpus)
                wait_for_vectors(by_address)
            for name, system in systems.items():
                _ask(name, system, corpus, scores, seconds[name])
    for name in filter(seconds.get, _OURS):
        _say_how_long(f"a search of {name}", seconds[name])
    return scores


def _time_queries(queries: list[str]) -> None:
    """How long the embedder alone takes for a query."""
    model, seconds = Model(), []
    for query in queries:
        begun = time.monotonic()
        model.embed_query(query)
        seconds.append(time.monotonic() - begun)
    _say_how_long(f"embedding a query (at most {1000 * _SLOWEST_QUERY:.0f} ms on a quiet machine)", seconds)


def _say_how_long(what: str, seconds: list[float]) -> None:
    seconds = sorted(seconds)
    _CONSOLE.print(f"{what}: {1000 * _at(seconds, 0.5):.0f} ms (p50), {1000 * _at(seconds, 0.95):.0f} ms (p95)")


def _ask(name: str, system: System, corpus: Corpus, scores: Scores, seconds: list[float]) -> None:
    def answered(text: str) -> Any:
        begun = time.monotonic()
        found = system.search(text)
        seconds.append(time.monotonic() - begun)
        return found

    callers = _CALLERS if name in _OURS else 1
    with ThreadPoolExecutor(callers) as pool:
        answers = list(pool.map(answered, [question.text for question in corpus.questions]))
    for question, found in zip(corpus.questions, answers, strict=True):
        scores.add(name, corpus.name, question.category, measured(found, question.relevant))


def _at(values: list[float], part: float) -> float:
    return values[min(len(values) - 1, int(len(values) * part))]


def _report(scores: Scores, corpus: str) -> None:
    table = Table(title=corpus)
    table.add_column("")
    table.add_column("questions", justify="right")
    table.add_column("")
    for name in NAMES:
        table.add_column(name, justify="right")
    for category in scores.categories(corpus):
        systems = [each for each in (*_SYSTEMS, ByAddress.name) if scores.count(each, corpus, category)]
        for system in systems:
            means = scores.mean(system, corpus, category)
            shown = (category, str(scores.count(system, corpus, category))) if system == systems[0] else ("", "")
            table.add_row(*shown, system, *(f"{means[name]:.3f}" for name in NAMES), end_section=system == systems[-1])
    _CONSOLE.print(table)
    if corpus == BARE_TURNS:
        _CONSOLE.print(f"published for MTEB's LoCoMo, all ten conversations, R@10/nDCG@10: {PUBLISHED}")


def _drawn(scores: Scores, names: list[str]) -> str:
    rows = {
        f"{name}, {category}": {system: scores.mean(system, name, category)["R@10"] for system in _SYSTEMS}
        for name in names
        for category in scores.categories(name)
    }
    return picture.svg("Recall at 10", rows, _SYSTEMS)


def _missed(scores: Scores, names: list[str]) -> list[str]:
    found = [
        f"{system}, {name} {measure}: {got:.3f}, at least {floor}"
        for system, floors in FLOORS.items()
        for (name, measure), floor in floors.items()
        if name in names and (got := scores.mean(system, name)[measure]) < floor
    ]
    if "LoCoMo turns" in names:
        ours, theirs = (scores.mean(name, "LoCoMo turns")["R@10"] for name in (Muniment.name, Fts5.name))
        found += [f"ahead of FTS5 by {ours - theirs:.3f}, at least {LEAD}"] if ours - theirs < LEAD else []
    if "XQuAD" in names:
        languages = [one for one in scores.categories("XQuAD") if one != "all"]
        by_language = {one: scores.mean(Muniment.name, "XQuAD", one)["R@1"] for one in languages}
        found += [
            f"XQuAD {one}: {got:.3f}, English {by_language['en']:.3f}"
            for one, got in by_language.items()
            if got < by_language["en"] - WORST_LANGUAGE
        ]
    return found


if __name__ == "__main__":
    main()
