"""Rows out of manifest lists, manifests and index manifests, in whichever format they are written; what an entry must
say and does not stops the run.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import UnreadableMetadata, UnsupportedFormat
from firnline.formats.avro import CorruptAvro, decode_many
from firnline.formats.avro.gather import encoded
from firnline.formats.columns import ROW_SCHEMA, first_dotted, identities
from firnline.formats.damage import REPAIR
from firnline.formats.opening import required, sizes_of
from firnline.formats.paimon.walking.layout import (
    ENTRY_COLUMNS,
    EntryFolders,
    Extras,
    Layout,
    Numbers,
    extras_in,
    folds_of,
    is_packed,
    or_external,
    owners_of,
    unpacked,
)
from firnline.model.files import FileKind

_ADD, _DELETE = 0, 1


def ops_of(found: pa.RecordBatch) -> pa.Array:
    """Returns +1 for an entry that adds its file, -1 for one that takes it away."""
    numbers = required(found, "_KIND").to_numpy()
    if np.any((numbers != _ADD) & (numbers != _DELETE)):
        raise UnsupportedFormat("an entry is neither added nor deleted", hint="a newer version of firnline may know it")
    return pa.array(np.where(numbers == _ADD, 1, -1).astype(np.int8))


def names_of(found: pa.RecordBatch, column: str) -> pa.Array:
    """Returns the names; one with a slash would name a file somewhere else."""
    names = required(found, column)
    if pc.any(pc.or_(pc.match_substring(names, "/"), pc.equal(names, ""))).as_py():
        raise UnreadableMetadata(f"an entry's {column} is not the name of a file", hint=REPAIR)
    return names


def plain_name(name: str) -> str:
    if not name or "/" in name:
        raise UnreadableMetadata(f"{name!r} is not the name of a file", hint=REPAIR)
    return name


def refuse_unknown_version(found: pa.RecordBatch, known: int, what: str) -> None:
    strange = set(pc.unique(required(found, "_VERSION")).to_pylist()) - {known}
    if strange:
        raise UnsupportedFormat(f"{what} has the version {strange.pop()}", hint="nothing was changed")


_PARQUET, _ORC = b"PAR1", b"ORC"


def columns_of(contents: Sequence[bytes], columns: Mapping[str, pa.DataType]) -> tuple[pa.RecordBatch, Numbers]:
    """Returns the rows of some files, and the number of the file that each comes from, as `decode_many` does."""
    if not any(data.startswith((_PARQUET, _ORC)) for data in contents):
        return decode_many(contents, columns)
    read = [_columns_of(data, columns) for data in contents]
    numbers = [np.full(len(rows), place, dtype=np.int64) for place, rows in enumerate(read)]
    return pa.concat_batches(read), np.concatenate(numbers)


def _columns_of(data: bytes, columns: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    if not data.startswith((_PARQUET, _ORC)):
        return decode_many([data], columns)[0]
    try:
        table = _table(data)
        found = [_column(table, name, kind) for name, kind in columns.items()]
    except (pa.ArrowException, OSError) as damage:
        raise CorruptAvro(str(damage)) from damage
    return pa.record_batch(found, names=list(columns))


def _table(data: bytes) -> pa.Table:
    if data.startswith(_PARQUET):
        import pyarrow.parquet as pq

        return pq.read_table(io.BytesIO(data))
    from pyarrow import orc

    return orc.read_table(io.BytesIO(data))


def _column(table: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    """Returns a column by its dotted name, null where the file has no such field; texts of a list as Avro has them."""
    first, *inner = name.split(".")
    if first not in table.column_names:
        return pa.nulls(len(table), kind)
    values = table.column(first).combine_chunks()
    for field in inner:
        if values.type.get_field_index(field) < 0:
            return pa.nulls(len(table), kind)
        values = pc.struct_field(values, field)
    if pa.types.is_list(values.type):
        return pa.array([encoded(each or ()) for each in values.to_pylist()], kind)
    return values.cast(kind)


ENTRY_SCHEMA = pa.schema([*ROW_SCHEMA, pa.field("fold", pa.int64(), False), pa.field("op", pa.int8(), False)])
"""Rows with what they fold by, and whether they add (+1) or take away (-1)."""

Named = tuple[pa.RecordBatch, Numbers]
"""Rows, and the number of the unit that names each."""

_LIST_COLUMNS = {
    "_VERSION": pa.int64(), "_FILE_NAME": pa.string(), "_FILE_SIZE": pa.int64(), "_EXTRA_FILES": pa.binary(),
}  # fmt: skip
_INDEX_COLUMNS = {
    "_VERSION": pa.int64(),
    "_KIND": pa.int64(),
    "_PARTITION": pa.binary(),
    "_BUCKET": pa.int64(),
    "_INDEX_TYPE": pa.string(),
    "_FILE_NAME": pa.string(),
    "_FILE_SIZE": pa.int64(),
    "_EXTERNAL_PATH": pa.string(),
    "_GLOBAL_INDEX._INDEX_FIELD_ID": pa.int64(),
}
_LIST_VERSION, _ENTRY_VERSION, _INDEX_VERSION = 2, 2, 1


def list_rows(contents: Sequence[bytes], folder: str) -> Named:
    """Returns the manifests that lists name, in this folder, each as a unit to open, and the files beside one."""
    found, of = columns_of(contents, _LIST_COLUMNS)
    refuse_unknown_version(found, _LIST_VERSION, "a manifest list")
    keys = _below(folder, names_of(found, "_FILE_NAME"))
    manifests = _rows(keys, sizes_of(found, "_FILE_SIZE"), pa.repeat(FileKind.MANIFEST.value, len(found)), opens=True)
    extras = extras_in(found.column("_EXTRA_FILES"))
    if not extras:
        return manifests, of
    named = [plain_name(name) for each in extras.values() for name in each]
    side_objects = pa.array([f"{folder}/{name}" for name in named], pa.string())
    untold, kinds = pa.nulls(len(named), pa.int64()), pa.repeat(FileKind.INDEX.value, len(named))
    sidecars = _rows(side_objects, untold, kinds, opens=False)
    return pa.concat_batches([manifests, sidecars]), np.concatenate([of, of[owners_of(extras)]])


def manifest_entries(contents: Sequence[bytes]) -> Named:
    """Returns the entries of manifests as they stand there."""
    found, of = columns_of(contents, ENTRY_COLUMNS)
    refuse_unknown_version(found, _ENTRY_VERSION, "a manifest entry")
    return found, of


def manifest_rows(found: pa.RecordBatch, of: Numbers, layout: Layout) -> Named:
    """Returns every entry's file: an added one counts for it, a deleted one against it, in the same fold."""
    names, op = names_of(found, "_FILE._FILE_NAME"), ops_of(found)
    places = EntryFolders(found, layout)
    keys = or_external(pc.binary_join_element_wise(places.folders(), names, "/"), found, "_FILE._EXTERNAL_PATH")
    extras = extras_in(found.column("_FILE._EXTRA_FILES"))
    folds = folds_of(found, places, extras)
    packed = is_packed(names)
    changes = pc.or_(pc.starts_with(names, layout.changelog_prefix), packed)
    kinds = pc.if_else(changes, FileKind.CHANGELOG.value, FileKind.DATA.value)
    sizes = pc.if_else(packed, pa.scalar(None, pa.int64()), sizes_of(found, "_FILE._FILE_SIZE"))
    files = _rows(unpacked(keys), sizes, kinds, opens=False, folds=folds, op=op)
    if not extras:
        return files, of
    side_objects = _beside(keys, extras, kinds, folds, op)
    return pa.concat_batches([files, side_objects]), np.concatenate([of, of[owners_of(extras)]])


