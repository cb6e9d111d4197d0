"""Validates objects of kinds that other products define, and Kubernetes does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import jsonschema

DEFINITIONS: Final = Path(__file__).resolve().parents[1] / "data" / "prometheus-operator"


def custom_kinds() -> set[str]:
    """The kinds whose definition is at hand."""
    return {each["spec"]["names"]["kind"] for each in _definitions()}


def validate_custom(item: dict[str, Any]) -> None:
    """Strict, as ``kubectl apply --validate=strict``: an unknown field is a mistake too.

    Raises:
        jsonschema.ValidationError: The object is none that the definition permits.
        LookupError: There is no definition of its kind and version.
    """
    for definition in _definitions():
        spec = definition["spec"]
        for version in spec["versions"]:
            name = f"{spec['group']}/{version['name']}"
            if (name, spec["names"]["kind"]) == (item["apiVersion"], item["kind"]):
                schema = _closed(version["schema"]["openAPIV3Schema"])
                jsonschema.Draft7Validator(schema).validate(item)
                return
    raise LookupError(f"no definition of {item['apiVersion']} {item['kind']}")


def _definitions() -> list[dict[str, Any]]:
    return [json.loads(each.read_text("utf-8")) for each in sorted(DEFINITIONS.glob("*.json"))]


def _closed(schema: Any) -> Any:
    """The schema with unknown fields forbidden wherever it names some; Kubernetes drops those."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string") is True:
        closed["type"] = ["integer", "string"]
    return closed
