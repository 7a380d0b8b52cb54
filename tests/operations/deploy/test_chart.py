"""The chart, linted and rendered by Helm, checked by Kubernetes' schemas and for what it must not allow.

No cluster is at hand, so nothing of it is installed here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from jsonschema import Draft7Validator  # type: ignore[import-untyped]

from muniment_server.postgres import roles
from tests.operations.deploy.containers import DEPLOY
from tests.operations.deploy.kubernetes import NEWEST, OLDEST, Schemas, pods
from tests.operations.tools.programs import HELM, run_tool
from tests.operations.tools.wheels import read_wheel
from tests.support.each import for_each
from tests.support.options import COMMANDS

CHART = DEPLOY / "chart"
DIGEST = "sha256:" + "0" * 64
Values = Mapping[str, Any]
Manifests = list[dict[str, Any]]

LEAST: Values = {
    "image": {"repository": "registry.example/muniment"},
    "database": {"secret": "db"},
    "migration": {"secret": "db-admin"},
    "server": {"tlsSecret": "tls"},
}
WITH_HTTP: Values = {"http": {"enabled": True, "tlsSecret": "http-tls"}}
WITH_CONSOLE: Values = {
    "console": {"enabled": True, "tlsSecret": "console-tls", "secret": "auditor", "hosts": ["console.example"]}
}
COMBINATIONS: Mapping[str, Values] = {
    "least": {},
    "private registry": {
        "image": {"repository": "registry.internal.example:5000/memory/muniment", "digest": DIGEST},
        "imagePullSecrets": ["pull", "123"],
    },
    "tag": {"image": {"tag": "0.2.0-rc.1", "pullPolicy": "Always"}},
    "http": {**WITH_HTTP, "networkPolicy": {"httpClients": [{"namespace": "ingress"}]}},
    "http for pages": {"http": {**WITH_HTTP["http"], "replicas": 1, "origins": ["https://app.example"]}},
    "console": {**WITH_CONSOLE, "networkPolicy": {"consoleClients": [{"namespace": "sign-in"}]}},
    "console and http": {**WITH_CONSOLE, **WITH_HTTP},
    "one server, no migration": {"migration": {"enabled": False, "secret": ""}, "server": {"replicas": 1}},
    "metrics": {
        "server": {
            "metricsSecret": "metrics",
            "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        },
        "networkPolicy": {"prometheus": [{"namespace": "monitoring", "podLabels": {"app": "prometheus"}}]},
    },
    "certificates of callers, identities": {
        "server": {"clientCaSecret": "callers", "jwksSecret": "issuers", "options": {"identities": True}},
        "networkPolicy": {"clients": [{"namespace": "agents"}, {"namespace": "jobs", "podLabels": {"app": "import"}}]},
    },
    "models and traces": {
        "server": {
            "modelKeysSecret": "models",
            "options": {
                "embedder": "https://models.example/v1",
                "embedder-model": "large",
                "embedder-key-file": "/etc/muniment/keys/embedder",
                "embedder-ceiling": "internal",
                "max-in-flight": 2000000,
                "drain-seconds": 60,
                "traces": True,
                "access-log": False,
            },
            "env": {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector.example:4317", "PGSSLMODE": "verify-full"},
        },
        "networkPolicy": {"egress": [{"ports": [{"port": 443}]}], "database": {"peers": [{"podSelector": {}}]}},
    },
    "everything about pods": {
        **WITH_HTTP,
        "server": {"state": {"storageClass": "fast", "size": "1Gi"}, "metricsSecret": "metrics"},
        "pods": {
            "serviceAccountName": "memory",
            "priorityClassName": "high",
            "annotations": {"sidecar.example/inject": "false"},
            "labels": {"team": "memory"},
            "nodeSelector": {"kubernetes.io/arch": "arm64"},
            "tolerations": [{"key": "memory", "operator": "Exists"}],
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "topology.kubernetes.io/zone"}]
                }
            },
        },
    },
    "no policies": {**WITH_HTTP, "networkPolicy": {"enabled": False}},
}


def merged(base: Values, over: Values) -> dict[str, Any]:
    """*base* with *over* in its place, down to the values."""
    both = {**base, **over}
    return {
        key: merged(base[key], value) if key in base and isinstance(value, Mapping) else value
        for key, value in both.items()
    }


def helm(folder: Path, command: str, values: Values) -> tuple[int, str, str]:
    """What Helm says of the chart with *values*."""
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    name = [] if command == "lint" else ["memory"]
    done = run_tool(HELM, command, *name, str(CHART), "--values", str(file), "--namespace", "agents-memory")
    return done.returncode, done.stdout, done.stderr


def render(folder: Path, values: Values) -> Manifests:
    """The objects that the chart makes."""
    code, output, error = helm(folder, "template", merged(LEAST, values))
    assert code == 0, error
    return [manifest for manifest in yaml.safe_load_all(output) if manifest]


def refused(folder: Path, values: Values) -> str:
    """Why Helm refuses *values*."""
    code, output, error = helm(folder, "template", merged(LEAST, values))
    assert code != 0, output
    return error


@pytest.fixture(scope="module")
def schemas(request: pytest.FixtureRequest) -> list[Schemas]:
    wheel = read_wheel(request.config.cache.mkdir("wheels"), "kubernetes_validate")
    return [Schemas(wheel, version) for version in (OLDEST, NEWEST)]


@pytest.mark.proof
@pytest.mark.parametrize("name", COMBINATIONS)
def test_what_the_chart_makes_is_what_kubernetes_knows(tmp_path, schemas, name):
    values = COMBINATIONS[name]
    code, output, _ = helm(tmp_path, "lint", merged(LEAST, values))
    assert code == 0, output
    manifests = render(tmp_path, values)

    assert {"StatefulSet", "Service", "PodDisruptionBudget"} <= {each["kind"] for each in manifests}
    for each in manifests:
        assert each["kind"] in _OF_OTHERS or [problem for of in schemas for problem in of.problems(each)] == []
        for pod in pods(each):
            _check_pod(each, pod)
    _check_selectors(manifests)
    _check_callers(manifests)


_OF_OTHERS = {"ServiceMonitor"}
"""The kinds that are no part of Kubernetes."""


def _check_pod(manifest: Mapping[str, Any], pod: Mapping[str, Any]) -> None:
    """The rules of Kubernetes' profile `restricted`, and that whatever is mounted is there."""
    spec = pod["spec"]
    security = spec["securityContext"]
    claims = [claim["metadata"]["name"] for claim in manifest["spec"].get("volumeClaimTemplates", ())]
    volumes = {volume["name"] for volume in spec["volumes"]} | set(claims)
    containers = [*spec.get("initContainers", ()), *spec["containers"]]

    assert security["runAsNonRoot"] is True
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert not any("hostPath" in volume for volume in spec["volumes"])
    assert {mount["name"] for container in containers for mount in container["volumeMounts"]} == volumes
    for container in containers:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}
        }  # fmt: skip
        assert "memory" in container["resources"]["limits"]
        assert not [word for word in container.get("args", ()) if word.startswith(("--dev", "--data-dir"))]


