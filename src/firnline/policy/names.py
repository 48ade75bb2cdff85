"""Names in firnline.yaml: a rule under a misspelt name would be skipped, and the table would lose its protection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from difflib import get_close_matches

from firnline.errors import PolicyError
from firnline.model.names import written
from firnline.policy.config import Section

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
    """Returns where every catalog, namespace and table of the file exists.

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
