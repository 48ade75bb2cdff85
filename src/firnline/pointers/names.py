"""How files of pointers are named: after the table, after its uuid, and, in a log, after the table and an ordinal.

    sales_customer_main.ver                                     identifier
    sales_customer_20240128T153045.000.ver                      one entry of a log
    sales_customer_123e4567-e89b-12d3-a456-426614174000.ver     uuid

Parts are joined by `_`. Whatever else a part holds than ASCII letters, digits and `-` is written as `~` and the two hex
digits of each byte, `_` itself too: so `a_b` + `c` and `a` + `b_c` never meet, and a name can be read back. Levels of a
namespace are joined by `.`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from firnline.errors import UsageError
from firnline.model.snapshots import MAIN
from firnline.pointers.ordinals import ordinal_ms

SUFFIX = ".ver"
FOLDER = "_pointers"
"""In a table's folder. Orphan removal of other tools leaves alone what begins with `_`."""

_LONGEST = 255
_PLAIN = re.compile(rb"[A-Za-z0-9-]")
_ESCAPED = re.compile(r"~([0-9A-F]{2})")
_PART = re.compile(r"(?:[A-Za-z0-9-]|~[0-9A-F]{2})*")
_ORDINAL = re.compile(r"[0-9]{8}T[0-9]{6}(?:\.[0-9]{3})?")


class Naming(StrEnum):
    IDENTIFIER = "identifier"
    ORDINAL = "ordinal"
    UUID = "uuid"


@dataclass(frozen=True, slots=True)
class PointedBranch:
    """What a pointer speaks of: one branch of one table."""

    namespace: tuple[str, ...]
    table: str
    branch: str = MAIN

    @property
    def stem(self) -> str:
        return f"{'.'.join(map(escaped, self.namespace))}_{escaped(self.table)}"


def escaped(text: str) -> str:
    """Returns a part of a name as a file name can have it; `unescaped` reads it back."""
    found = (bytes([byte]) for byte in text.encode())
    return "".join(each.decode() if _PLAIN.match(each) else f"~{each.hex().upper()}" for each in found)


def unescaped(text: str) -> str:
    """Returns the part of a name. Raises ValueError for what `escaped` never writes."""
    if not _PART.fullmatch(text):
        raise ValueError(f"{text!r} is no part of a pointer's name")
    plain = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    return plain.encode("latin-1").decode("utf-8")


def by_identifier(subject: PointedBranch) -> str:
    return _checked(f"{subject.stem}_{_of_branch(subject.branch)}{SUFFIX}")


def by_ordinal(subject: PointedBranch, ordinal: str) -> str:
    return _checked(f"{subject.stem}{branch_end(subject.branch)}_{ordinal}{SUFFIX}")


def by_uuid(subject: PointedBranch, guid: str) -> str:
    """Returns the name of a file that stays when the table is renamed: then it goes on under its first name."""
    return _checked(f"{subject.stem}_{guid}{branch_end(subject.branch)}{SUFFIX}")


def branch_end(branch: str) -> str:
    return "" if branch == MAIN else f"_{_of_branch(branch)}"


def _of_branch(branch: str) -> str:
    """Returns a branch as a part of a name. One that is called like an ordinal or a uuid has its first letter escaped:
    else its file would be read as an old entry of main's log, which keeps nothing and is cleaned away.
    """
    part = escaped(branch)
    return f"~{ord(part[0]):02X}{part[1:]}" if _ORDINAL.fullmatch(part) or is_uuid(part) else part


def _checked(name: str) -> str:
    if len(name) > _LONGEST:
        raise UsageError(
            f"the name of a pointer would have {len(name)} letters, and a file's has at most {_LONGEST}: {name[:80]}…",
            hint="turn `pointers` off for this table",
        )
    return name


@dataclass(frozen=True, slots=True)
class PointerName:
    """The name of a pointer's file, read back. One of an entry in a log has an ordinal, one after a uuid has that."""

    subject: PointedBranch
    ordinal: str | None = None
    guid: str | None = None


def read_name(name: str) -> PointerName | None:
    """Returns what a file's name says; None for a name that is none of a pointer."""
    if not name.endswith(SUFFIX):
        return None
    try:
        return _of_parts(name.removesuffix(SUFFIX).split("_"))
    except ValueError:
        return None


def _of_parts(parts: list[str]) -> PointerName | None:
    if not 3 <= len(parts) <= 4:
        return None
    namespace = tuple(map(unescaped, parts[0].split("."))) if parts[0] else ()
    table = unescaped(parts[1])
    if _ORDINAL.fullmatch(parts[-1]):
        branch = unescaped(parts[2]) if len(parts) == 4 else MAIN
        ordinal_ms(parts[-1])
        return PointerName(PointedBranch(namespace, table, branch), ordinal=parts[-1])
    if is_uuid(parts[2]):
        branch = unescaped(parts[3]) if len(parts) == 4 else MAIN
        return PointerName(PointedBranch(namespace, table, branch), guid=parts[2])
    return PointerName(PointedBranch(namespace, table, unescaped(parts[2]))) if len(parts) == 3 else None


def is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
