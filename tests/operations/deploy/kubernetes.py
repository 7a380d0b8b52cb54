"""Kubernetes' own schemas, as kubernetes-validate has them in its wheel."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from zipfile import ZipFile

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from referencing import Registry
from referencing.jsonschema import DRAFT202012

OLDEST, NEWEST = "1.27", "1.37"


class Schemas:
    """The strict schemas of a version: what they do not know, they refuse."""

    def __init__(self, wheel: ZipFile, version: str) -> None:
        self._wheel, self._folder = wheel, f"kubernetes_validate/kubernetes-json-schema/v{version}.0-local-strict"
        definitions = DRAFT202012.create_resource(self._read("_definitions.json"))
        self._registry: Registry[Any] = Registry().with_resource("/api/_definitions.json", definitions)

    def problems(self, manifest: Mapping[str, Any]) -> list[str]:
        """What is wrong with an object of Kubernetes."""
        group, _, version = manifest["apiVersion"].rpartition("/")
        names = (manifest["kind"].lower(), group.partition(".")[0], version)
        schema = self._read("-".join(filter(None, names)) + ".json")
        found = Draft202012Validator(schema, registry=self._registry).iter_errors(manifest)
        return [f"{error.json_path}: {error.message}" for error in found]

    def _read(self, name: str) -> Any:
        return json.loads(self._wheel.read(f"{self._folder}/{name}"))


def pods(manifest: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The specification of the pods that an object makes, if it makes some."""
    spec = manifest["spec"]
    template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
    if template is not None:
        yield template
