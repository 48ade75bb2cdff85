"""What a database's failure means for those who use the catalog in it, and the error for a table that is not found. No
message ever holds a password.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from shlex import quote

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from firnline.errors import AccessDenied, BadCredentials, NoSuchTable, StoreError, Unreachable, UnreadableMetadata
from firnline.foreign import Veil, passwords_in
from firnline.ports.catalogs import TableName

_SHOWN = 3


def no_such_table(wanted: TableName, known: Iterable[TableName]) -> NoSuchTable | UnreadableMetadata:
    """Returns the error to raise; its hint suggests near names, those of the same namespace first.

    `known` is what the catalog lists now. A table that is among them was not dropped: a search that left it out would
    take its files for garbage.
    """
    tables = list(known)
    if wanted in tables:
        return UnreadableMetadata(
            f"the catalog lists {wanted} and says that there is no such table",
            hint="look at it with the engine that made it; drop it or register it again, if it is broken",
        )
    return NoSuchTable(f"no table {wanted}", guess(wanted, tables) or "`firnline tables` lists what there is")


def guess(wanted: TableName, known: Iterable[TableName]) -> str:
    """Returns a hint at near names, as a shell takes them; nothing where none is near."""
    near = near_names(wanted, known)
    return f"did you mean {' or '.join(map(quote, near))}?" if near else ""


def near_names(wanted: TableName, known: Iterable[TableName]) -> list[str]:
    """Returns at most three names: the same in other letters, near ones of the same namespace, then the same name or a
    near one elsewhere.
    """
    tables = list(known)
    alike = [str(table) for table in tables if _without_catalog(table).lower() == _without_catalog(wanted).lower()]
    same = {table.name: str(table) for table in tables if table.namespace == wanted.namespace}
    elsewhere = {str(table): table for table in tables if table.namespace != wanted.namespace}
    inner = {_without_catalog(table): full for full, table in elsewhere.items()}  # all begin alike with the catalog
    near = [same[name] for name in get_close_matches(wanted.name, same, _SHOWN)]
    found = [*alike, *(full for full in near if full not in alike)]
    found += [full for full, table in elsewhere.items() if table.name == wanted.name and full not in found]
    near = [inner[each] for each in get_close_matches(_without_catalog(wanted), inner, _SHOWN)]
    found += [full for full in near if full not in found]
    return found[:_SHOWN]


def _without_catalog(table: TableName) -> str:
    return ".".join((*table.namespace, table.name))


_TROUBLES: tuple[tuple[tuple[str, ...], type[StoreError], str], ...] = (
    (
        ("database is locked", "database table is locked"),
        StoreError,
        "another program writes to this SQLite file; try again, or use PostgreSQL for many writers",
    ),
    (
        ("readonly database", "read-only transaction", "permission denied", "recovery is in progress"),
        AccessDenied,
        "plans work; a commit needs a user, or a file, that may be written",
    ),
    (
        ("password authentication failed", "no password supplied", "role ", "pg_hba.conf"),
        BadCredentials,
        "check user and password in the catalog's uri",
    ),
    (
        ("does not exist",),
        StoreError,
        "check the name of the database in the catalog's uri",
    ),
    (
        ("connection refused", "could not connect", "connection failed", "connection timeout", "no answer within",
         "closed the connection", "connection is lost", "connection is closed", "terminating connection",
         "could not translate host", "failed to resolve"),
        Unreachable,
        "is the database running, and the host and port in the catalog's uri right?",
    ),
)  # fmt: skip


def explained(error: SQLAlchemyError, who: str, uri: str) -> StoreError:
    """Returns the error to raise: what failed, in one line, and what would help."""
    reason = _hidden(" ".join(str(getattr(error, "orig", None) or error).split()), uri)[:300]
    if isinstance(error, PoolTimeout):
        return Unreachable(f"{who} gave no connection in time", "all connections of this process are in use; try again")
    lowered = reason.lower()
    for signs, kind, hint in _TROUBLES:
        if any(sign in lowered for sign in signs):
            return kind(f"{who} failed: {reason}", hint)
    return StoreError(f"{who} failed: {reason}", "nothing was changed by this request")


def _hidden(text: str, uri: str) -> str:
    """Returns the text without the passwords of the address, however a driver may quote them."""
    password = sa.make_url(uri).password
    return Veil([*passwords_in(uri), *([] if password is None else [str(password)])]).over(text)
