"""Each guard of the seals is missed by a test: without it, `test_audit_seals.py` or `domain/test_seals.py` fails.

A mutant is a copy of the server's package with one text of one file replaced, and the tests run on it in a process of
their own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import muniment_server

_PROJECT = Path(__file__).parents[3]
_TESTS = ("tests/calls/domain/test_seals.py", "tests/operations/admin/test_audit_seals.py")
_TESTS_FAILED = 1
"""What pytest exits with if tests failed. If none could be collected, it exits with 2."""


class Mutant(NamedTuple):
    """A text in a file of the package, and what replaces it."""

    file: str
    right: str
    wrong: str


_SEALS, _SEALER, _SEALING = "domain/seals.py", "background/sealer.py", "admin/sealing.py"

MUTANTS = {
    "an event's hash leaves out its level": Mutant(
        _SEALS, "self.tenant, self.chain, self.by_host, str(", "self.tenant, self.by_host, str("
    ),
    "an event's hash leaves out its reason": Mutant(
        _SEALS, "self.revision, self.result_count, self.reason,", "self.revision, self.result_count,"
    ),
    "an event's hash leaves out its outcome": Mutant(
        _SEALS, "self.method, self.outcome, self.kind", "self.method, self.kind"
    ),
    "a seal's hash leaves out the seal before": Mutant(_SEALS, "before, seal.tenant,", "None, seal.tenant,"),
    "a seal's hash leaves out its events": Mutant(_SEALS, "seal.events_hash.hex(),\n", ""),
    "a seal's hash is not compared": Mutant(_SEALS, " and self.hash == _hash_of(self, previous)", ""),
    "a seal's number is not compared": Mutant(_SEALS, "self.number == _number(previous) + 1 and ", ""),
    "two sealers may use one number": Mutant(
        _SEALER, "        raise Raced\n    return seal", "        pass\n    return seal"
    ),
    "a pass begins at the last event, whatever its time": Mutant(
        _SEALER, "Position(position.time - _OVERLAP, position.event_id)", "position"
    ),
    "an event of the future moves the beginning": Mutant(_SEALER, "if progress.new.time > latest:", "if False:"),
    "older events are never looked for": Mutant(_SEALER, "        self._rescan(connection, tenant, progress)\n", ""),
    "the number of events under a seal is not compared": Mutant(_SEALING, "if len(events) != covered:", "if False:"),
    "the hash of the events under a seal is not compared": Mutant(
        _SEALING, "elif hash_of_events(events) != seal.events_hash:", "elif False:"
    ),
    "a checkpoint beyond the last seal is accepted": Mutant(
        _SEALING,
        '            if seal is None:\n                self._problem(\n                    f"the checkpoint',
        '            if seal is None and False:\n                self._problem(\n                    f"the checkpoint',
    ),
    "any hash of a checkpoint is accepted": Mutant(
        _SEALING, "elif (seal.hash.hex(), seal.event_count) !=", "elif False and (seal.hash.hex(), seal.event_count) !="
    ),
    "what an event says of a purge is believed": Mutant(
        _SEALING, "if seal is None or seal.hash.hex() != removal.hash:", "if False:"
    ),
    "every seal without events counts as purged": Mutant(_SEALING, "if removable and not events:", "if not events:"),
    "versions with the event of another level are not counted": Mutant(_SEALING, "if changes.elsewhere:", "if False:"),
    "versions without an event are not counted": Mutant(_SEALING, "if changes.nowhere:", "if False:"),
    "events that are not sealed for long are no problem": Mutant(
        _SEALING, "unsealed.now - unsealed.overtaken > _LATE", "False"
    ),
    "events that wait for the next scan are a problem": Mutant(
        _SEALING, "unsealed.now - unsealed.overtaken > _LATE", "True"
    ),
    "the time of a seal that was made while a clock was back counts": Mutant(
        "admin/sealing.sql", "              AND seal.number <= (\n", "              AND seal.number = (\n"
    ),
    "an event with the id of one that is sealed elsewhere is no problem": Mutant(
        _SEALING, "if unsealed.copies:", "if False:"
    ),
    "late seals are not noted": Mutant(_SEALING, "self._odd_times[_SEALED_LATE] += 1", "pass"),
    "a purge leaves no event": Mutant(
        _SEALING, '    operator.execute("record_removal", tenant=tenant, reason=reason)\n', ""
    ),
    "a purge may remove what was sealed later": Mutant(
        "admin/sealing.sql", "   AND seal.time < %(before)s\n", "   AND (seal.time < %(before)s OR true)\n"
    ),
    "a purge removes events of hosts, too": Mutant("admin/sealing.sql", "       AND NOT uncovered.by_host\n", ""),
    "a purge relies on the clock": Mutant(
        "admin/sealing.sql",
        "              AND newer.time >= %(before)s\n",
        "              AND newer.time >= %(before)s AND false\n",
    ),
    "an event that another level has sealed counts as sealed": Mutant(
        "admin/sealing.sql", "WHERE covered.level IS DISTINCT FROM %(level)s", "WHERE covered.level IS NULL"
    ),
    "an event is sealed again at another level": Mutant(
        "background/sealer.sql", "        ON CONFLICT (tenant, by_host, event_id) DO NOTHING\n", ""
    ),
}


@pytest.mark.proof
@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_the_tests_of_seals_miss_each_guard(mutant: Mutant, tmp_path: Path) -> None:
    package = tmp_path / "muniment_server"
    shutil.copytree(Path(muniment_server.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    file = package / mutant.file
    source = file.read_text()
    assert source.count(mutant.right) == 1, "it reads otherwise by now: choose another mutant"
    file.write_text(source.replace(mutant.right, mutant.wrong))

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", *_TESTS],
        cwd=_PROJECT,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    print(*[line for line in done.stdout.splitlines() if line.startswith("FAILED")])
    assert done.returncode == _TESTS_FAILED, done.stdout + done.stderr
