"""`make timing`: what a low caller learns by time, by overload and by the embedder's load, in bits a second."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from itertools import product

import click

from tests.proof.faults.processes import ServerProcess
from tests.proof.timing import credentials
from tests.proof.timing.channels import CHEAP, SENDERS
from tests.proof.timing.measuring import RELATIONS, Found, Parties, measure


@click.command()
@click.option("--slots", default=200, show_default=True, help="Bits that are sent in each measurement.")
@click.option("--seconds", default=0.5, show_default=True, help="The length of a slot.")
@click.option("--sender", "senders", multiple=True, type=click.Choice(list(SENDERS)), help="Only this sender.")
@click.option("--relation", "relations", multiple=True, type=click.Choice(RELATIONS), help="Only this sender's place.")
@click.option("--load/--no-load", "loaded", default=False, help="With an honest load of another tenant beside it.")
@click.option("--calls", default=600, show_default=True, help="Calls with a bad token, for each kind of token.")
@click.option("--seed", default=1, show_default=True, help="Of the bits.")
def main(
    slots: int,
    seconds: float,
    senders: tuple[str, ...],
    relations: tuple[str, ...],
    loaded: bool,
    calls: int,
    seed: int,
) -> None:  # fmt: skip
    """Measure each sender from each place, and what a refusal tells about a bad token. Run nothing beside it."""
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    click.echo(
        f"{datetime.now(UTC):%F %R} UTC, {os.cpu_count()} cores, load averages {load}; {slots} slots of {seconds} s"
    )
    click.echo(
        "| sender | place | costs | bit/s | 95 % | shuffled | errors | seen in | calls, refused | load, call/s |"
    )
    click.echo("|---|---|---|---|---|---|---|---|---|---|")
    server = ServerProcess()
    try:
        server.start()
        parties = Parties(server)
        for sender, relation in product(senders or SENDERS, relations or RELATIONS):
            found = measure(parties, relation, sender, slots, seconds, loaded=loaded, seed=seed)
            click.echo(_row(sender, relation, found))
        click.echo("\n| token | bits a call | 95 % | shuffled | errors |")
        click.echo("|---|---|---|---|---|")
        for kind, (each, shuffled) in credentials.measure(server, calls, seed=seed).items():
            click.echo(
                f"| {kind} | {each.bits:.3f} | {each.low:.3f} to {each.high:.3f} | {shuffled:.3f} "
                f"| {each.errors} of {each.tested} |"
            )
    finally:
        server.destroy()


def _row(sender: str, relation: str, found: Found) -> str:
    each, rate = found.capacity, 1 / found.slots.seconds
    took = found.slots.seconds * found.slots.number
    cells = (
        sender, relation, "nothing" if sender in CHEAP else "many calls", f"{each.bits * rate:.3f}",
        f"{each.low * rate:.3f} to {each.high * rate:.3f}", f"{found.shuffled * rate:.3f}",
        f"{each.errors} of {each.tested}", each.feature, f"{found.calls}, {found.refused}", f"{found.load / took:.0f}",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
