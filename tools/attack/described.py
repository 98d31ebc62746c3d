"""The operations of the gateway as its OpenAPI document has them, with a request that fits each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator

Document = Mapping[str, Any]
# What fits where the type alone does not say it.
EXAMPLES: Mapping[str, Any] = {
    "job": "pages",
    "args": {"path": "a.pdf"},
    "jobs": [{"job": "pages", "args": {"path": "a.pdf"}}],
    "kind": "slots",
}
WRITES = ("post", "patch", "put", "delete")


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    document: Document
    path: str
    method: str
    told: Mapping[str, Any]

    @property
    def scope(self) -> str | None:
        """What a token must be good for; None is open to all."""
        found: str | None = self.told.get("x-scope")
        return found

    @property
    def writes(self) -> bool:
        """Whether it may change something; `validate` only looks."""
        return self.method in WRITES and not self.path.endswith(":validate")

    @property
    def body(self) -> Mapping[str, Any] | None:
        """The schema of its body, if it takes one."""
        if "requestBody" not in self.told:
            return None
        schema: Mapping[str, Any] = self.told["requestBody"]["content"]["application/json"]["schema"]
        return schema

    @property
    def query(self) -> Sequence[str]:
        """The names of its query's parameters."""
        return [each["name"] for each in self.told["parameters"] if each["in"] == "query"]

    def target(self, job_id: str) -> str:
        """Its path, of this job."""
        return self.path.replace("{id}", job_id)

    def validator(self, schema: Mapping[str, Any]) -> Draft202012Validator:
        """What says whether a value is taken, by the document."""
        return Draft202012Validator({**schema, "components": self.document["components"]})

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema itself, where this one only names it."""
        if "$ref" not in schema:
            return schema
        found: Mapping[str, Any] = self.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return found

    def example(self) -> Any:
        """A body that fits."""
        return _example(self, self.body or {}, "")


def operations(document: Document) -> Iterator[Operation]:
    """All of them."""
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            yield Operation(document, path, method, told)


def _example(operation: Operation, schema: Mapping[str, Any], name: str) -> Any:
    if name in EXAMPLES:
        return EXAMPLES[name]
    whole = operation.resolved(schema)
    whole = next((each for each in whole.get("anyOf", ()) if each.get("type") != "null"), whole)
    whole = operation.resolved(whole)
    if "enum" in whole:
        return whole["enum"][0]
    kind = whole.get("type")
    if kind == "object":
        needed = whole.get("required", ())
        return {each: _example(operation, whole["properties"][each], each) for each in needed}
    if kind == "array":
        return [_example(operation, whole.get("items", {}), "")] * whole.get("minItems", 0)
    found: Mapping[str, Any] = {"integer": whole.get("minimum", 1), "number": 1.0, "boolean": True}
    return found.get(kind or "", "no-such-thing")
