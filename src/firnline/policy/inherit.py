"""From what was written at every level, in files, properties and flags, to what counts for one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from firnline.callers import in_callers_words
from firnline.errors import PolicyError, UsageError
from firnline.model.snapshots import MAIN
from firnline.model.times import DAY_MS
from firnline.policy.bounds import HistoryBound
from firnline.policy.native import NativeRetention, Range
from firnline.policy.parse import EMPTY_HINT, Section, unknown_key
from firnline.policy.policy import Level, Policy, Setting, Source
from firnline.policy.rules import RULE_NAMES, Rule
from firnline.policy.values import LAKE, SETTINGS, parse_rule, parse_setting
from firnline.policy.written.entries import CountingEntries, entries_for

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
    """Returns what flags, or keywords in Python, say: rules and settings by their names (`last`, `daily`, `grace`)."""
    keep: dict[str, Setting[Rule | None]] = {}
    settings: dict[str, Setting[Any]] = {}
    for name, text in flags.items():
        if name in RULE_NAMES:
            flag = f"--keep-{name}"
            keep[name] = Setting(parse_rule(name, text, flag), Source(Level.ASKED, flag))
        elif name in SETTINGS:
            flag = _FLAGS.get(name, f"--{name}")
            settings[name] = Setting(parse_setting(name, text, flag), Source(Level.ASKED, flag))
        else:
            raise unknown_key("flags", name, (*RULE_NAMES, *SETTINGS))
    return Section(keep, settings)


T = TypeVar("T")

_DEFAULT = Source(Level.DEFAULT)
_DEFAULTS: dict[str, Setting[Any]] = {
    "records": Setting(None, _DEFAULT),
    "grace": Setting(DAY_MS, _DEFAULT),
    "blast-radius": Setting(0.9, _DEFAULT),
    "engine": Setting("auto", _DEFAULT),
    "approve-above": Setting(None, _DEFAULT),
    "include-outside": Setting(False, _DEFAULT),
    "history": Setting(None, _DEFAULT),
    "sharing": Setting(LAKE, _DEFAULT),
    "shared-with": Setting((), _DEFAULT),
    "archive": Setting(None, _DEFAULT),
    "pointers": Setting(None, _DEFAULT),
    "pointer-branches": Setting((MAIN,), _DEFAULT),
    "pointer-links": Setting(30 * DAY_MS, _DEFAULT),
    "version-hint": Setting(False, _DEFAULT),
    "readers": Setting((), _DEFAULT),
    "readers-max-age": Setting(None, _DEFAULT),
    "readers-from": Setting("offset", _DEFAULT),
}


@dataclass(frozen=True, slots=True)
class Effective:
    """What counts for one table. `keep` also has the rules that are turned off (value None), to show them."""

    policy: Policy
    keep: Mapping[str, Setting[Rule | None]]
    records: Setting[str | None]
    grace: Setting[int]
    blast_radius: Setting[float]
    engine: Setting[str]
    approve_above: Setting[int | None]
    include_outside: Setting[bool]
    history: Setting[HistoryBound | None]
    sharing: Setting[str]
    shared_with: Setting[tuple[str, ...]]
    archive: Setting[str | None]
    pointers: Setting[str | None]
    pointer_branches: Setting[tuple[str, ...]]
    pointer_links: Setting[int]
    version_hint: Setting[bool]
    readers: Setting[tuple[str, ...]]
    readers_max_age: Setting[int | None]
    readers_from: Setting[str]


def effective(
    config: Section,
    catalog: str | None,
    namespace: tuple[str, ...],
    table: str,
    *,
    properties: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> Effective:
    """Returns the policy and settings of a table: each key from the most specific level that has it.

    A table without a catalog (one given by its location) gets what is global, its properties and the flags.
    Raises PolicyError where every rule ended up turned off: such a policy would expire all but the heads; and where
    the file has a name that differs from the table's by a slip: its rule was meant for this table.
    """
    found = CountingEntries((config,)) if catalog is None else entries_for(config, catalog, namespace, table)
    sections = [*found.around, section_of_properties(properties or {}), found.own, section_of_flags(flags or {})]
    keep = _overlay(section.keep for section in sections)
    settings = _overlay([_DEFAULTS, *(section.settings for section in sections)])
    return Effective(
        policy=_policy(keep, table),
        keep={name: keep[name] for name in RULE_NAMES if name in keep},
        records=settings["records"],
        grace=settings["grace"],
        blast_radius=settings["blast-radius"],
        engine=settings["engine"],
        approve_above=settings["approve-above"],
        include_outside=settings["include-outside"],
        history=settings["history"],
        sharing=settings["sharing"],
        shared_with=settings["shared-with"],
        archive=settings["archive"],
        pointers=settings["pointers"],
        pointer_branches=settings["pointer-branches"],
        pointer_links=settings["pointer-links"],
        version_hint=settings["version-hint"],
        readers=settings["readers"],
        readers_max_age=settings["readers-max-age"],
        readers_from=settings["readers-from"],
    )


def _overlay(levels: Iterable[Mapping[str, Setting[T]]]) -> dict[str, Setting[T]]:
    """Returns each key's most specific setting, which remembers what it replaced."""
    found: dict[str, Setting[T]] = {}
    for level in levels:
        for key, setting in level.items():
            found[key] = replace(setting, overrides=found.get(key))
    return found


def _policy(keep: Mapping[str, Setting[Rule | None]], table: str) -> Policy:
    rules = []
    for name in RULE_NAMES:
        setting = keep.get(name)
        if setting is not None and setting.value is not None:
            rules.append(Setting(setting.value, setting.source))
    if keep and not rules:
        where = ", ".join(f"{name} ({setting.source})" for name, setting in keep.items())
        raise PolicyError(f"empty policy: every rule of {table} is off: {where}", hint=EMPTY_HINT)
    return Policy(tuple(rules))


def with_native_flags(
    native: NativeRetention, policy: Policy, older_than_ms: int | None = None, retain_last: int | None = None
) -> NativeRetention:
    """Returns the table's defaults as `--older-than` and `--retain-last` replace them.

    Raises UsageError beside a firnline policy: those options would undercut it.
    """
    if older_than_ms is None and retain_last is None:
        return native
    if not policy.is_native:
        raise UsageError(
            f"{in_callers_words('--older-than and --retain-last')} do not go with a policy: {policy.describe()}",
            hint="they only replace the format's own defaults; try --keep-within and --keep-last",
        )
    if retain_last is not None and retain_last < 1:
        raise UsageError(
            f"{in_callers_words('--retain-last')} must be 1 or more, not {retain_last}",
            "the newest snapshot always stays",
        )
    ranges = (
        None if native.ranges is None else {name: _at_least(each, retain_last) for name, each in native.ranges.items()}
    )
    return replace(
        native,
        ranges=ranges,
        older_than_ms=native.older_than_ms if older_than_ms is None else older_than_ms,
        min_snapshots_to_keep=native.min_snapshots_to_keep if retain_last is None else retain_last,
    )


def _at_least(own: Range, retain_last: int | None) -> Range:
    if retain_last is None:
        return own
    return replace(own, at_least=retain_last, at_most=max(own.at_most, retain_last))
