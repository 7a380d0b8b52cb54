"""The documentation site: what stops its build, and that it is read and searched from a disk."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.cli.page.looking import Look
from tests.clients.cli.page.test_in_a_browser import CHROMIUM, REQUIRED
from tests.tools.tour.readme import ROOT

SITE = Path("service", "docs", "site")
_MKDOCS = ROOT / ".venv-site" / "bin" / "mkdocs"

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not (_MKDOCS.exists() or REQUIRED), reason="MKDOCS NOT RUN: needs `make .venv-site/.stamp`"),
]


def build(repository: Path, into: Path) -> subprocess.CompletedProcess[str]:
    command = map(str, [_MKDOCS, "build", "--config-file", repository / SITE / "mkdocs.yml", "--site-dir", into])
    return subprocess.run([*command], capture_output=True, text=True, check=False)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Another repository, whose site has one page."""
    shutil.copytree(ROOT / SITE, tmp_path / SITE)
    settings = tmp_path / SITE / "mkdocs.yml"
    before, _, _ = settings.read_text(encoding="utf-8").partition("\nnav:\n")
    settings.write_text(f"{before}\nnav: [README.md]\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    return tmp_path


def with_pages(repository: Path, **pages: str) -> subprocess.CompletedProcess[str]:
    for name, text in pages.items():
        (repository / f"{name}.md").write_text(text, encoding="utf-8")
    subprocess.run(["git", "-C", repository, "add", "--all"], check=True)
    return build(repository, repository / "built")


def test_what_github_shows_is_shown(repository):
    """A second word after the language of a block, a bar in the code of a table, a file that is no page, a folder."""
    table, links = "| a |\n|---|\n| `x\\|y` |\n", "[file](service/docs/site/pages.py) [folder](service)\n"
    built = with_pages(repository, README=f"# A\n\n```sh once\ntrue\n```\n\n{table}\n{links}")
    assert built.returncode == 0, built.stderr

    shown = (repository / "built" / "index.html").read_text(encoding="utf-8")
    assert "once" not in shown
    assert "<td><code>x|y</code></td>" in shown
    assert re.search(r'<a href="service/docs/site/pages.py">file</a> folder', shown)
    assert (repository / "built" / SITE / "pages.py").exists()


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ({"README": "# A\n\n[b](gone.md)\n"}, "gone.md"),
        ({"README": "# A\n\n[b](#gone)\n"}, "#gone"),
        ({"README": "# A\n", "other": "# B\n"}, "other.md"),
        ({"README": '# A\n\n<img src="https://elsewhere.example/b.png">\n'}, "elsewhere.example"),
    ],
    ids=["a link to nothing", "an anchor of nothing", "a page without a place", "a picture of another host"],
)
def test_a_mistake_stops_the_build(repository, pages, said):
    built = with_pages(repository, **pages)

    assert built.returncode != 0
    assert said in built.stderr


def test_the_site_is_searched_from_a_disk(tmp_path):
    assert CHROMIUM, "REQUIRE_ALL_CLIENTS is set, and there is no Chromium"
    built = build(ROOT, tmp_path / "site")
    assert built.returncode == 0, built.stderr
    options = ["--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--dump-dom"]
    options += ["--virtual-time-budget=20000", f"--user-data-dir={tmp_path / 'profile'}"]
    options += ["--no-sandbox"] if os.geteuid() == 0 else []
    page = f"{(tmp_path / 'site' / 'index.html').as_uri()}?q=synchronous+standby"

    done = subprocess.run([CHROMIUM, *options, page], capture_output=True, text=True, timeout=60, check=True)

    (found,) = Look(done.stdout).texts("md-search-result__list")
    assert "Failover of your own Postgres" in found