def _check_selectors(manifests: Manifests) -> None:
    """Services, budgets and policies select pods that the chart makes."""
    labels = [pod["metadata"]["labels"].items() for each in manifests for pod in pods(each)]
    for each in manifests:
        spec = each["spec"]
        constraints = [
            of["labelSelector"] for pod in pods(each) for of in pod["spec"].get("topologySpreadConstraints", ())
        ]
        assert all(of["matchLabels"] == spec["selector"]["matchLabels"] for of in constraints)
        selector = spec.get("podSelector") or spec.get("selector")
        if selector is not None:
            wanted = selector.get("matchLabels", selector).items()
            assert any(wanted <= of_pod for of_pod in labels), each["metadata"]["name"]


def _check_callers(manifests: Manifests) -> None:
    """A policy lets in only pods of this release and of namespaces that are named."""
    for each in manifests:
        for rule in each["spec"].get("ingress", ()) if each["kind"] == "NetworkPolicy" else ():
            assert rule["ports"]
            assert rule["from"]
            for peer in rule["from"]:
                selectors = [selector["matchLabels"] for selector in peer.values()]
                assert all(selectors)
                assert "kubernetes.io/metadata.name" in selectors[0] or "app.kubernetes.io/instance" in selectors[0]


@pytest.mark.proof
@for_each("name", ["resources", "replicas", "serviceName"])
def test_a_field_that_kubernetes_does_not_know_or_that_is_of_another_type_is_found(tmp_path, schemas, name):
    (server,) = (each for each in render(tmp_path, {}) if each["kind"] == "StatefulSet")
    spoiled = {**server, "spec": {**server["spec"], name: ["of another type"]}}
    misspelled = {**server, "spec": {**server["spec"], f"{name}s": 1}}

    for of in schemas:
        assert of.problems(server) == []
        assert of.problems(spoiled) != []
        assert of.problems(misspelled) != []


