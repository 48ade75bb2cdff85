"""Where a file lies in a tier: below the tier's root, under the path that it has in the live table's store.

`s3://lake/sales/orders/data/x.parquet` in the tier at `s3://cold/keep` is
`s3://cold/keep/lake/sales/orders/data/x.parquet`. Only the beginning of a path is exchanged, so that paths that were
equal, or one before the other, still are. Two files share a place only if nothing but their schemes tells them apart: a
copy finds the place taken by other bytes then, and is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from firnline.errors import UnsupportedFormat
from firnline.model.locations import is_dotted

_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*:"
_HEAD = re.compile(rf"(?:{_SCHEME}(?://)?)?")
_SURE = re.compile(rf"{_SCHEME}//(?:/|(?=[0-\U0010ffff]))|{_SCHEME}/(?=[0-\U0010ffff])|/")
"""A beginning that tells how all texts after this one begin that begin alike: with nothing in it that a bound which was
cut short may lack, and followed by no sign before or equal to a slash.
"""


@dataclass(frozen=True, slots=True)
class TierPlaces:
    """A tier's root. Picklable: paths are rewritten on executors."""

    root: str

    def place(self, path: str) -> str:
        """Returns the location in the tier of a file of the live table.

        Raises UnsupportedFormat for a segment `.` or `..`, which could lead out of the root.
        """
        if is_dotted(path):
            raise UnsupportedFormat(
                f"the path {path!r} has a segment '.' or '..'",
                hint="it cannot be handed to a tier; nothing was changed",
            )
        return self._below(path)

    def bounds(self, lower: str, upper: str) -> tuple[str, str]:
        """Returns bounds of paths, which may be cut short, as bounds of their places.

        Texts between two that begin alike begin as these do: so the order stays. Raises UnsupportedFormat where their
        schemes differ, or are cut off.
        """
        first, last = _SURE.match(lower), _SURE.match(upper)
        if first is None or last is None or first[0] != last[0]:
            raise UnsupportedFormat(
                f"deletes name files from {lower!r} to {upper!r}, of several schemes",
                hint="rewrite the table's position deletes, then hand its history over; nothing was changed",
            )
        return self._below(lower), self._below(upper)

    def _below(self, path: str) -> str:
        rest = path.removeprefix(_head(path))
        return f"{self.root.rstrip('/')}{'' if rest.startswith('/') else '/'}{rest}"


def _head(path: str) -> str:
    found = _HEAD.match(path)
    return found[0] if found else ""


@dataclass(frozen=True, slots=True)
class PlacesElsewhere:
    """Where files of a tier go that are brought back, or taken to any other place: below `to`, which has no slash at
    its end, under the path that they have below the tier's root. Picklable.
    """

    root: str
    to: str

    @staticmethod
    def back_to(location: str, root: str, there: str) -> PlacesElsewhere:
        """Returns the places that files of a tier's table, which is at `there`, had in the store of the table at
        `location`. What came to the tier by way of another one lies deeper below its `root`: below the root of the
        other one.
        """
        head = _head(location)
        is_file = not head or head.lower().startswith("file:")
        rest = f"/{location.removeprefix(head).strip('/')}"
        before = there.rstrip("/").removesuffix(rest)
        return PlacesElsewhere(
            before if before != there.rstrip("/") else root, head if is_file else head.removesuffix("/")
        )

    def place(self, path: str) -> str:
        """Returns the location that the file goes to. Raises UnsupportedFormat unless the file lies in the tier, by a
        plain path.
        """
        stem = f"{self.root.rstrip('/')}/"
        if not path.startswith(stem) or is_dotted(path):
            raise UnsupportedFormat(
                f"the path {path!r} does not lie below {self.root}",
                hint="it is no file of that tier; nothing was changed",
            )
        return f"{self.to}/{path[len(stem) :]}"

    def bounds(self, lower: str, upper: str) -> tuple[str, str]:
        """Returns bounds of paths as bounds of where these go: both begin with the root, and so does all between."""
        return self.place(lower), self.place(upper)
