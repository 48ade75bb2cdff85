"""Which entries of a file count for a table: those of its names, and those of patterns that its names match. Names are
checked, for a rule under a misspelt one would be skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from firnline.errors import PolicyError
from firnline.model.names import without_quoted, written
from firnline.policy.parse import Section

Levels = tuple[str, ...]
EVERY = "*"
_SHORTEST = 3
_NOTHING = Section()


@dataclass(frozen=True, slots=True)
class CountingEntries:
    """What a file says of one table, least specific first: around it, and in the entry that is its own. Table
    properties stand between the two: a pattern speaks of many tables, and each of them knows itself better.
    """

    around: tuple[Section, ...]
    own: Section = _NOTHING


def entries_for(config: Section, catalog: str, namespace: Levels, table: str) -> CountingEntries:
    """Returns what counts for a table. At each level patterns come first, in the order of the file, and plain names
    after them: of two that say the same, the later one counts. Whatever stands below a pattern of namespaces comes
    before a namespace by its plain name.

    Raises PolicyError where the file has a name that differs from one of the table's by a slip, and no entry for that:
    its rule was meant for this table, whatever pattern matches as well.
    """
    catalogs = _of_catalog(config, catalog)
    spaces = [each for found in catalogs for each in _of_namespace(found, namespace)]
    tables = _of_table([each for each in spaces if each.is_whole], table)
    own = [each.section for each in tables if each.is_exact]
    general = [each for each in tables if not each.is_exact]
    ordered = [*sorted(spaces, key=lambda each: each.depth), *general]
    loose, named = ([each for each in ordered if bool(each.depth) is plain] for plain in (False, True))
    around = (config, *(each.section for each in (*catalogs, *loose, *named)))
    return CountingEntries(around, own[0] if own else _NOTHING)


def sections_of_catalog(config: Section, name: str) -> list[Section]:
    """Returns what the file says of a catalog: by patterns, then by its name."""
    return [each.section for each in _of_catalog(config, name)]


@dataclass(frozen=True, slots=True)
class _Counting:
    """An entry that counts. `is_exact`: it was found by plain names alone; `is_whole`: by all levels of a namespace and
    not just by the outer ones; `depth`: how many of these a plain name gives, none for a pattern. A table has that of
    its namespace.
    """

    section: Section
    is_exact: bool
    is_whole: bool = True
    depth: int = 0


def is_name_pattern(key: str) -> bool:
    """Tells whether a key stands for all names of its form. What stands in quotes, as in a namespace, is plain."""
    return any(sign in without_quoted(key) for sign in "*?[")


def _of_catalog(config: Section, name: str) -> list[_Counting]:
    """PyIceberg knows catalogs without regard to case, and so do we."""
    plain = {key.casefold(): entry for key, entry in reversed([*config.inside.items()])}
    own = config.inside.get(name) or plain.get(name.casefold())
    if own is None:
        _refuse_slip(config, name, "catalog")
    patterns = [
        entry
        for key, entry in config.inside.items()
        if is_name_pattern(key) and entry is not own and fnmatchcase(name.casefold(), key.casefold())
    ]
    return [*(_Counting(each, False) for each in patterns), *([] if own is None else [_Counting(own, True)])]


def _of_namespace(catalog: _Counting, namespace: Levels) -> Iterator[_Counting]:
    """Yields the entries of a namespace and of those around it."""
    inside, names = catalog.section.inside, list(with_parents(namespace))
    for key, entry in inside.items():
        if is_name_pattern(key) and key not in names and any(fnmatchcase(each, key) for each in names):
            yield _Counting(entry, False, fnmatchcase(names[-1], key))
    for depth, name in enumerate(names, 1):
        if name in inside:
            yield _Counting(inside[name], catalog.is_exact, depth == len(names), depth)
        else:
            _refuse_slip(catalog.section, name, "namespace")


def _of_table(spaces: Sequence[_Counting], table: str) -> list[_Counting]:
    found, plain = list[_Counting](), list[_Counting]()
    for space in spaces:
        inside = space.section.inside
        found += (
            _Counting(entry, False, depth=space.depth)
            for key, entry in inside.items()
            if key != table and is_name_pattern(key) and fnmatchcase(table, key)
        )
        plain += [_Counting(inside[table], space.is_exact, depth=space.depth)] if table in inside else []
    for space in spaces:  # what stands below a pattern is of many tables, and settled by an entry anywhere
        if table not in space.section.inside and (space.depth or not plain):
            _refuse_slip(space.section, table, "table")
    return [*found, *plain]


def miswritten_patterns(config: Section, catalog: str, namespace: Levels, table: str) -> list[str]:
    """Returns what a person should know of patterns that would match but for the case of their letters: they count for
    nothing here, and what they were to keep may go. Nothing of those beside which another entry counts.
    """
    catalogs = [each.section for each in _of_catalog(config, catalog)]
    spaces = [each.section for found in catalogs for each in _of_namespace(_Counting(found, False), namespace)]
    levels = [*((found, "namespace", written(namespace)) for found in catalogs), *((e, "table", table) for e in spaces)]
    return [note for level, what, name in levels for note in _but_for_case(level, what, name)]


def _but_for_case(level: Section, what: str, name: str) -> Iterator[str]:
    if any(key == name or (is_name_pattern(key) and fnmatchcase(name, key)) for key in level.inside):
        return
    for key, entry in level.inside.items():
        if is_name_pattern(key) and fnmatchcase(name.casefold(), key.casefold()):
            yield f"{entry.at}: {key!r} is no pattern of the {what} {name!r}: case counts, and so it keeps nothing here"


def _refuse_slip(level: Section, name: str, what: str) -> None:
    """Raises PolicyError where an entry's name differs from this one, which has none, by a slip of the finger."""
    for key, entry in level.inside.items():
        if not is_name_pattern(key) and _is_slip(key, name):
            raise PolicyError(
                f"{entry.at}: {key!r} is nearly the {what} {name!r}, which has no entry",
                hint=f"correct the name; or write `{name}: {{}}` beside it, if both exist",
            )


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
    """Raises PolicyError unless every catalog, namespace and table of the file exists, and every pattern matches one.

    `tables` yields namespace and name of every table of a catalog; it is only asked for catalogs of which the file
    says more than their name. Raises PolicyError with line, name and the nearest name that exists.
    """
    problems = [*_unknown_names(config, catalogs, tables)]
    if problems:
        raise PolicyError("; ".join(problems), hint="a rule under a name that nothing has protects nothing")


