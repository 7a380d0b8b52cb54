"""The page's commands start the server and Postgres, and a client stores and reads."""

from __future__ import annotations

import re
import ssl
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copy
from urllib.request import Request, urlopen

import pytest

import muniment
from tests.operations.deploy.containers import DEPLOY, Host, block
from tests.support.certificates import make as make_certificate
from tests.support.commands import wait_until
from tests.support.ports import free_port

pytestmark = pytest.mark.deploy


@dataclass(frozen=True, slots=True)
class Deployment:
    """What `compose.yaml` has started."""

    host: Host
    folder: Path
    address: str
    key: str

    def shell(self, script: str) -> str:
        return self.host.shell(script, self.folder)

    def answers(self, name: str) -> bool:
        """Whether the probe succeeds."""
        return self.host.attempt("podman", "exec", "muniment_server_1", "muniment-health", name).returncode == 0

    def connect(self) -> muniment.Host:
        tls = muniment.TLS(ca=str(self.folder / "ca.pem"))
        return muniment.connect(self.address, host_key=self.key, tls=tls)


@pytest.fixture(scope="module")
def deployment(machine: Host) -> Iterator[Deployment]:
    """The page, from the first command to the health check."""
    folder = machine.folder / "muniment"
    folder.mkdir()
    copy(DEPLOY / "compose.yaml", folder)
    make_certificate(folder, "ca", "-addext", "basicConstraints=critical,CA:TRUE")
    make_certificate(
        folder, "server", "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=DNS:localhost,DNS:server"
    )
    ports = {name: str(free_port()) for name in ("PORT", "HTTP_PORT", "CONSOLE_PORT")}
    machine = replace(machine, environment={**machine.environment, **ports})
    output = machine.shell(block("start"), folder)
    made = Deployment(machine, folder, f"localhost:{ports['PORT']}", re.findall(r"mun_h_\S+", output)[-1])
    wait_until(lambda: made.answers("readiness"), machine.logs("muniment_server_1"), 120)
    made.shell(block("check"))
    yield made
    made.shell("podman-compose down")


def test_what_was_stored_is_there_after_an_upgrade(deployment):
    with deployment.connect() as host:
        host.create_agent("ada")
        with host.open_session("ada", muniment.Classification.INTERNAL) as session:
            session.save_memory("plan", "ship on Friday")
    state = deployment.shell("podman exec muniment_server_1 ls /var/lib/muniment/state")

    deployment.shell(block("upgrade"))
    wait_until(lambda: deployment.answers("readiness"), deployment.host.logs("muniment_server_1"), 120)

    with deployment.connect() as host, host.open_session("ada", muniment.Classification.INTERNAL) as session:
        assert session.get_memory("plan").content == "ship on Friday"
    assert deployment.shell("podman exec muniment_server_1 ls /var/lib/muniment/state") == state != ""


@pytest.mark.parametrize("service", ["server", "http", "postgres", "prometheus"])
def test_a_container_has_no_rights(deployment, service):
    container = f"muniment_{service}_1"
    status = deployment.shell(f"podman exec {container} cat /proc/1/status")
    rights = dict(re.findall(r"^(Uid|CapEff|CapBnd|NoNewPrivs|Seccomp):\s+(\w+)", status, re.MULTILINE))
    written = deployment.host.attempt("podman", "exec", "--user=0", container, "touch", "/usr/bin/new")

    assert int(rights.pop("Uid")) in {65531, 65532, 65533}
    assert rights == {"CapEff": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}
    assert "Read-only file system" in written.stderr


def test_the_server_cannot_read_what_is_the_operator_s(deployment):
    seen = deployment.shell("podman exec muniment_server_1 ls /etc/muniment")

    assert set(seen.split()) == {"server.pem", "server.key", "ca.pem", "metrics-token"}


@pytest.mark.parametrize("service", ["server", "http", "postgres", "prometheus"])
def test_the_health_check_of_the_image_passes(deployment, service):
    deployment.shell(f"podman healthcheck run muniment_{service}_1")


def test_the_gateway_answers_by_https(deployment):
    trusted = ssl.create_default_context(cafile=deployment.folder / "ca.pem")
    url = f"https://localhost:{deployment.host.environment['HTTP_PORT']}/muniment.v1.AgentService/ListAgents"
    headers = {"authorization": f"Bearer {deployment.key}", "content-type": "application/json"}

    with urlopen(Request(url, b"{}", headers), timeout=60, context=trusted) as answer:
        assert answer.status == 200


def test_the_console_answers_by_https_to_its_password(deployment):
    copy(DEPLOY / "compose.console.yaml", deployment.folder)
    (deployment.folder / "host-key").write_text(deployment.key)
    deployment.shell(block("console"))
    password = (deployment.folder / "secrets" / "console" / "password").read_text().strip()
    trusted = ssl.create_default_context(cafile=deployment.folder / "ca.pem")
    url = f"https://localhost:{deployment.host.environment['CONSOLE_PORT']}/"

    def look(given: str) -> str:
        headers = {"authorization": f"Basic {b64encode(f'auditor:{given}'.encode()).decode()}"}
        try:
            with urlopen(Request(url, headers=headers), timeout=60, context=trusted) as answer:
                return str(answer.read().decode())
        except OSError as error:
            return str(error)

    wait_until(lambda: "Agents" in look(password), deployment.host.logs("muniment_console_1"), 120)
    assert "401" in look("guessed")


def test_prometheus_reads_the_metrics_of_the_server(deployment):
    wait_until(lambda: "=> 1 @" in deployment.shell(block("metrics")), "no metrics", 90)


def test_the_doctor_sees_that_damaged_pages_are_noticed(deployment):
    found = deployment.shell("podman-compose run -T --rm --no-deps operator doctor")

    assert "has read no damaged page" in found


def test_prometheus_accepts_its_configuration_and_the_alert_rules(deployment):
    deployment.shell("podman exec muniment_prometheus_1 promtool check config /etc/prometheus/muniment.yml")


def test_without_a_database_the_server_is_alive_and_not_ready(deployment):
    deployment.shell("podman stop --time 20 muniment_postgres_1")
    try:
        wait_until(lambda: not deployment.answers("readiness"), "ready without a database", 60)
        assert deployment.answers("liveness")
    finally:
        deployment.shell("podman start muniment_postgres_1")
    wait_until(lambda: deployment.answers("readiness"), "not ready with a database", 60)


def test_a_reload_changes_no_process(deployment):
    before = deployment.shell("podman top muniment_server_1 hpid args")

    deployment.shell(block("reload"))
    deployment.host.wait_for("muniment_server_1", "reloaded")

    assert "Traceback" not in deployment.host.logs("muniment_server_1")
    assert _workers(before) == _workers(deployment.shell("podman top muniment_server_1 hpid args"))
    assert deployment.answers("readiness")


def _workers(processes: str) -> set[str]:
    return set(re.findall(r"^(\d+) .*runtime\.worker", processes, re.MULTILINE))
