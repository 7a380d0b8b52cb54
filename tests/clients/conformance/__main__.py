"""`python -m tests.clients.conformance`: what each client sees of the service, and whether it is the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from tests.clients.conformance import documents
from tests.clients.conformance import scenarios as files
from tests.clients.conformance.clients import CLIENTS, Client
from tests.clients.conformance.scenarios import Scenario
from tests.clients.conformance.servers import TRANSPORTS, Elsewhere, Target, data_folder, serving
from tests.clients.conformance.suite import Played, Suite
from tests.clients.conformance.transcripts import Broken


class Names(click.ParamType[tuple[str, ...]]):
    """Names out of a set, with commas between them."""

    name = "names"

    def __init__(self, known: tuple[str, ...]) -> None:
        self._known = known

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        names = value if isinstance(value, tuple) else tuple(str(value).split(","))
        if unknown := [name for name in names if name not in self._known]:
            self.fail(f"{', '.join(unknown)} is none of {', '.join(self._known)}", param, ctx)
        return names


_CLIENT_NAMES = tuple(client.name for client in CLIENTS)
_EPILOG = """\b
Examples:
  python -m tests.clients.conformance
  python -m tests.clients.conformance --clients go,rust --transports tls
  python -m tests.clients.conformance --only taint_raised --transcripts /tmp/seen
  MUNIMENT_HOST_KEY=mun_h_… python -m tests.clients.conformance --address muniment.example:443 --ca-file ca.pem
"""


@click.command(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--clients", type=Names(_CLIENT_NAMES), default=_CLIENT_NAMES, help="Default: all whose tools are here.")
@click.option("--transports", type=Names(TRANSPORTS), default=TRANSPORTS, help="tls, plaintext, unix. Default: all.")
@click.option("--only", "only", metavar="NAME", multiple=True, help="Only the scenario of this file, without .yaml.")
@click.option("--address", metavar="HOST:PORT", help="A server of yours instead; MUNIMENT_HOST_KEY is its key.")
@click.option("--ca-file", metavar="FILE", help="With --address: TLS, and whom to trust. Without: plaintext.")
@click.option("--transcripts", metavar="DIR", type=click.Path(path_type=Path), help="Write what each client saw there.")
@click.option("--available", is_flag=True, help="Only name the languages whose tools are here.")
def main(
    clients: tuple[str, ...],
    transports: tuple[str, ...],
    only: tuple[str, ...],
    address: str | None,
    ca_file: str | None,
    transcripts: Path | None,
    available: bool,
) -> None:
    """Play every scenario with every client, and compare what they see.

    Starts a server of its own, and gives each client a tenant of its own. A client whose tools are not here is named
    as not run; with REQUIRE_ALL_CLIENTS=1 that is a failure.
    """
    chosen = _here([client for client in CLIENTS if client.name in clients])
    if available:
        click.echo(" ".join(dict.fromkeys(client.language for client in chosen)))
        return
    suite = Suite(_scenarios(only))
    _build(chosen)
    targets = _elsewhere(address, ca_file) if address is not None else _ours(transports, everything=bool(only))
    passed = [_say(played, transcripts) for target in targets for played in _play(suite, chosen, target)]
    if not all(passed):
        raise click.exceptions.Exit(1)


def _here(clients: list[Client]) -> list[Client]:
    """Those whose tools are here; the others are named."""
    here = [client for client in clients if not client.missing]
    for client in clients:
        if client.missing:
            click.echo(f"{client.name.upper()} NOT RUN: there is no {', '.join(client.missing)} on the PATH", err=True)
    if here != clients and os.environ.get("REQUIRE_ALL_CLIENTS") == "1":
        raise click.ClickException("REQUIRE_ALL_CLIENTS=1, and not every client can be run")
    return here


def _build(clients: list[Client]) -> None:
    for client in clients:
        try:
            client.make()
        except Broken as broken:
            raise click.ClickException(f"{client.name}: {broken}") from None


def _play(suite: Suite, clients: list[Client], target: Target) -> Iterator[Played | str]:
    """Let the clients play, two at once, each with a tenant of its own; what came of each, or why it is broken."""

    def play(client: Client) -> Played | str:
        try:
            return suite.play(client, target)
        except Broken as broken:
            return f"{client.name} over {target.transport}: BROKEN: {broken}"

    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(play, clients)


def _say(played: Played | str, transcripts: Path | None) -> bool:
    """Say what came of a client's play; whether all is well."""
    if isinstance(played, str):
        click.echo(played)
        return False
    _report(played)
    if transcripts is not None:
        transcripts.mkdir(parents=True, exist_ok=True)
        (transcripts / f"{played.who.replace(' ', '-')}.txt").write_text("\n".join(played.lines), encoding="utf-8")
    return played.passed


def _scenarios(only: tuple[str, ...]) -> list[Scenario]:
    """All, or those whose files are named."""
    scenarios = files.load()
    if unknown := set(only) - {scenario.file for scenario in scenarios}:
        raise click.UsageError(f"there is no scenario {', '.join(sorted(unknown))} in {documents.FOLDER}")
    return [scenario for scenario in scenarios if not only or scenario.file in only]


def _elsewhere(address: str, ca_file: str | None) -> Iterator[Target]:
    if not os.environ.get("MUNIMENT_HOST_KEY"):
        raise click.UsageError("--address needs a host key in MUNIMENT_HOST_KEY")
    yield Elsewhere(address, ca_file)


def _ours(transports: tuple[str, ...], *, everything: bool) -> Iterator[Target]:
    """A server of ours over each transport in turn."""
    with data_folder() as folder:
        for transport in transports:
            with serving(transport, folder, everything=everything) as server:
                yield server


def _report(played: Played) -> None:
    verdict = "ok" if played.passed else "FAILED"
    click.echo(f"{played.who:26} {played.steps:4} steps {played.seconds:6.1f} s  {verdict}")
    for title in played.left_out:
        click.echo(f"  not played, for want of a host key: {title}")
    for failure in played.failures:
        click.echo(f"  {failure}")
    for difference in played.differences:
        click.echo(difference)


if __name__ == "__main__":
    main()