def _unknown_names(
    config: Section, catalogs: Collection[str], tables: Callable[[str], Iterable[tuple[Levels, str]]]
) -> Iterator[str]:
    for key, entry in config.inside.items():
        meant = [name for name in catalogs if _means(key.casefold(), name.casefold())]
        if not meant and key != EVERY:
            yield _unknown(entry, key, "catalog", catalogs)
        elif entry.inside:
            yield from _unknown_inside(entry, {each for name in meant for each in tables(name)})


def _unknown_inside(catalog: Section, known: set[tuple[Levels, str]]) -> Iterator[str]:
    namespaces = {parent for namespace, _ in known for parent in with_parents(namespace)}
    for key, entry in catalog.inside.items():
        meant = {name for name in namespaces if _means(key, name)}
        if not meant and key != EVERY:
            yield _unknown(entry, key, "namespace", namespaces)
            continue
        names = {name for namespace, name in known if written(namespace) in meant}
        for name, inner in entry.inside.items():
            if name != EVERY and not any(_means(name, each) for each in names):
                yield _unknown(inner, name, "table", names)


def _means(key: str, name: str) -> bool:
    return key == name or (is_name_pattern(key) and fnmatchcase(name, key))


def _unknown(entry: Section, key: str, what: str, known: Collection[str]) -> str:
    """Returns what is said of a key that means nothing. Of a pattern, names are near that nearly have its letters."""
    if not is_name_pattern(key):
        near = get_close_matches(key, known, n=1)
        return f"{entry.at}: no {what} {key!r}" + (f" (did you mean {near[0]!r}?)" if near else "")
    near = get_close_matches(key.translate({ord(sign): None for sign in "*?[]"}), known, n=3, cutoff=0.5)
    return f"{entry.at}: no {what} is named like {key!r}" + (f" (near are {', '.join(near)})" if near else "")


def with_parents(namespace: Levels) -> Iterator[str]:
    """Yields the names by which the file knows a namespace and those around it, outermost first; one without any level
    has an empty name.
    """
    return (written(namespace[:end]) for end in range(min(1, len(namespace)), len(namespace) + 1))
