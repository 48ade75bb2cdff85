"""Links among metadata, which formats whose folders are listed refuse."""

from __future__ import annotations

from firnline.errors import UnsupportedFormat
from firnline.ports.stores import Links


def refuse_links(store: Links, folder: str) -> None:
    """Raises UnsupportedFormat for a link inside a folder of metadata, or that is one.

    A listing does not follow it, and a format's own programs do: a branch behind one would seem to be none, and lose
    its files. And a snapshot, or the folder of all of them, that is a link into another table goes when that one
    expires it, and the other way round.
    """
    for link in sorted(store.links(folder)):
        raise UnsupportedFormat(
            f"{link} is a link, and what is behind it may change or go unseen",
            hint="nothing was changed; put what it leads to there, or remove the link",
        )