def index_entries(contents: Sequence[bytes]) -> Named:
    """Returns the entries of index manifests. Each manifest is whole: an entry that says deleted is no entry."""
    found, of = columns_of(contents, _INDEX_COLUMNS)
    refuse_unknown_version(found, _INDEX_VERSION, "an index manifest entry")
    listed = pc.equal(ops_of(found), 1)
    return found.filter(listed), of[listed.to_numpy(zero_copy_only=False)]


def index_rows(found: pa.RecordBatch, of: Numbers, layout: Layout) -> Named:
    """Returns the files that the entries of index manifests name."""
    names = names_of(found, "_FILE_NAME")
    keys = _below(layout.index_folder, names)
    if layout.index_beside_data:
        beside = pc.binary_join_element_wise(EntryFolders(found, layout).folders(), names, "/")
        keys = pc.if_else(_is_global(found), keys, beside)
    keys = or_external(keys, found, "_EXTERNAL_PATH")
    vectors = pc.fill_null(pc.equal(found.column("_INDEX_TYPE"), "DELETION_VECTORS"), False)
    kinds = pc.if_else(vectors, FileKind.DELETION_VECTORS.value, FileKind.INDEX.value)
    return _rows(keys, sizes_of(found, "_FILE_SIZE"), kinds, opens=False), of


def _is_global(found: pa.RecordBatch) -> pa.Array:
    """Tells of each index whether it is one over the whole table: no bucket has such a file, whatever options say."""
    return found.column("_GLOBAL_INDEX._INDEX_FIELD_ID").is_valid()


def _beside(keys: pa.Array, extras: Extras, kinds: pa.Array, folds: Numbers, op: pa.Array) -> pa.RecordBatch:
    """Returns the extra files, in the folder of their file and with its fate."""
    chosen = pa.array(owners_of(extras), pa.int64())
    owners, names = keys.take(chosen).to_pylist(), [name for each in extras.values() for name in each]
    found = [f"{owner.rpartition('/')[0]}/{plain_name(name)}" for owner, name in zip(owners, names, strict=True)]
    return _rows(
        pa.array(found, pa.string()),
        pa.nulls(len(found), pa.int64()),
        kinds.take(chosen),
        opens=False,
        folds=folds[chosen.to_numpy()],
        op=op.take(chosen),
    )


def _rows(
    keys: pa.Array,
    sizes: pa.Array,
    kinds: pa.Array,
    *,
    opens: bool,
    folds: Numbers | None = None,
    op: pa.Array | None = None,
) -> pa.RecordBatch:
    strange = first_dotted(keys)
    if strange is not None:
        raise UnsupportedFormat(f"the path {strange!r} has a segment '.' or '..'", hint="nothing was changed")
    count = len(keys)
    folded = pa.repeat(pa.scalar(0, pa.int64()), count) if folds is None else pa.array(folds)
    op = pa.repeat(pa.scalar(1, pa.int8()), count) if op is None else op
    columns = [identities(keys), keys, sizes, kinds, pa.repeat(pa.scalar(opens), count), folded, op]
    return pa.record_batch(columns, schema=ENTRY_SCHEMA)


def _below(folder: str, names: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pa.repeat(folder, len(names)), names, "/")
