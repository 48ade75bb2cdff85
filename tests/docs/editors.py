"""What an editor does with a schema: YAML as its core schema reads it, and the keywords of JSON schema that ours has.

A keyword that is not known here fails, so that none is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,),
}  # fmt: skip
_WORDS = {"$schema", "title", "description", "definitions"}


class CoreLoader(yaml.SafeLoader):
    """YAML 1.2, as editors read it: `off` and `no` are texts, and so are dates."""


CoreLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
):
    CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))
# A leading zero means nothing there: 08 is eight.
CoreLoader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))


def loaded(text: str) -> Any:
    """Returns a document as an editor reads it."""
    return yaml.load(text, Loader=CoreLoader)


def violations(schema: Mapping[str, Any], value: Any) -> list[str]:
    """Returns what a schema finds wrong with a value, each with its place."""
    return [*_violations(schema, schema, value, "")]


def _violations(whole: Mapping[str, Any], schema: Mapping[str, Any], value: Any, at: str) -> Iterator[str]:
    for keyword, said in schema.items():
        if keyword in _WORDS:
            continue
        if keyword == "$ref":
            yield from _violations(whole, whole["definitions"][said.removeprefix("#/definitions/")], value, at)
        elif keyword == "anyOf":
            if all([*_violations(whole, each, value, at)] for each in said):
                yield f"{at}: {value!r} has none of the forms"
        elif keyword in ("properties", "additionalProperties", "items"):
            yield from _inner(whole, schema, keyword, value, at)
        elif not _holds(keyword, said, value):
            yield f"{at}: {value!r} is against {keyword} {said!r}"


def _inner(whole: Mapping[str, Any], schema: Mapping[str, Any], keyword: str, value: Any, at: str) -> Iterator[str]:
    if keyword == "items":
        for place, each in enumerate(value if isinstance(value, list) else ()):
            yield from _violations(whole, schema["items"], each, f"{at}[{place}]")
        return
    known = schema.get("properties", {})
    for name, each in (value if isinstance(value, dict) else {}).items():
        if keyword == "properties" and name in known:
            yield from _violations(whole, known[name], each, f"{at}.{name}")
        elif keyword == "additionalProperties" and name not in known:
            rest = schema["additionalProperties"]
            yield from (
                [f"{at}: {name!r} is no key"] if rest is False else _violations(whole, rest, each, f"{at}.{name}")
            )


def _holds(keyword: str, said: Any, value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match keyword:
        case "type":
            return any(_is(each, value) for each in ([said] if isinstance(said, str) else said))
        case "enum":
            return value in said
        case "pattern":
            return not isinstance(value, str) or re.search(said, value) is not None
        case "minLength":
            return not isinstance(value, str) or len(value) >= said
        case "minimum":
            return not is_number or value >= said
        case "maximum":
            return not is_number or value <= said
        case "minProperties":
            return not isinstance(value, dict) or len(value) >= said
    raise AssertionError(f"the keyword {keyword} is not known")


def _is(kind: str, value: Any) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
