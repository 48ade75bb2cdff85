"""Metadata files that fall off a table's log with a commit: they go with the files of its run."""

from __future__ import annotations

from contextlib import suppress

from firnline.errors import AlreadyExists, UnreadableMetadata
from firnline.journal.parts import CHANGED, Seals, part_keys, part_prefix, read_part, seal, write_parts
from firnline.journal.runs import Run
from firnline.model.files import FileKind
from firnline.model.locations import identity, within
from firnline.ops.runs.measured import size_of
from firnline.ops.table.context import TableContext
from firnline.ports.formats import State


def list_forgotten(work: TableContext, run: Run, state: State, forgotten: list[str]) -> Seals:
    """Adds metadata files that fell off the table's log to the written list, and returns the parts that were added.

    They go with the rest, after grace. A log may name files of another place, where the table once was: those stay.
    """
    import pyarrow as pa

    own = [key for key in forgotten if any(within(root, key) for root in state.owned)]
    found = [(key, size) for key in own if (size := size_of(work.store, key)) is not None]
    prefix = part_prefix(work.source.format.purge_order.index(FileKind.METADATA))
    if found:
        columns = {
            "identity": [identity(key) for key, _ in found],
            "key": [key for key, _ in found],
            "size": [size for _, size in found],
            "kind": [FileKind.METADATA.value] * len(found),
        }
        with suppress(AlreadyExists):  # the same list, from before a crash
            write_parts(work.store, run.folder.victims, pa.table(columns).to_batches(), prefix)
    planned = run.plan["parts"]["victims"]
    keys = {key.rpartition("/")[2]: key for key in part_keys(work.store, run.folder.victims)}
    late = {name: key for name, key in keys.items() if name.startswith(prefix) and name not in planned}
    return {name: _sealed(work, key, own) for name, key in late.items()}


def _sealed(work: TableContext, key: str, forgotten: list[str]) -> str:
    """Returns the seal of a part that was added. Raises UnreadableMetadata where it names anything but what the commit
    forgot: then it is not ours, and a seal would make it a part of the written list.
    """
    sealed = seal(work.store.get(key))
    if not set(read_part(work.store, key, sealed).column("key").to_pylist()) <= set(forgotten):
        raise UnreadableMetadata(f"{key} names files that no commit of this run forgot", hint=CHANGED)
    return sealed
