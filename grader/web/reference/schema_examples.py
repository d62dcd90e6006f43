"""A value that a JSON schema allows: its own example where it has one, otherwise the plainest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEEPEST = 8
_TEXTS = {
    "date-time": "2026-03-31T16:00:00Z",
    "date": "2026-03-31",
    "uri": "https://grader.example.edu",
    "binary": "",
}


def example_of(schema: Mapping[str, Any], named: Mapping[str, Any], depth: int = 0) -> Any:
    """An example; `named`: the document's schemas, by name. What nests deeper than eight levels is None."""
    schema, named = _resolved(schema, named)
    if depth > _DEEPEST:
        return None
    if schema.get("examples"):
        return schema["examples"][0]
    for key in ("const", "default"):
        if schema.get(key) is not None:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    choices = [one for key in ("anyOf", "oneOf", "allOf") for one in schema.get(key, ())]
    if choices:
        known = [one for one in choices if one.get("type") != "null"]
        return example_of(known[0], named, depth) if known else None
    return _plainest(schema, named, depth)


def type_of(schema: Mapping[str, Any], named: Mapping[str, Any]) -> str:
    """The type in a few words, with its bounds: `integer, 1 to 200`, `list of text`, `one of: a, b`."""
    schema, named = _resolved(schema, named)
    choices = [one for key in ("anyOf", "oneOf") for one in schema.get(key, ())]
    if choices:
        return " or ".join(dict.fromkeys(type_of(one, named) for one in choices))
    if schema.get("enum"):
        return "one of: " + ", ".join(str(one) for one in schema["enum"])
    kind = {"string": "text", "null": "nothing"}.get(
        str(schema.get("type", "")), str(schema.get("type", "any"))
    )
    if kind == "array":
        return f"list of {type_of(schema.get('items', {}), named)}"
    if schema.get("format") == "date-time":
        return "time, ISO 8601"
    least, most = schema.get("minimum"), schema.get("maximum")
    if most is not None and most < 1 << 40:
        return f"{kind}, {least if least is not None else ''} to {most}"
    if schema.get("maxLength"):
        return f"{kind}, at most {schema['maxLength']} characters"
    return kind


def _resolved(
    schema: Mapping[str, Any], named: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    named = {**named, **schema.get("$defs", {})}
    while "$ref" in schema:
        schema = named[schema["$ref"].rpartition("/")[2]]
    return schema, named


def _plainest(schema: Mapping[str, Any], named: Mapping[str, Any], depth: int) -> Any:
    kind = schema.get("type")
    if kind == "object":
        fields = schema.get("properties", {})
        return {name: example_of(one, named, depth + 1) for name, one in fields.items()}
    if kind == "array":
        return [example_of(schema.get("items", {}), named, depth + 1)]
    if kind == "string":
        return _TEXTS.get(schema.get("format", ""), "text")
    numbers = {"integer": 1, "number": 1.0, "boolean": False}
    return schema.get("minimum", numbers.get(str(kind))) if kind in numbers else None
