"""The installed server on a Postgres of one's own, with the commands that the README gives for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.operations.release import packages
from tests.operations.release.elsewhere import Elsewhere
from tests.operations.release.packages import blocks, readme
from tests.support.commands import SYSTEM_POSTGRES
from tests.support.external_postgres import admin_url, other_postgres, url

__all__ = ["other_postgres", "url"]

pytestmark = [
    pytest.mark.dist,
    pytest.mark.skipif(not SYSTEM_POSTGRES, reason="NO SYSTEM POSTGRES in /usr/lib/postgresql: not tested"),
]


@pytest.fixture(scope="package")
def root_folder(elsewhere: Elsewhere) -> Path:
    """Where the Postgres keeps its data."""
    made = elsewhere.folder / "postgres"
    made.mkdir(mode=0o711)
    return made


def test_the_example_on_a_postgres_of_the_system(elsewhere: Elsewhere, installed: Path, url: str):
    text = readme(packages.WHEEL, elsewhere.dist)
    project = elsewhere.project("own-postgres", {"main.py": blocks(text, "python")[0]})
    muniment, passfile = installed / "muniment", project / "passfile"
    admin, served = {"MUNIMENT_DATABASE_URL": admin_url(url)}, {"MUNIMENT_DATABASE_URL": url}

    elsewhere.run(muniment, "migrate", "--passfile", passfile, cwd=project, given=admin)
    create = ("host-key", "create", "--quiet", "--tenant", "acme", "--ceiling", "confidential")
    key = elsewhere.run(muniment, *create, cwd=project, given=admin).strip()
    with elsewhere.serving(installed, "--passfile", str(passfile), given=served) as server:
        host = {"MUNIMENT_ADDRESS": server.address, "MUNIMENT_HOST_KEY": key}
        output = elsewhere.run(installed / "python", "main.py", cwd=project, given=host)
    assert output == blocks(text, "text")[0]
