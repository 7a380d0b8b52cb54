"""The files of compose, checked by the reference of the Compose Specification."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.operations.deploy.containers import DEPLOY
from tests.operations.tools.programs import COMPOSE, run_tool
from tests.support.each import for_each

pytestmark = pytest.mark.proof
_FILES = ("compose.yaml", "compose.grafana.yaml", "compose.console.yaml")


def model(*files: Path) -> dict[str, dict[str, Any]]:
    """What *files* say together, as the reference understands them."""
    done = run_tool(COMPOSE, "-format", "json", *map(str, files))
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


def test_every_service_is_without_rights_and_on_a_read_only_file_system():
    found = model(*(DEPLOY / name for name in _FILES))["services"]

    assert set(found) == {"postgres", "operator", "server", "http", "prometheus", "grafana", "console"}
    for name, service in found.items():
        rights = (service["read_only"], service["cap_drop"], service["security_opt"])
        assert rights == (True, ["ALL"], ["no-new-privileges"]), name
        assert all(port["host_ip"] == "127.0.0.1" for port in service.get("ports", ())), name


def test_what_a_service_names_is_there():
    found = model(*(DEPLOY / name for name in _FILES))

    for service in found["services"].values():
        mounts = service.get("volumes", ())
        assert set(service.get("depends_on", ())) <= set(found["services"])
        assert {mount["source"] for mount in mounts if mount["type"] == "volume"} <= set(found["volumes"])
        files = [mount["source"] for mount in mounts if mount["type"] == "bind" and "secrets" not in mount["source"]]
        assert all((DEPLOY / Path(file).name).exists() for file in files), files


def test_the_console_is_not_started_without_its_file_and_reads_its_key_from_one():
    console = model(*(DEPLOY / name for name in _FILES))["services"]["console"]

    assert "console" not in model(DEPLOY / "compose.yaml")["services"]
    assert "$$(cat /etc/muniment/host-key)" in console["entrypoint"][2] or "$(cat" in console["entrypoint"][2]
    assert console["environment"].keys() == {"MUNIMENT_ADDRESS", "MUNIMENT_TLS_CA"}


@for_each(
    "change",
    [
        ("read_only: true", "read_onely: true"),
        ("restart: always", "restart: [always]"),
        ("depends_on: [postgres]", "depends_on: {postgres: always}"),
    ],
)
def test_a_mistake_is_found(tmp_path, change):
    text = (DEPLOY / "compose.yaml").read_text()
    assert change[0] in text
    (tmp_path / "compose.yaml").write_text(text.replace(*change))

    assert run_tool(COMPOSE, str(tmp_path / "compose.yaml")).returncode != 0
