"""Random Avro schemas with values for them, and what a projection of those values must be."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import strategies as st

from .containers import PACK, block, header

Values = st.SearchStrategy[Any]

PLAIN: dict[str, tuple[Values, pa.DataType]] = {
    "boolean": (st.booleans(), pa.bool_()),
    "int": (st.integers(-(2**31), 2**31 - 1), pa.int32()),
    "long": (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "float": (st.floats(allow_nan=False, width=32), pa.float32()),
    "double": (st.floats(allow_nan=False), pa.float64()),
    "bytes": (st.binary(max_size=20), pa.binary()),
    "string": (st.text(st.characters(exclude_categories=["Cs"]), max_size=12), pa.string()),
}


@dataclass
class Schemas:
    """Builds schemas top down and remembers named types and the paths of leaves that can be projected."""

    draw: Any
    named: list[tuple[str, Values]] = field(default_factory=list)
    leaves: dict[str, pa.DataType] = field(default_factory=dict)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def type(self, depth: int, path: str | None) -> tuple[Any, Values]:
        """A type and its values. `path` is where a projection could find it, None under arrays, maps and unions."""
        kinds = ["plain", "plain", "null", "enum", "fixed", "optional", "named"]
        if depth:
            kinds += ["record", "record", "array", "map", "union", "list"]
        kind = self.draw(st.sampled_from(kinds))
        return getattr(self, f"_{kind}")(depth - 1, path)  # type: ignore[no-any-return]

    def _leaf(self, path: str | None, kind: pa.DataType) -> None:
        if path is not None:
            self.leaves[path] = kind

    def _plain(self, depth: int, path: str | None) -> tuple[Any, Values]:
        kind = self.draw(st.sampled_from(sorted(PLAIN)))
        self._leaf(path, PLAIN[kind][1])
        return self.draw(st.sampled_from([kind, {"type": kind}])), PLAIN[kind][0]

    def _null(self, depth: int, path: str | None) -> tuple[Any, Values]:
        return "null", st.none()

    def _enum(self, depth: int, path: str | None) -> tuple[Any, Values]:
        self._leaf(path, pa.string())
        symbols = ["A", "B", "LONGER"]
        schema = {"type": "enum", "name": self.name(), "symbols": symbols}
        self.named.append((schema["name"], st.sampled_from(symbols)))
        return schema, st.sampled_from(symbols)

    def _fixed(self, depth: int, path: str | None) -> tuple[Any, Values]:
        self._leaf(path, pa.binary())
        size = self.draw(st.integers(1, 9))
        schema = {"type": "fixed", "name": self.name(), "size": size}
        values = st.binary(min_size=size, max_size=size)
        self.named.append((schema["name"], values))
        return schema, values

    def _named(self, depth: int, path: str | None) -> tuple[Any, Values]:
        return self.draw(st.sampled_from(self.named)) if self.named else ("long", PLAIN["long"][0])

    def _optional(self, depth: int, path: str | None) -> tuple[Any, Values]:
        schema, values = self.type(max(depth, 0), path)
        if schema == "null" or isinstance(schema, list):
            return schema, values
        branches = self.draw(st.permutations(["null", schema]))
        return list(branches), st.none() | values

    def _record(self, depth: int, path: str | None) -> tuple[Any, Values]:
        name, fields, values = self.name(), [], {}
        for number in range(self.draw(st.integers(0, 4))):
            below = f"f{number}" if path == "" else None if path is None else f"{path}.f{number}"
            schema, each = self.type(depth, below)
            fields.append({"name": f"f{number}", "type": schema})
            values[f"f{number}"] = each
        self.named.append((name, st.fixed_dictionaries(values)))
        return {"type": "record", "name": name, "fields": fields}, st.fixed_dictionaries(values)

    def _array(self, depth: int, path: str | None) -> tuple[Any, Values]:
        schema, values = self.type(depth, None)
        return {"type": "array", "items": schema}, st.lists(values, max_size=4)

    def _map(self, depth: int, path: str | None) -> tuple[Any, Values]:
        schema, values = self.type(depth, None)
        return {"type": "map", "values": schema}, st.dictionaries(st.text("abc", max_size=3), values, max_size=4)

    def _union(self, depth: int, path: str | None) -> tuple[Any, Values]:
        schema, values = self._record(depth, None)
        tagged = values.map(lambda value: (schema["name"], value))
        branches = {"null": st.none(), "string": PLAIN["string"][0], "long": PLAIN["long"][0]}
        chosen = self.draw(st.permutations(sorted(branches)))[: self.draw(st.integers(1, 3))]
        return [*chosen, schema], st.one_of(*(branches[each] for each in chosen), tagged)

    def _list(self, depth: int, path: str | None) -> tuple[Any, Values]:
        """A record that holds itself: one value and what comes after it."""
        name = self.name()
        inner, values = self.type(depth, f"{path}.value" if path else None)
        fields = [{"name": "value", "type": inner}, {"name": "next", "type": ["null", name]}]

        def chain(items: list[Any]) -> Any:
            linked = None
            for item in items:
                linked = {"value": item, "next": linked}
            return linked

        return {"type": "record", "name": name, "fields": fields}, st.lists(values, min_size=1, max_size=4).map(chain)


@dataclass(frozen=True)
class Sample:
    """A file, what may be asked of it and its rows as fastavro reads them."""

    data: bytes
    leaves: dict[str, pa.DataType]
    rows: list[Any]
    codec: str

    def column(self, path: str) -> list[Any]:
        """The values of a leaf, None where anything on the way is null."""
        return [_at(row, path.split(".")) for row in self.rows]


def _at(value: Any, path: list[str]) -> Any:
    for name in path:
        value = None if value is None else value[name]
    return value


@st.composite
def samples(draw: Any) -> Sample:
    """Files of any schema, codec and block size."""
    builder = Schemas(draw)
    schema, values = builder._record(3, "")
    rows = draw(st.lists(values, max_size=8))
    plain = _plain_blocks(schema, rows, draw(st.sampled_from([1, 40, 100_000])))
    codec = draw(st.sampled_from(sorted(PACK)))
    data = header(schema, codec) + b"".join(block(count, PACK[codec](body)) for count, body in plain)
    return Sample(data, builder.leaves, list(fastavro.reader(io.BytesIO(data))), codec)


def _plain_blocks(schema: Any, rows: list[Any], interval: int) -> list[tuple[int, bytes]]:
    """The rows as fastavro encodes them, cut into blocks."""
    out = io.BytesIO()
    fastavro.writer(out, schema, rows, sync_interval=interval)
    return [(each.num_records, each.bytes_.getvalue()) for each in fastavro.block_reader(io.BytesIO(out.getvalue()))]
