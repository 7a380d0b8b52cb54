"""The images as they are built, before anything is started from them."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.deploy
LIST_PYTHON = (
    "from importlib.metadata import distributions; print(*(d.name.lower().replace('_', '-') for d in distributions()))"
)


@pytest.mark.parametrize("image", ["muniment", "muniment-postgres", "muniment-prometheus"])
def test_the_list_of_contents_has_every_package_in_the_image(machine, build, image):
    components = json.loads((build / f"{image}.cdx.json").read_text())["components"]
    listed = {(component["purl"].split("/")[0], component["name"]) for component in components}
    debian = machine.run("podman", "run", "--rm", "--entrypoint=dpkg-query", image, "-Wf", "${Package}\n").split()
    python = (
        machine.run("podman", "run", "--rm", "--entrypoint=python3", image, "-c", LIST_PYTHON).split()
        if image == "muniment"
        else []
    )

    assert "libc6" in debian
    assert image != "muniment" or "muniment-server" in python
    assert listed == {("pkg:deb", name) for name in debian} | {("pkg:pypi", name) for name in python}


@pytest.mark.parametrize("image", ["muniment", "muniment-postgres", "muniment-prometheus"])
def test_no_program_in_an_image_changes_the_user(machine, image):
    search = ["find", "/", "-xdev", "-type", "f", "-perm", "/6000"]

    assert machine.run("podman", "run", "--rm", "--user=0", f"--entrypoint={search[0]}", image, *search[1:]) == ""
