"""Who needs one file: by climbing from it, over the units that name it, to the roots that name those."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from firnline.model.files import File
from firnline.model.locations import identity
from firnline.model.portions import portions
from firnline.ports.expanding import Expand, Expanded, unit_of
from firnline.ports.progress import Progress

_THREADS = 8


class Needer(NamedTuple):
    """An owner among those of a format's roots. `run` took it out and may put it back; none where the table has it.
    `pointer` leads readers to it, whether the table has it or not.
    """

    owner: str
    run: str = ""
    pointer: str = ""


def who_needs(target: str, roots: Iterable[tuple[Needer, File]], expand: Expand, progress: Progress) -> set[Needer]:
    """Returns who reaches the file with this identity. Opens each unit once."""
    needers: dict[str, set[Needer]] = {}
    due: dict[str, File] = {}
    for needer, file in roots:
        name = identity(file.key)
        needers.setdefault(name, set()).add(needer)
        if file.opens and (name not in due or expand.order.index(due[name].kind) < expand.order.index(file.kind)):
            due[name] = file  # the earlier of two kinds may be gone, and the other one not
    parents, said = _parents(due, target, expand, progress)
    totals: Counter[tuple[Needer, int]] = Counter(dict.fromkeys(((each, 0) for each in needers.get(target, ())), 1))
    for unit, fold, op in said:
        reaching = {each for name in _climb(unit, parents) for each in needers.get(name, ())}
        totals.update({(needer, fold): op for needer in reaching})
    return {needer for (needer, _), total in totals.items() if total > 0}


def _parents(
    due: dict[str, File], target: str, expand: Expand, progress: Progress
) -> tuple[dict[str, set[str]], list[tuple[str, int, int]]]:
    """Returns, for every unit, the units that name it; and what units say of the target. Opens each unit once."""
    parents: dict[str, set[str]] = {}
    said: list[tuple[str, int, int]] = []
    for kind in expand.order:
        opened = [file for file in due.values() if file.kind is kind]
        count = 0
        with ThreadPoolExecutor(_THREADS) as pool:
            for portion in portions(opened):
                for parent, row in _named(portion, expand(portion, pool.map), target):
                    child = row["identity"]
                    parents.setdefault(child, set()).add(parent)
                    if row["opens"]:
                        due.setdefault(child, unit_of(row))
                    if child == target:
                        said.append((parent, row.get("fold", 0), row.get("op", 1)))
                count += len(portion)
                progress.step(f"opening {kind}s", count, len(opened))
    return parents, said


def _named(units: list[File], found: Expanded, target: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields what matters of what units name: deeper units, and the target itself; each after who names it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = found.rows.append_column("of", pa.array(found.of))
    wanted = rows.filter(pc.or_(rows.column("opens"), pc.equal(rows.column("identity"), target)))
    names = [identity(unit.key) for unit in units]
    for row in wanted.to_pylist():
        if row["identity"] != names[row["of"]]:
            yield names[row["of"]], row


def _climb(target: str, parents: dict[str, set[str]]) -> set[str]:
    seen = {target}
    todo = [target]
    while todo:
        name = todo.pop()
        for parent in parents.get(name, ()):
            if parent not in seen:
                seen.add(parent)
                todo.append(parent)
    return seen
