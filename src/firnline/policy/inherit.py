"""From what was written at every level to what counts for one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from firnline.errors import PolicyError, UsageError
from firnline.model.times import DAY_MS
from firnline.policy.config import Section
from firnline.policy.names import section_named, section_of_catalog, with_parents
from firnline.policy.native import NativeRetention
from firnline.policy.parse import EMPTY_HINT
from firnline.policy.policy import Level, Policy, Setting, Source
from firnline.policy.ranges import Range
from firnline.policy.rules import RULE_NAMES, Rule
from firnline.policy.values import LAKE
from firnline.policy.written import section_of_flags, section_of_properties

T = TypeVar("T")

_NOTHING = Section()
_DEFAULT = Source(Level.DEFAULT)
_DEFAULTS: dict[str, Setting[Any]] = {
    "records": Setting(None, _DEFAULT),
    "grace": Setting(DAY_MS, _DEFAULT),
    "blast-radius": Setting(0.9, _DEFAULT),
    "engine": Setting("auto", _DEFAULT),
    "include-outside": Setting(False, _DEFAULT),
    "history": Setting(None, _DEFAULT),
    "sharing": Setting(LAKE, _DEFAULT),
    "shared-with": Setting((), _DEFAULT),
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
    include_outside: Setting[bool]
    history: Setting[int | None]
    sharing: Setting[str]
    shared_with: Setting[tuple[str, ...]]


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
    outer, entry = _levels(config, catalog, namespace, table)
    sections = [*outer, section_of_properties(properties or {}), entry, section_of_flags(flags or {})]
    keep = _overlay(section.keep for section in sections)
    settings = _overlay([_DEFAULTS, *(section.settings for section in sections)])
    return Effective(
        policy=_policy(keep, table),
        keep={name: keep[name] for name in RULE_NAMES if name in keep},
        records=settings["records"],
        grace=settings["grace"],
        blast_radius=settings["blast-radius"],
        engine=settings["engine"],
        include_outside=settings["include-outside"],
        history=settings["history"],
        sharing=settings["sharing"],
        shared_with=settings["shared-with"],
    )


def _levels(
    config: Section, catalog: str | None, namespace: tuple[str, ...], table: str
) -> tuple[list[Section], Section]:
    """Returns the levels around a table, outermost first, and the table's own entry."""
    if catalog is None:
        return [config], _NOTHING
    inside = section_of_catalog(config, catalog)
    spaces = [section_named(inside, name, "namespace") for name in with_parents(namespace)]
    entry = section_named(spaces[-1], table, "table")
    return [config, inside, *spaces], entry


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
            f"--older-than and --retain-last do not go with a policy: {policy.describe()}",
            hint="they only replace the format's own defaults; try --keep-within and --keep-last",
        )
    if retain_last is not None and retain_last < 1:
        raise UsageError(f"--retain-last must be 1 or more, not {retain_last}", "the newest snapshot always stays")
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
