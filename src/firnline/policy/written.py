"""Policy that is not in a file: a table's own properties, and flags of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firnline.policy.config import Section
from firnline.policy.parse import unknown_key
from firnline.policy.policy import Level, Setting, Source
from firnline.policy.rules import RULE_NAMES, Rule
from firnline.policy.values import SETTINGS, parse_rule, parse_setting

KEEP_PROPERTY = "firnline.keep"
SETTING_PROPERTIES = {"firnline.grace": "grace", "firnline.history": "history"}
_FLAGS = {"history": "--keep-expired-refs"}
"""The flags that are not called as their setting."""


def section_of_properties(properties: Mapping[str, str]) -> Section:
    """Returns what the table says about itself. Raises PolicyError for a rule that nobody knows."""
    keep: dict[str, Setting[Rule | None]] = {}
    settings: dict[str, Setting[Any]] = {}
    for key in sorted(properties):
        where, source = f"table property {key}", Source(Level.PROPERTY, key)
        setting = SETTING_PROPERTIES.get(key)
        if setting is not None:
            settings[setting] = Setting(parse_setting(setting, properties[key], where), source)
        elif key == KEEP_PROPERTY or key.startswith(KEEP_PROPERTY + "."):
            name = key.removeprefix(KEEP_PROPERTY).removeprefix(".")
            if name not in RULE_NAMES:
                raise unknown_key(where, name, RULE_NAMES)
            keep[name] = Setting(parse_rule(name, properties[key], where), source)
    return Section(keep, settings)


def section_of_flags(flags: Mapping[str, str]) -> Section:
    """Returns what the command line says: rules and settings by their names (`last`, `daily`, `grace`)."""
    keep: dict[str, Setting[Rule | None]] = {}
    settings: dict[str, Setting[Any]] = {}
    for name, text in flags.items():
        if name in RULE_NAMES:
            flag = f"--keep-{name}"
            keep[name] = Setting(parse_rule(name, text, flag), Source(Level.FLAG, flag))
        elif name in SETTINGS:
            flag = _FLAGS.get(name, f"--{name}")
            settings[name] = Setting(parse_setting(name, text, flag), Source(Level.FLAG, flag))
        else:
            raise unknown_key("flags", name, (*RULE_NAMES, *SETTINGS))
    return Section(keep, settings)
