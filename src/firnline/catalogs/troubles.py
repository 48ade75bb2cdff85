"""What a database's failure means for whoever uses the catalog in it. No message ever holds a password."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from firnline.errors import AccessDenied, BadCredentials, StoreError, Unreachable
from firnline.foreign import HIDDEN, passwords_in

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
        ("connection refused", "could not connect", "connection failed", "connection timeout", "closed the connection",
         "connection is lost", "connection is closed", "terminating connection", "could not translate host",
         "failed to resolve"),
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
    for secret in {*passwords_in(uri), *([] if password is None else [str(password)])} - {""}:
        text = text.replace(secret, HIDDEN)
    return text