@pytest.mark.proof
def test_no_pod_reaches_the_server_before_one_is_named(tmp_path):
    policies = {
        each["metadata"]["name"]: each["spec"] for each in render(tmp_path, {}) if each["kind"] == "NetworkPolicy"
    }

    assert set(policies) == {"memory", "memory-migration", "memory-operator"}
    assert all("Ingress" in spec["policyTypes"] and "ingress" not in spec for spec in policies.values())


@pytest.mark.proof
def test_the_server_has_no_secret_of_the_administrator_and_the_gateway_no_key_of_the_server(tmp_path):
    manifests = render(tmp_path, {**WITH_HTTP, "server": {"metricsSecret": "metrics"}})
    texts = {each["kind"]: json.dumps(each) for each in manifests if list(pods(each))}
    assert {"Job", "CronJob", "StatefulSet", "Deployment"} == set(texts)
    (gateway,) = (each for each in manifests if each["kind"] == "Deployment")
    mounted = {volume["name"]: volume.get("secret") for volume in gateway["spec"]["template"]["spec"]["volumes"]}

    assert "db-admin" in texts["Job"]
    assert "db-admin" not in texts["StatefulSet"] + texts["Deployment"]
    assert '"metrics"' not in texts["Job"] + texts["CronJob"] + texts["Deployment"]
    assert '"db"' not in texts["Deployment"]
    assert mounted["ca"] == {"secretName": "tls", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    assert mounted["tls"] == {"secretName": "http-tls"}


@pytest.mark.proof
def test_the_console_has_its_key_by_name_and_none_of_the_server_and_only_the_proxy_reaches_it(tmp_path):
    manifests = render(tmp_path, COMBINATIONS["console"])
    (pod,) = (each["spec"]["template"]["spec"] for each in manifests if each["kind"] == "Deployment")
    (container,) = pod["containers"]
    policies = {each["metadata"]["name"]: each["spec"] for each in manifests if each["kind"] == "NetworkPolicy"}
    (caller,) = policies["memory-console"]["ingress"]
    (of_server,) = policies["memory"]["ingress"]

    assert {"name": "MUNIMENT_HOST_KEY", "valueFrom": {"secretKeyRef": {"name": "auditor", "key": "host-key"}}} in (
        container["env"]
    )
    assert not {'"db"', '"db-admin"', '"tls.key"'} & {*re.findall(r'"[^"]*"', json.dumps(pod))}
    assert {"--host=console.example", "--password-file=/var/lib/muniment/passwords/password"} <= {*container["args"]}
    assert caller["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "sign-in"}}}]
    assert [each["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for each in of_server["from"]] == [
        "console"
    ]
    assert not any("console" in json.dumps(each) for each in render(tmp_path, {}))


@pytest.mark.proof
def test_the_image_is_named_by_its_digest_or_its_tag(tmp_path):
    def images(**image: str) -> set[str]:
        found = re.findall(r'"image": "([^"]+)"', json.dumps(render(tmp_path, {"image": image, **WITH_HTTP})))
        assert len(found) == 7
        return set(found)

    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    assert images(repository="memory/muniment") == {f"memory/muniment:{version}"}
    assert images(repository="memory/muniment", tag="1.2", digest=DIGEST) == {f"memory/muniment@{DIGEST}"}


@pytest.mark.proof
def test_options_become_arguments(tmp_path):
    manifests = render(tmp_path, COMBINATIONS["models and traces"])
    (server,) = (each["spec"]["template"]["spec"] for each in manifests if each["kind"] == "StatefulSet")
    arguments = server["containers"][0]["args"]

    assert {"--max-in-flight=2000000", "--embedder-ceiling=internal", "--traces", "--workers=2"} <= set(arguments)
    assert "--access-log" not in arguments
    assert server["terminationGracePeriodSeconds"] == 75


@pytest.mark.proof
def test_the_pod_of_operators_is_that_of_the_migration_and_never_runs_by_itself(tmp_path):
    manifests = render(tmp_path, {})
    (operator,) = (each["spec"] for each in manifests if each["kind"] == "CronJob")
    (migration,) = (each["spec"] for each in manifests if each["kind"] == "Job")
    specs = [each["template"]["spec"] for each in (operator["jobTemplate"]["spec"], migration)]
    runs = [(of["containers"][0].pop("name"), *(of["containers"][0].pop(key, None) for key in ("command", "args")))
            for of in specs]  # fmt: skip

    assert operator["suspend"] is True
    assert operator["jobTemplate"]["spec"]["activeDeadlineSeconds"] == 3600
    assert specs[0] == specs[1]
    assert runs == [("operator", ["sleep", "3600"], None), ("migration", None, ["migrate"])]
    assert not any(
        "operator" in each["metadata"]["name"] for each in render(tmp_path, {"migration": {"enabled": False}})
    )


@pytest.mark.proof
def test_what_only_a_migration_needs_goes_with_it(tmp_path):
    """Helm does not remove hooks when a release is uninstalled."""
    hooks = {
        (each["kind"], each["metadata"]["name"]): each["metadata"]["annotations"]
        for each in render(tmp_path, {})
        if "helm.sh/hook" in each["metadata"].get("annotations", {})
    }

    assert set(hooks) == {("Job", "memory-migration"), ("NetworkPolicy", "memory-migration")}
    assert {of["helm.sh/hook-delete-policy"] for of in hooks.values()} == {"before-hook-creation,hook-succeeded"}
    job, policy = (int(hooks[kind, "memory-migration"]["helm.sh/hook-weight"]) for kind in ("Job", "NetworkPolicy"))
    assert policy < job


@pytest.mark.proof
def test_a_migration_that_outlasts_helm_keeps_a_policy(tmp_path):
    """Helm removes the hook's policy once it waits no longer for the Job."""
    (policy,) = (
        each["spec"]["podSelector"]
        for each in render(tmp_path, {})
        if each["kind"] == "NetworkPolicy" and each["metadata"]["name"] == "memory-operator"
    )

    assert policy == {
        "matchLabels": {"app.kubernetes.io/name": "muniment", "app.kubernetes.io/instance": "memory"},
        "matchExpressions": [
            {"key": "app.kubernetes.io/component", "operator": "In", "values": ["migration", "operator"]}
        ],
    }


@pytest.mark.proof
def test_a_quota_can_be_met_by_every_container(tmp_path):
    """Those that begin a pod, too: an init container needs no more than the one that follows."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    values = {name: {"resources": resources} for name in ("migration", "server", "http", "console")}
    manifests = render(tmp_path, merged(values, {**WITH_HTTP, **WITH_CONSOLE}))
    containers = [
        container
        for each in manifests
        for pod in pods(each)
        for container in [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    ]

    assert len(containers) == 9
    assert all(container["resources"] == resources for container in containers)


@pytest.mark.proof
def test_services_say_that_they_speak_tls(tmp_path):
    """A service mesh would read the frames of a port that says `grpc`, and fail at the handshake."""
    manifests = render(tmp_path, {**WITH_HTTP, **WITH_CONSOLE})
    services = [each["spec"]["ports"] for each in manifests if each["kind"] == "Service" and "-pods" not in str(each)]

    assert {port["appProtocol"] for ports in services for port in ports} == {"https"}


@pytest.mark.proof
def test_pods_are_spread_and_end_after_their_connections_and_do_not_hold_up_a_node(tmp_path):
    manifests = render(tmp_path, WITH_HTTP)
    specs = [pod["spec"] for each in manifests if each["kind"] in {"StatefulSet", "Deployment"} for pod in pods(each)]
    budgets = [each["spec"] for each in manifests if each["kind"] == "PodDisruptionBudget"]

    assert len(specs) == len(budgets) == 2
    for spec in specs:
        keys = [each["topologyKey"] for each in spec["topologySpreadConstraints"]]
        assert keys == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
        assert spec["containers"][0]["lifecycle"] == {"preStop": {"exec": {"command": ["sleep", "5"]}}}
    assert {(each["maxUnavailable"], each["unhealthyPodEvictionPolicy"]) for each in budgets} == {(1, "AlwaysAllow")}


@pytest.mark.proof
def test_an_autoscaler_may_own_the_number_of_replicas(tmp_path):
    """An upgrade with a number of its own would conflict with what the autoscaler set."""

    def replicas(values: Values) -> list[int | None]:
        manifests = render(tmp_path, merged({**WITH_HTTP}, values))
        return [each["spec"].get("replicas") for each in manifests if each["kind"] in {"StatefulSet", "Deployment"}]

    assert replicas({}) == [2, 2]
    assert replicas({"server": {"replicas": None}, "http": {"replicas": None}}) == [None, None]


@pytest.mark.proof
def test_prometheus_checks_the_server_and_names_it_as_the_alerts_do(tmp_path):
    (monitor,) = (each for each in render(tmp_path, COMBINATIONS["metrics"]) if each["kind"] == "ServiceMonitor")
    (endpoint,) = monitor["spec"]["endpoints"]

    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["jobLabel"] == "app.kubernetes.io/name"
    assert endpoint["tlsConfig"] == {
        "serverName": "memory.agents-memory.svc", "ca": {"secret": {"name": "tls", "key": "ca.crt"}}
    }  # fmt: skip
    assert endpoint["authorization"] == {"credentials": {"name": "metrics", "key": "metrics-token"}}


REFUSED: Mapping[str, tuple[Values, str]] = {
    "an unknown value": ({"sever": {}}, "'sever' not allowed"),
    "an unknown value below another": ({"server": {"replica": 2}}, "'replica' not allowed"),
    "development": ({"server": {"options": {"dev": True}}}, "'dev' not allowed"),
    "an option that would move the listener": (
        {"server": {"options": {"listen": "0.0.0.0:1"}}},
        "'listen' not allowed",
    ),
    "a password in the environment": ({"server": {"env": {"PGPASSWORD": "x"}}}, "PGPASSWORD"),
    "a variable of our own": ({"server": {"env": {"MUNIMENT_DATA_DIR": "/tmp"}}}, "MUNIMENT_DATA_DIR"),
    "no secret of the database": ({"database": {"secret": ""}}, "/database/secret"),
    "no secret of the administrator": ({"migration": {"secret": ""}}, "/migration/secret"),
    "no certificate": ({"server": {"tlsSecret": ""}}, "/server/tlsSecret"),
    "no certificate of the gateway": ({"http": {"enabled": True}}, "/http/tlsSecret"),
    "no certificate of the console": (
        {"console": {**WITH_CONSOLE["console"], "tlsSecret": ""}},
        "/console/tlsSecret",
    ),
    "no key of the console": ({"console": {**WITH_CONSOLE["console"], "secret": ""}}, "/console/secret"),
    "no name of the console": ({"console": {**WITH_CONSOLE["console"], "hosts": []}}, "/console/hosts"),
    "a template in a name of the console": ({"console": {**WITH_CONSOLE["console"], "hosts": ["*"]}}, "/console/hosts"),
    "a console without a certificate for the server": ({**WITH_CONSOLE, "server": {"clientCaSecret": "a"}}, "excludes"),
    "callers of all namespaces": ({"networkPolicy": {"clients": [{}]}}, "namespace"),
    "callers of a pattern of namespaces": ({"networkPolicy": {"clients": [{"namespace": "*"}]}}, "/namespace"),
    "callers without labels": ({"networkPolicy": {"clients": [{"namespace": "a", "podLabels": {}}]}}, "/podLabels"),
    "no image": ({"image": {"repository": ""}}, "/image/repository"),
    "a monitor without metrics": ({"server": {"serviceMonitor": {"enabled": True}}}, "/server/metricsSecret"),
    "half a digest": ({"image": {"digest": "sha256:12"}}, "/image/digest"),
    "a template in a name": ({"database": {"secret": "a, key: b}\n"}}, "/database/secret"),
    "a page of every origin": ({"http": {"origins": ["*"]}}, "/http/origins"),
    "no replica": ({"server": {"replicas": 0}}, "/server/replicas"),
    "a gateway without a certificate for the server": ({**WITH_HTTP, "server": {"clientCaSecret": "a"}}, "excludes"),
}


@pytest.mark.proof
@for_each("name", REFUSED)
def test_the_chart_refuses(tmp_path, name):
    values, reason = REFUSED[name]

    assert reason in refused(tmp_path, values)


_OF_THE_CHART = {
    "--data-dir", "--database-url", "--dev", "--help", "--http", "--listen", "--metrics", "--metrics-token-file",
    "--passfile", "--servers", "--state-dir", "--tls-cert", "--tls-client-ca", "--tls-key", "-h",
}  # fmt: skip
"""The options of `muniment serve` that the chart sets itself, or never."""


def test_the_chart_takes_the_other_options_of_the_server():
    schema = json.loads((CHART / "values.schema.json").read_text())
    serve = COMMANDS["muniment serve"]
    known = {name for option in serve.params if isinstance(option, click.Option) for name in option.opts}

    options = schema["properties"]["server"]["properties"]["options"]["properties"]
    assert {f"--{name}" for name in options} == known - _OF_THE_CHART


def test_the_page_makes_a_password_for_each_serving_role():
    (names,) = re.findall(r"^for role in (.*); do$", (CHART / "README.md").read_text(), re.MULTILINE)

    assert {f"muniment_{name}" for name in names.split()} == set(roles.SERVING)


def test_the_values_on_the_page_are_those_of_the_chart(tmp_path):
    (values,) = re.findall(r"^```yaml\n(.*?)^```$", (CHART / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    schema = json.loads((CHART / "values.schema.json").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    given = yaml.safe_load(values.replace("sha256:…", DIGEST))

    assert list(Draft7Validator(schema).iter_errors(merged(defaults, given))) == []


def test_the_chart_is_of_this_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = re.search(r'^version = "(.*)"$', (DEPLOY.parents[1] / "pyproject.toml").read_text(), re.MULTILINE)

    assert version is not None
    assert (chart["version"], chart["appVersion"]) == (version[1], version[1])


def test_every_value_that_has_a_default_is_in_the_schema_and_the_other_way_round():
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    free = {"options", "resources", "env", "affinity"}

    def compare(given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
        assert set(given) == set(known["properties"]) - {"global"}
        for key in given.keys() - free:
            if "properties" in known["properties"][key]:
                compare(given[key], known["properties"][key])

    compare(values, schema)
