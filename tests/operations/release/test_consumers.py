"""The first example of each client's README, in a project that has the client from `dist` alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from hashlib import sha256
from pathlib import Path
from textwrap import indent

import pytest

from tests.operations.release import packages
from tests.operations.release.conftest import host_of
from tests.operations.release.elsewhere import KINDS, Elsewhere
from tests.operations.release.interpreters import interpreters
from tests.operations.release.packages import blocks, from_dist, readme
from tests.schema.contract.test_versions import VERSION
from tests.tools.tour.readme import ROOT

pytestmark = pytest.mark.dist

INTERPRETERS = interpreters()
DEFAULT = "{}.{}".format(*sys.version_info)
_TSCONFIG = {
    "compilerOptions": {
        "strict": True,
        "target": "es2022",
        "lib": ["es2022", "esnext.disposable", "dom"],
        "module": "nodenext",
        "types": ["node"],
    }
}
_CLASSPATH = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"


def shown(text: str) -> str:
    """What a README says that its first example prints."""
    return blocks(text, "text")[0]


def test_the_repository_is_not_there(elsewhere: Elsewhere):
    assert elsewhere.run("find", ROOT, cwd=elsewhere.folder) == f"{ROOT}\n"


def test_python_from_source_distributions(elsewhere: Elsewhere):
    the_example_of_python(elsewhere, kind="sdist")


@pytest.mark.parametrize("version", INTERPRETERS)
def test_python(elsewhere: Elsewhere, version: str):
    the_example_of_python(elsewhere, kind="wheel", version=version)


def the_example_of_python(elsewhere: Elsewhere, *, kind: str, version: str = DEFAULT) -> None:
    """Client and server are installed into one environment; the example calls that server."""
    text = readme(KINDS[kind][0], elsewhere.dist)
    project = elsewhere.project(f"python-{kind}-{version}", {"main.py": blocks(text, "python")[0]})
    programs = elsewhere.install(f"{project.name}/environment", python=INTERPRETERS[version], kind=kind)

    assert elsewhere.run(programs / "muniment", "--version", cwd=project) == f"muniment, version {VERSION}\n"
    with elsewhere.serving(programs, "--dev", "--data-dir", "data") as server:
        server.read_to_the_last_line()
        output = elsewhere.run(programs / "python", "-W", "error", "main.py", cwd=project, given=host_of(server))
        assert output == shown(text)


@pytest.mark.parametrize(
    "shown",
    [
        *(
            shown
            for page in ("clients/python/README.md", "tests/clients/langgraph_store_conformance/README.md")
            for shown in re.findall(r"^\$ (pip install .*dist/python/.*)$", (ROOT / page).read_text(), re.MULTILINE)
        ),
        *(f"pip install 'dist/python/{packages.WHEEL.path.name}[{extra}]'" for extra in ("cli", "mcp", "langgraph")),
        *blocks((ROOT / "README.md").read_text(), "sh dist"),
    ],
)
def test_every_extra_of_python_can_be_installed_as_shown(elsewhere: Elsewhere, installed: Path, shown: str):
    path = {"PATH": os.pathsep.join([str(installed), os.environ["PATH"]]), "PIP_DRY_RUN": "1"}

    elsewhere.as_shown(shown, cwd=elsewhere.folder, given=path)


def test_go(elsewhere: Elsewhere, server: dict[str, str]):
    text = readme(packages.GO, elsewhere.dist)
    imports, body = blocks(text, "go")[:2]
    main = f'package main\n\nimport (\n\t"context"\n\t"fmt"\n\t"log"\n\n{indent(imports, chr(9))})\n'
    project = elsewhere.project("go-consumer", {"main.go": f"{main}\nfunc main() {{\n{indent(body, chr(9))}}}\n"})
    go = go_of(elsewhere, project)

    elsewhere.run("go", "mod", "init", "elsewhere.example/tea", cwd=project, given=go)
    elsewhere.as_shown(from_dist(text), cwd=project, given=go)
    assert elsewhere.run("go", "run", ".", cwd=project, given={**go, **server}) == shown(text)
    assert "replace" not in (project / "go.mod").read_text()


def test_go_for_adk(elsewhere: Elsewhere):
    """It is compiled, and finds its client in `dist` too; the tests of `make test-clients` run it."""
    text = readme(packages.GO_ADK, elsewhere.dist)
    (code,) = blocks(text, "go")
    project = elsewhere.project(
        "go-adk-consumer", {"main.go": f"package main\n\n{code}\nfunc main() {{ _ = butler }}\n"}
    )
    go = go_of(elsewhere, project)

    elsewhere.run("go", "mod", "init", "elsewhere.example/butler", cwd=project, given=go)
    elsewhere.as_shown(from_dist(text), cwd=project, given=go)
    from_dist_alone = {**go, "GOPROXY": f"file://{elsewhere.dist}/go,{go['GOPROXY']}", "GONOSUMDB": "muniment.example"}
    elsewhere.run("go", "mod", "tidy", cwd=project, given=from_dist_alone)
    elsewhere.run("go", "build", "-o", "butler", ".", cwd=project, given=go)
    assert "replace" not in (project / "go.mod").read_text()


def go_of(elsewhere: Elsewhere, project: Path) -> dict[str, str]:
    """A module cache of its own, so that no older module of ours is used. The usual cache provides all others."""
    downloaded, proxies = (elsewhere.run("go", "env", name, cwd=project).strip() for name in ("GOMODCACHE", "GOPROXY"))
    return {
        "GOPROXY": f"file://{downloaded}/cache/download,{proxies}",
        "GOMODCACHE": str(elsewhere.folder / "go-modules"),
        "GOFLAGS": "-modcacherw",
        "GOWORK": "off",
    }


def test_typescript(elsewhere: Elsewhere, server: dict[str, str]):
    text = readme(packages.NPM, elsewhere.dist)
    manifest = {"name": "elsewhere", "private": True, "type": "module"}
    project = elsewhere.project(
        "typescript",
        {
            "package.json": json.dumps(manifest),
            "tsconfig.json": json.dumps(_TSCONFIG),
            "main.mts": blocks(text, "ts")[0],
        },
    )
    npm = {"NPM_CONFIG_PREFER_OFFLINE": "true", "NPM_CONFIG_AUDIT": "false", "NPM_CONFIG_FUND": "false"}

    elsewhere.as_shown(from_dist(text), cwd=project, given=npm)
    elsewhere.run("npm", "install", "--silent", "typescript@7.0.2", "@types/node@20", cwd=project, given=npm)
    elsewhere.run("npx", "--no-install", "tsc", cwd=project)
    assert not (project / "node_modules" / "muniment").is_symlink()
    assert elsewhere.run("node", "main.mjs", cwd=project, given=server) == shown(text)


def test_java(elsewhere: Elsewhere, server: dict[str, str]):
    text = readme(packages.JAR, elsewhere.dist)
    pom, repository = blocks(text, "xml")
    repository = repository.replace("/path/to/muniment", str(elsewhere.folder))
    pom = pom.replace("</project>", f"{repository}</project>")
    project = elsewhere.project("java", {"pom.xml": pom, "src/main/java/Tea.java": blocks(text, "java")[0]})
    # A copy of the machine's local repository, if it has one, without anything of ours.
    local = elsewhere.folder / "m2"
    if (machine := Path.home() / ".m2" / "repository").exists():
        shutil.copytree(machine, local, ignore=shutil.ignore_patterns("muniment"))
    maven = ["mvn", "-B", "-q", f"-Dmaven.repo.local={local}"]

    elsewhere.run(*maven, "compile", _CLASSPATH, "-Dmdep.outputFile=classpath", cwd=project)
    path = os.pathsep.join(["target/classes", (project / "classpath").read_text()])
    assert elsewhere.run("java", "-cp", path, "Tea", cwd=project, given=server) == shown(text)


def test_rust(elsewhere: Elsewhere, server: dict[str, str]):
    """As its README says; and, as from a registry, from a folder in which Cargo finds every crate, ours among them."""
    text = readme(packages.CRATE, elsewhere.dist)
    registry = elsewhere.folder / "crates"
    ours = elsewhere.unpack(packages.CRATE, elsewhere.folder / "unpacked")
    elsewhere.run("cargo", "vendor", "--quiet", "--locked", registry, cwd=ours)
    shutil.copytree(ours, registry / "muniment-client")
    checksum = sha256((elsewhere.dist / packages.CRATE.path).read_bytes()).hexdigest()
    (registry / "muniment-client" / ".cargo-checksum.json").write_text(json.dumps({"files": {}, "package": checksum}))
    instead = f'[source.crates-io]\nreplace-with = "folder"\n[source.folder]\ndirectory = "{registry}"\n'
    project = elsewhere.project("rust", {".cargo/config.toml": instead})

    shown_project = elsewhere.project("rust-as-shown", {".cargo/config.toml": instead})
    elsewhere.run("cargo", "init", "--quiet", "--vcs", "none", "--name", "tea", cwd=shown_project)
    elsewhere.as_shown(from_dist(text), cwd=shown_project)
    assert f"muniment-client v{VERSION} (" in elsewhere.run("cargo", "tree", "--quiet", cwd=shown_project)

    elsewhere.run("cargo", "init", "--quiet", "--vcs", "none", "--name", "tea", cwd=project)
    (project / "src" / "main.rs").write_text(blocks(text, "rust")[0], "utf-8")
    elsewhere.run("cargo", "add", "--quiet", "muniment-client", cwd=project)
    elsewhere.run("cargo", "add", "--quiet", "tokio", "--features", "macros,rt-multi-thread", cwd=project)
    assert f'muniment-client = "{VERSION}"' in (project / "Cargo.toml").read_text().splitlines()
    without_symbols = {**server, "CARGO_PROFILE_DEV_DEBUG": "0"}
    assert elsewhere.run("cargo", "run", "--quiet", cwd=project, given=without_symbols) == shown(text)
