"""The JSON schema of firnline.yaml, for editors: made from the very tables by which the file is read.

A key that the reader knows and that has no shape here is an error when the schema is made, so none can be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from firnline.policy.limits import LARGEST_BATCH, LIMITS, MOST_AT_ONCE
from firnline.policy.parse import INSIDE, ON_TOP
from firnline.policy.periods import Period
from firnline.policy.policy import Level
from firnline.policy.prices import PRICE_KEYS
from firnline.policy.rules import RULE_NAMES
from firnline.policy.tiers import TIER_KEYS
from firnline.policy.values import ALL, ALLOWED, LAKE, NONE, OFF, SETTINGS, TOP_ONLY
from firnline.policy.worker.keys import MEASURED, USUAL, WORKER_KEYS
from firnline.policy.worker.windows import ALWAYS

Schema = dict[str, Any]
DRAFT = "http://json-schema.org/draft-07/schema#"
"""What the servers of editors read."""

_DURATION: Schema = {"type": "string", "pattern": r"^\s*([0-9]{1,12}[smhdwySMHDWY])+\s*$"}
_TEXT: Schema = {"type": ["string", "number", "boolean"], "minLength": 1}
"""Any plain value: to a name such as 2026 or true the reader is as open as to any other."""
_SHARE: Schema = {"type": "string", "pattern": r"^[0-9]{1,3}(\.[0-9]{1,6})?\s*%$"}
_SIZE: Schema = {"type": "string", "pattern": r"^[1-9][0-9]{0,5}(KiB|MiB|GiB|TiB)$"}
_INSTANT: Schema = {"type": "string", "pattern": r"^\s*-?[0-9]{4,}(-.*)?$"}
_AMOUNT: Schema = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^[0-9.]+$"}]}
_TRUTH: Schema = {"anyOf": [{"type": "boolean"}, {"type": "string", "enum": ["true", "false"]}]}
_WINDOW: Schema = {
    "type": "string",
    "pattern": r"^[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9]( [A-Za-z0-9_+/-]{1,64})?$",
}


def _words(*allowed: str) -> Schema:
    return {"type": "string", "enum": list(allowed)}


def _whole(most: int | None = None) -> Schema:
    """Returns the shape of a number from 1 on; the reader takes it in quotes, too."""
    plain = {"type": "integer", "minimum": 1} | ({} if most is None else {"maximum": most})
    return _any(plain, {"type": "string", "pattern": "^[+]?[0-9]{1,18}$"})


def _any(*shapes: Schema) -> Schema:
    return {"anyOf": list(shapes)}


def _several(one: Schema) -> Schema:
    """Returns the shape of a list; a single value stands for a list of one, and commas separate values in a text."""
    return _any(_TEXT, {"type": "array", "items": one})


_COUNT_OR_WINDOW = _any(_whole(), _DURATION, _words(ALL, OFF))
_RULES: Mapping[str, Schema] = {
    "last": _any(_whole(), _words(ALL, OFF)),
    "within": _any(_DURATION, _words(OFF)),
    **{period.value: _COUNT_OR_WINDOW for period in Period},
    "tags": _several(_TEXT),
}
_IDS = _any({"type": "integer"}, {"type": "string", "pattern": r"^(-?[0-9]{1,19}|[0-9A-Z]{20}|\*)$"})
_SETTINGS: Mapping[str, Schema] = {
    "records": _TEXT,
    "grace": _DURATION,
    "blast-radius": _SHARE,
    "engine": _words("auto", "local", "spark"),
    "include-outside": _TRUTH,
    "history": _any(_DURATION, _INSTANT, {"type": "integer"}, _words("forever", OFF)),
    "cache": _TEXT,
    "audit": _TEXT,
    "webhook": {"type": "string", "pattern": "^https?://[^ ]+$"},
    "sharing": _words(LAKE, NONE),
    "shared-with": _several(_TEXT),
    "trust-snapshots": _any({"type": "integer"}, _TEXT, {"type": "array", "items": _IDS}),
    "longest-write": _DURATION,
    "backups": _any(_DURATION, _words("forever")),
    "approve-above": _any(_SIZE, _words(OFF)),
    "archive": _TEXT,
    "pointers": _words("identifier", "ordinal", "uuid", OFF),
    "pointer-branches": _several(_TEXT),
    "pointer-links": _DURATION,
    "version-hint": _TRUTH,
    "readers": _several(_TEXT),
    "readers-max-age": _any(_DURATION, _words("forever")),
    "readers-from": _words("offset", "start"),
}
_OF_WORKER: Mapping[str, Schema] = {
    "window": _any(_WINDOW, _words(ALWAYS)),
    "budget": _SHARE,
    "iops": _any(_whole(1_000_000), _words(MEASURED, USUAL)),
    "every": _DURATION,
    "orphans": _any(_DURATION, _words(OFF)),
    "tables": _several(_TEXT),
    "at-once": _whole(256),
}
_OF_TIER: Mapping[str, Schema] = {
    "root": _TEXT,
    "class": {"type": "string", "pattern": "^[A-Z][A-Z_]{1,30}$"},
    "thin": _words(*(period.value for period in Period), OFF),
    "bundle": _SIZE,
}
_OF_STORE = {
    name: _whole(LARGEST_BATCH if name == "delete-batch" else MOST_AT_ONCE if name.endswith("at-once") else 1_000_000)
    for name in LIMITS
}


def policy_schema() -> Schema:
    """Returns the schema of a whole file, level by level. Raises KeyError for a key of the reader without a shape."""
    levels = {level.value: _level(level) for level in (Level.CATALOG, Level.NAMESPACE, Level.TABLE)}
    top = _level(Level.GLOBAL)
    return {
        "$schema": DRAFT,
        "title": "firnline.yaml",
        "description": "What firnline keeps of tables, and how it works. docs/reference/policy.md lists every key.",
        **top,
        "definitions": {"keep": _keep(), **levels},
    }


def _keep() -> Schema:
    found = _keys(RULE_NAMES, _RULES, ALLOWED)
    return {**found, "minProperties": 1, "description": "what stays: snapshots that any of these rules keeps"}


def _level(level: Level) -> Schema:
    """Returns what may be said at a level: the same everywhere, but for what counts for a whole lake."""
    known = [name for name in SETTINGS if level is Level.GLOBAL or name not in TOP_ONLY]
    shape = _keys(known, _SETTINGS, ALLOWED)
    properties = {"keep": {"$ref": "#/definitions/keep"}, **shape["properties"]}
    group, deeper = INSIDE.get(level, ("", level))
    if group:
        properties[group] = _named(
            {"$ref": f"#/definitions/{deeper.value}"}, f"by their names, or by patterns such as {deeper.value[:3]}*"
        )
    if level is Level.GLOBAL:
        properties |= {name: _TOP[name] for name in ON_TOP}
    return {**shape, "properties": properties}


def _keys(names: Iterable[str], shapes: Mapping[str, Schema], said: Mapping[str, str]) -> Schema:
    """Returns a mapping of these keys and no other, each with what it takes."""
    properties = {name: {**shapes[name], **({"description": said[name]} if name in said else {})} for name in names}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _named(inside: Schema, said: str) -> Schema:
    """Returns a mapping of names that nobody knows beforehand."""
    return {"type": "object", "additionalProperties": inside, "description": said}


_SAID_OF_WORKER = {name: allowed for name, (_, _, allowed) in WORKER_KEYS.items()}
_SAID_OF_STORE = {name: allowed for name, (_, allowed) in LIMITS.items()}
_TOP: Mapping[str, Schema] = {
    "stores": _named(_keys(LIMITS, _OF_STORE, _SAID_OF_STORE), "what a store may be asked for at most, by its place"),
    "tiers": _named(_keys(TIER_KEYS, _OF_TIER, {}), "where history is handed to, by the name of a catalog"),
    "prices": _named(_keys(PRICE_KEYS, dict.fromkeys(PRICE_KEYS, _AMOUNT), {}), "dollars, by a class of storage"),
    "worker": {**_keys(WORKER_KEYS, _OF_WORKER, _SAID_OF_WORKER), "description": "how `firnline worker` works"},
}
