"""From what was written at every level, in files, properties and flags, to what counts for one table; names are
checked, for a rule under a misspelt one would be skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, TypeVar

from firnline.errors import PolicyError, UsageError
from firnline.model.names import written
from firnline.model.snapshots import MAIN
from firnline.model.times import DAY_MS
from firnline.policy.bounds import HistoryBound
from firnline.policy.native import NativeRetention, Range
from firnline.policy.parse import EMPTY_HINT, Section, unknown_key
from firnline.policy.policy import Level, Policy, Setting, Source
from firnline.policy.rules import RULE_NAMES, Rule
from firnline.policy.values import LAKE, SETTINGS, parse_rule, parse_setting

Levels = tuple[str, ...]
_SHORTEST = 3
_NOTHING = Section()


def section_of_catalog(config: Section, name: str) -> Section:
    """Returns what the file says of a catalog. PyIceberg knows catalogs without regard to case, and so do we."""
    if name in config.inside:
        return config.inside[name]
    alike = [section for key, section in config.inside.items() if key.casefold() == name.casefold()]
    return alike[0] if alike else section_named(config, name, "catalog")


def section_named(level: Section, name: str, what: str) -> Section:
    """Returns the entry of that name; an empty one where there is none.

    Raises PolicyError where there is none but one whose name differs by a slip of the finger.
    """
    if name in level.inside:
        return level.inside[name]
    for key, entry in level.inside.items():
        if _is_slip(key, name):
            raise PolicyError(
                f"{entry.at}: {key!r} is nearly the {what} {name!r}, which has no entry",
                hint=f"correct the name; or write `{name}: {{}}` beside it, if both exist",
            )
    return _NOTHING


def _is_slip(written: str, name: str) -> bool:
    """Tells whether two names differ in case, in one character or in the order of two.

    Names that differ in a digit, such as events_1 and events_2, are brothers, not slips.
    """
    one, other = _differing(written.casefold().replace("-", "_"), name.casefold().replace("-", "_"))
    if any(character.isdigit() for character in one + other):
        return False
    if max(len(one), len(other)) > 1:
        return len(one) == 2 and one == other[::-1]
    return (one, other) == ("", "") or min(len(written), len(name)) >= _SHORTEST


def _differing(one: str, other: str) -> tuple[str, str]:
    """Returns what is left of both without their common beginning and end."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    one, other = one[start:], other[start:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return one, other


def check_names(
    config: Section, catalogs: Collection[str], tables: Callable[[str], Iterable[tuple[Levels, str]]]
) -> None:
    """Raises PolicyError unless every catalog, namespace and table of the file exists.

    `tables` yields namespace and name of every table of a catalog; it is only asked for catalogs of which the file
    says more than their name. Raises PolicyError with line, name and the nearest name that exists.
    """
    problems = [*_unknown_names(config, catalogs, tables)]
    if problems:
        raise PolicyError("; ".join(problems), hint="a rule under a name that nothing has protects nothing")


def _unknown_names(
    config: Section, catalogs: Collection[str], tables: Callable[[str], Iterable[tuple[Levels, str]]]
) -> Iterator[str]:
    by_case = {name.casefold(): name for name in catalogs}
    for key, entry in config.inside.items():
        if key.casefold() not in by_case:
            yield _unknown(entry, key, "catalog", catalogs)
        elif entry.inside:
            yield from _unknown_inside(entry, {*tables(by_case[key.casefold()])})


def _unknown_inside(catalog: Section, known: set[tuple[Levels, str]]) -> Iterator[str]:
    namespaces = {parent for namespace, _ in known for parent in with_parents(namespace)}
    for key, entry in catalog.inside.items():
        if key not in namespaces:
            yield _unknown(entry, key, "namespace", namespaces)
            continue
        names = {name for namespace, name in known if written(namespace) == key}
        yield from (_unknown(inner, name, "table", names) for name, inner in entry.inside.items() if name not in names)


def _unknown(entry: Section, key: str, what: str, known: Collection[str]) -> str:
    near = get_close_matches(key, known, n=1)
    return f"{entry.at}: no {what} {key!r}" + (f" (did you mean {near[0]!r}?)" if near else "")


def with_parents(namespace: Levels) -> Iterator[str]:
    """Yields the names by which the file knows a namespace and those around it, outermost first; one without any level
    has an empty name.
    """
    return (written(namespace[:end]) for end in range(min(1, len(namespace)), len(namespace) + 1))


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
