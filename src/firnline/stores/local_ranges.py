"""Pieces of a listing of local files, as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from firnline.ports.listings import KeyRange
from firnline.ports.stores import ObjectMeta
from firnline.stores.keys import folder_key
from firnline.stores.local import folder_contents, folder_names, inner_folders
from firnline.stores.pieces import LISTED, by_folders

_ROWS = 10_000


def split_local(prefix: str, wanted: int) -> list[KeyRange]:
    return by_folders(prefix, wanted, subfolders, bundle=True)


def local_batches(piece: KeyRange) -> Iterator[pa.RecordBatch]:
    """Yields the files of a piece. A folder that is gone by now holds nothing; any other failure raises."""
    rows: list[ObjectMeta] = []
    for files in _folders(piece):
        rows += files
        if len(rows) >= _ROWS:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def _folders(piece: KeyRange) -> Iterator[list[ObjectMeta]]:
    """Yields the files of one folder after another, those within the piece's bounds."""
    due = [(folder_key(piece.folder).path, _with_slash(piece.folder))]
    bounded = piece.after is not None or piece.until is not None
    while due:
        path, spelled = due.pop()
        files, folders = folder_contents(path, spelled)
        yield [file for file in files if _holds(piece, file.key)] if bounded else files
        if piece.deep:
            below = ((f"{path}/{name}", f"{spelled}{name}/") for name in folders)
            due += [each for each in below if not bounded or _reaches(piece, each[1])]


def _holds(piece: KeyRange, key: str) -> bool:
    """Tells whether a key is within the bounds. Python orders text as UTF-8 orders its bytes."""
    return (piece.after is None or piece.after < key) and (piece.until is None or key <= piece.until)


def _reaches(piece: KeyRange, stem: str) -> bool:
    """Tells whether any key that starts with the stem can be within the bounds."""
    too_late = piece.until is not None and stem > piece.until
    too_early = piece.after is not None and stem < piece.after and not piece.after.startswith(stem)
    return not (too_late or too_early)


def subfolders(folder: str) -> list[str]:
    spelled = _with_slash(folder)
    return [spelled + name for name in inner_folders(folder_key(folder).path, spelled)]


def named_folders(folder: str) -> list[str]:
    """Returns the folders in a folder, and what links in it lead to, by the names of the links."""
    spelled = _with_slash(folder)
    return [spelled + name for name in folder_names(folder_key(folder).path, spelled)]


def _with_slash(folder: str) -> str:
    return folder if folder.endswith("/") else folder + "/"


def _batch(rows: list[ObjectMeta]) -> pa.RecordBatch:
    columns = [[row.key for row in rows], [row.size for row in rows], [row.modified_ms for row in rows]]
    return pa.record_batch([*columns, [row.etag for row in rows]], schema=LISTED)
