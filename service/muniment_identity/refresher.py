"""Keeps the file of identities up to date, in a process of its own: what an issuer sends is parsed beside no call.

It fetches at its own pace, from the places that operators have named: nothing that a caller sends makes it fetch.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from muniment_identity.file import CERTIFICATE, KEY_SECONDS, Identity, Jwk, Keys, Known
from muniment_identity.keys import UnusableKeys, keys_at
from muniment_server.domain.errors import MunimentError
from muniment_server.postgres import queries, roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.placement import Databases, PlacedDatabase
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.rows import rows_of
from muniment_server.process import child_main
from muniment_server.telemetry.logs import fields

_LOG = logging.getLogger("muniment.identities")
_QUERIES = queries.load(__package__, "queries.sql")
_PAUSE = 2.0
"""Seconds after which the database is asked again which identities there are."""
_QUERY_SECONDS = 5.0
_FRESH_SECONDS = 300.0
"""How long fetched keys count as fresh."""
_RETRY_SECONDS = 30.0
_FILE_SECONDS = 10.0
"""How long those of a file do."""
_FETCHES_AT_ONCE = 32
_NO_KEYS = "no key has a `kid` and can verify signatures: RSA of 2048 to 8192 bits, EC or Ed25519"


def main() -> None:
    """Refresh until the input ends or SIGTERM arrives."""
    orders = child_main.receive_orders("identities")
    if orders is None or orders.assignment.identities is None:
        return
    refresher = Refresher(orders.assignment.databases(SINGLE), Path(orders.assignment.identities))
    refresher.refresh()
    child_main.report_ready()
    child_main.beat_while(lambda: True)
    while not orders.stop.wait(_PAUSE):
        refresher.refresh()


class Refresher:
    """Asks databases for identities and issuers for keys, and writes both down."""

    def __init__(
        self,
        databases: Databases,
        path: Path,
        *,
        keys_at: Callable[[str], Sequence[Jwk]] = keys_at,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._databases = databases
        self._path = path
        self._keys_at = keys_at
        self._clock = clock
        self._of_server: dict[str, Sequence[Identity]] = {}
        self._due: dict[str, float] = {}
        """When each place is to be asked again."""
        self._problems: dict[str, str] = {}
        """Why the keys of a place could not be had when it was last asked."""
        try:
            self._known = Known.read(path)
        except (OSError, ValueError):
            self._known = Known()

    def refresh(self) -> None:
        """Ask whoever is to be asked now, and write the file if that has changed anything."""
        for placed in self._databases:
            self._ask_database(placed)
        if len(self._of_server) < len(self._databases.names):
            return  # one has not answered yet: what the file says of it stands
        identities = tuple(each for found in self._of_server.values() for each in found)
        places = {each.keys for each in identities} - {CERTIFICATE}
        now = self._clock()
        self._due = {place: self._due.get(place, 0.0) for place in places}
        due = [place for place in sorted(places) if self._due[place] <= now]
        with ThreadPoolExecutor(_FETCHES_AT_ONCE) as threads:
            fetched = dict(zip(due, threads.map(self._ask_issuer, due), strict=True))
        keys = {place: keys for place, keys in {**self._known.keys, **fetched}.items() if keys and place in places}
        self._keep(Known(identities, {place: each for place, each in keys.items() if now < each.fetched + KEY_SECONDS}))

    def _keep(self, known: Known) -> None:
        if known != self._known:
            try:
                known.write(self._path)
            except OSError as error:
                _LOG.error("identities cannot be written to %s: %s", self._path, type(error).__name__)
            else:
                self._known = known

    def _ask_database(self, placed: PlacedDatabase) -> None:
        """While a database is away, its identities stay what they were: its calls are refused anyway."""
        try:
            with placed.database.connection(roles.CONTROL, Deadline(_QUERY_SECONDS)) as connection:
                self._of_server[placed.name] = rows_of(connection, _QUERIES, "list_identities", Identity)
        except MunimentError as error:
            self._report(f"database {placed.name}".strip(), type(error).__name__)
        else:
            self._report(f"database {placed.name}".strip(), "")

    def _ask_issuer(self, place: str) -> Keys | None:
        """The keys at *place*, or those from before if it cannot be asked. None if there are none."""
        before, now = self._known.keys.get(place), self._clock()
        try:
            found = self._keys_at(place)
        except Exception as error:  # noqa: BLE001 - whatever one issuer sends, the others are to be asked
            self._due[place] = now + _RETRY_SECONDS
            self._report(place, str(error) if isinstance(error, UnusableKeys) else type(error).__name__)
            return before
        self._due[place] = now + (_FRESH_SECONDS if place.startswith("https:") else _FILE_SECONDS)
        self._report(place, "" if found else _NO_KEYS)
        is_new = before is None or found != before.keys or now - before.fetched >= _FRESH_SECONDS
        return Keys(found, now) if is_new else before

    def _report(self, place: str, problem: str) -> None:
        """Log a problem when it begins, changes and ends."""
        if problem and self._problems.get(place, "") != problem:
            _LOG.warning("no identities or keys", extra=fields(place=place, problem=problem))
        elif not problem and self._problems.get(place):
            _LOG.info("identities or keys again", extra=fields(place=place))
        self._problems[place] = problem


if __name__ == "__main__":
    main()
