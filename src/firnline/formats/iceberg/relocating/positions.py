"""Files of position deletes: each row names a data file and a row of it."""

from __future__ import annotations

from functools import partial

from firnline.errors import UnsupportedFormat
from firnline.formats.avro import read_header
from firnline.formats.avro.splicing import splice
from firnline.formats.damage import Damaged
from firnline.formats.iceberg.relocating.bounds import PATH_ID, PATH_NAME
from firnline.formats.iceberg.relocating.naming import MovedPaths, NamingFile, Sizes
from firnline.formats.iceberg.relocating.parquet import relocated_parquet

_PARQUET, _AVRO, _ORC = b"PAR1", b"Obj\x01", b"ORC"
_ENCRYPTED = (b"PARE", b"AGS1")
_HINT = "rewrite the table's position deletes as Parquet, then hand its history over; nothing was changed"


def read_positions(data: bytes) -> NamingFile:
    """Returns the file, whose format its first bytes tell. Raises UnsupportedFormat for ORC and for what is encrypted,
    Damaged for anything else.
    """
    if data.startswith(_PARQUET):
        return NamingFile(partial(_written_parquet, data))
    if data.startswith(_AVRO):
        return NamingFile(partial(_written_avro, data))
    if data.startswith(_ORC):
        raise UnsupportedFormat("its paths cannot be rewritten in ORC", hint=_HINT)
    if data.startswith(_ENCRYPTED):
        raise UnsupportedFormat("it is encrypted", hint="without the keys its paths cannot be rewritten")
    raise Damaged("it is neither Parquet nor Avro nor ORC")


def _written_parquet(data: bytes, paths: MovedPaths, _: Sizes) -> bytes:
    moved = relocated_parquet(data, paths)
    paths.refuse_disorder()
    return moved


def _written_avro(data: bytes, paths: MovedPaths, _: Sizes) -> bytes:
    moved = splice(data, {_avro_column(data): paths.of_encoded})
    paths.refuse_disorder()
    return moved


def _avro_column(data: bytes) -> str:
    """Returns the name of the column of paths: the one with its id and, in a file without ids, the one so called."""
    match read_header(data).schema:
        case {"type": "record", "fields": [*fields]}:
            ids = {each.get("field-id"): each.get("name") for each in fields if isinstance(each, dict)}
            name = ids.get(PATH_ID, PATH_NAME)
            if isinstance(name, str) and name in ids.values():
                return name
    raise Damaged("it has no column of paths")
