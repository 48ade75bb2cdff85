"""Rows out of manifest lists, manifests and index manifests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import UnsupportedFormat
from firnline.formats.columns import ROW_SCHEMA, first_dotted, identities
from firnline.formats.paimon.checks import (
    names_of,
    ops_of,
    plain_name,
    refuse_unknown_version,
)
from firnline.formats.paimon.columns import columns_of
from firnline.formats.paimon.entry_places import (
    ENTRY_COLUMNS,
    Extras,
    Numbers,
    Places,
    extras_in,
    folds_of,
    or_external,
    owners_of,
)
from firnline.formats.paimon.layout import Layout
from firnline.formats.paimon.packed import is_packed, unpacked
from firnline.formats.required import sizes_of
from firnline.model.files import FileKind

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
}
_LIST_VERSION, _ENTRY_VERSION, _INDEX_VERSION = 2, 2, 1


def list_rows(contents: Sequence[bytes], layout: Layout) -> Named:
    """Returns the manifests that lists name, each as a unit to open, and the files that come beside one."""
    found, of = columns_of(contents, _LIST_COLUMNS)
    refuse_unknown_version(found, _LIST_VERSION, "a manifest list")
    keys = _below(layout.manifest_folder, names_of(found, "_FILE_NAME"))
    manifests = _rows(keys, sizes_of(found, "_FILE_SIZE"), pa.repeat(FileKind.MANIFEST.value, len(found)), opens=True)
    extras = extras_in(found.column("_EXTRA_FILES"))
    if not extras:
        return manifests, of
    named = [plain_name(name) for each in extras.values() for name in each]
    beside = pa.array([f"{layout.manifest_folder}/{name}" for name in named], pa.string())
    untold, kinds = pa.nulls(len(named), pa.int64()), pa.repeat(FileKind.INDEX.value, len(named))
    sidecars = _rows(beside, untold, kinds, opens=False)
    return pa.concat_batches([manifests, sidecars]), np.concatenate([of, of[owners_of(extras)]])


def manifest_rows(contents: Sequence[bytes], layout: Layout) -> Named:
    """Returns every entry: an added file counts for it, a deleted one against it, in the same fold."""
    found, of = columns_of(contents, ENTRY_COLUMNS)
    refuse_unknown_version(found, _ENTRY_VERSION, "a manifest entry")
    names, op = names_of(found, "_FILE._FILE_NAME"), ops_of(found)
    places = Places(found, layout)
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
    beside = _beside(keys, extras, kinds, folds, op)
    return pa.concat_batches([files, beside]), np.concatenate([of, of[owners_of(extras)]])


def index_rows(contents: Sequence[bytes], layout: Layout) -> Named:
    """Returns the files that index manifests list. Each is whole: an entry that says deleted is no entry."""
    found, of = columns_of(contents, _INDEX_COLUMNS)
    refuse_unknown_version(found, _INDEX_VERSION, "an index manifest entry")
    listed = pc.equal(ops_of(found), 1)
    found, of = found.filter(listed), of[listed.to_numpy(zero_copy_only=False)]
    names = names_of(found, "_FILE_NAME")
    if layout.index_beside_data:
        keys = pc.binary_join_element_wise(Places(found, layout).folders(), names, "/")
    else:
        keys = _below(layout.index_folder, names)
    keys = or_external(keys, found, "_EXTERNAL_PATH")
    vectors = pc.fill_null(pc.equal(found.column("_INDEX_TYPE"), "DELETION_VECTORS"), False)
    kinds = pc.if_else(vectors, FileKind.DELETION_VECTORS.value, FileKind.INDEX.value)
    return _rows(keys, sizes_of(found, "_FILE_SIZE"), kinds, opens=False), of


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
