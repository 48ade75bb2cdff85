"""A table's metadata as one mapping from path to text: everything but manifests and schemas is a few small files.

Nobody reads a folder in one instant. What vanished between the listing and the read (a writer's own expiry, a
rollback) is looked at again; hints are read but never believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from firnline.errors import NoSuchTable, ObjectNotFound, UnreadableMetadata, UnsupportedFormat
from firnline.formats.paimon import names
from firnline.model.locations import identity, join
from firnline.ports.stores import Get, Links, Read

Files = Mapping[str, str]

_THREADS = 16
_LOOKS = 5


def read_folder(store: Read, location: str) -> Files:
    """Returns every metadata file of every branch, by its path below the table's folder.

    Raises NoSuchTable where there is no schema, UnreadableMetadata where files keep vanishing or are not text.
    """
    for _ in range(_LOOKS):
        wanted = sorted(_wanted(store, location))
        found = _read_all(store, location, wanted)
        if len(found) == len(wanted):
            if not any(_is_schema(path) for path in found):
                raise NoSuchTable(f"no Paimon table at {location}", "a table's folder has a folder `schema` in it")
            return {**found, **_read_all(store, location, [names.PROPERTIES])}
    raise UnreadableMetadata(
        f"the metadata of {location} changes faster than it can be read", hint="nothing was changed; try again"
    )


def _is_schema(path: str) -> bool:
    known = names.numbered(path)
    return known is not None and known[0] == "schema"


def _wanted(store: Read, location: str) -> Iterator[str]:
    """Yields the metadata files. Other names, such as those of a write that is under way, are nobody's yet."""
    for folder in (*names.FOLDERS, names.BRANCHES):
        stem = identity(location).rstrip("/") + "/"
        _refuse_links(store, join(location, folder))
        for found in store.list(join(location, folder)):
            path = identity(found.key).removeprefix(stem)
            below = names.split_branch(path)[1]
            if names.numbered(below):
                _refuse_strange_number(below, found.key)
                yield path
            elif names.named(below) or below in names.HINTS:
                yield path


def _refuse_links(store: Links, folder: str) -> None:
    """Refuses a link inside a folder of metadata: a listing does not follow it, and Paimon does. So a branch behind one
    would seem to be none, and lose its files.
    """
    for link in sorted(store.links(folder)):
        raise UnsupportedFormat(
            f"{link} is a link, and what is behind it would not be seen",
            hint="nothing was changed; put the folder itself there, or remove the link",
        )


def _refuse_strange_number(below: str, key: str) -> None:
    """Refuses a number with zeros before it, or beyond all that Paimon counts to: readers would look elsewhere."""
    _, number = names.known(below) or ("", "")
    if number != str(int(number)) or int(number) > names.LARGEST:
        raise UnreadableMetadata(
            f"metadata is damaged: {key}: its number is none that Paimon writes", hint="nothing was changed"
        )


def _read_all(store: Get, location: str, paths: list[str]) -> dict[str, str]:
    """Returns the texts of those that are still there."""
    with ThreadPoolExecutor(_THREADS) as pool:
        texts = pool.map(lambda path: _text(store, join(location, path), names.is_hint(path)), paths)
        return {path: text for path, text in zip(paths, texts, strict=True) if text is not None}


def _text(store: Get, key: str, is_hint: bool) -> str | None:
    """Returns what the file says; None where it is gone. Nobody believes a hint, so it need not even be text."""
    try:
        return store.get(key).decode(errors="replace" if is_hint else "strict")
    except ObjectNotFound:
        return None
    except UnicodeDecodeError as damage:
        raise UnreadableMetadata(f"metadata is damaged: {key}: {damage}", hint="nothing was changed") from damage
