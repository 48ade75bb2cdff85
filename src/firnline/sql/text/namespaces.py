"""The namespace that SHOW TABLES asks for: the tables in it, or what is there instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from firnline.app.catalogs import Catalogs
from firnline.errors import FirnlineError, NoSuchTable
from firnline.model.names import parts_of, written

_SHOWN = 10


def tables_shown(
    catalogs: Catalogs, namespace: str | None
) -> tuple[list[tuple[str, str]], Mapping[str, FirnlineError]]:
    """Returns the tables of a namespace or a catalog, each behind the namespace by which a query finds it, and what is
    wrong with catalogs that cannot be read; all tables if None. Raises NoSuchTable for a name of neither: no rows would
    say that it is there, and empty.
    """
    tables, unread = catalogs.readable()
    listed = [(written((each.catalog, *each.namespace)), each.name) for each in tables]
    if namespace is None:
        return listed, unread
    known = [written((each,)) for each in catalogs.configured]
    wanted = {namespace, *(f"{each}.{namespace}" for each in known)}
    found = [each for each in listed if each[0] in wanted or each[0].startswith(f"{namespace}.")]
    if not found and namespace not in known and not _may_be_in(namespace, catalogs.configured, unread):
        there = dict.fromkeys((*known, *(space for space, _ in listed)))
        raise NoSuchTable(
            f"no catalog is called {namespace}, and no namespace with a table", _instead(namespace, there)
        )
    return found, unread


def _may_be_in(namespace: str, configured: Iterable[str], unread: Iterable[str]) -> bool:
    """Tells whether a catalog that cannot be read may have it: the one that is named first, else any."""
    first = parts_of(namespace)[0]
    return first in unread if first in configured else any(True for _ in unread)


def _instead(namespace: str, there: Iterable[str]) -> str:
    """Returns a hint at near names, in any letters and without the catalog's; else at what there is."""
    spelt = {text.lower(): each for each in there for text in (each, each.partition(".")[2]) if text}
    near = dict.fromkeys(spelt[each] for each in get_close_matches(namespace.lower(), spelt))
    if near:
        return f"did you mean {' or '.join(near)}?"
    names = list(there)
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"there are: {', '.join(names[:_SHOWN])}{more}" if names else "no catalog is configured"
