"""The loops over untrusted bytes, once, in the Python that numba can compile as well.

Every function runs as it stands (buffers are `bytes`, tables are lists) and compiled (both are bare addresses, so their
lengths are told, and tables of two dimensions lie row by row). Three rules make the two equal: no value leaves the
range of a signed 64-bit integer, no byte is read before its position was compared with the end, and nothing raises: a
negative position is a fault (see `FAULTS`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

# One instruction is three numbers: opcode, a, b. A UNION is followed by its table of branch addresses.
SIZE: Final = 3
RETURN: Final = 0  # to the caller, or the record is complete
UNION: Final = 1  # a branches: go to the address that the table holds for the branch read
SKIP_VARINTS: Final = 2  # a of them
SKIP_BYTES: Final = 3  # one length and as many bytes
SKIP_FIXED: Final = 4  # a bytes
SKIP_FLAT: Final = 5  # a whole array or map whose items are a varints and then b lengths with their bytes
TAKE_VARINT: Final = 6  # into column a
TAKE_BYTES: Final = 7  # place and length into column a
TAKE_FIXED: Final = 8  # place of b bytes into column a
ENTER: Final = 9  # an array or map: its LOOP is at address a
LOOP: Final = 10  # back to address a while there are items
JUMP: Final = 11  # to address a
CALL: Final = 12  # the program of a named record at address a
CLOSE: Final = 13  # here ends a value that column a takes as it is encoded, from the place that it has

TRUNCATED: Final = -1
OVERLONG: Final = -2
NEGATIVE: Final = -3
BAD_BRANCH: Final = -4
ABSURD_COUNT: Final = -5
TOO_DEEP: Final = -6
LEFT_OVER: Final = -7
BAD_SYNC: Final = -8
BAD_MAGIC: Final = -9
FAULTS: Final = {
    TRUNCATED: "a value runs past the end of its block",
    OVERLONG: "a number is longer than 64 bits",
    NEGATIVE: "a length or count is negative",
    BAD_BRANCH: "a union names a branch that it does not have",
    ABSURD_COUNT: "an array claims more items than the file could hold",
    TOO_DEEP: "records are nested too deeply",
    LEFT_OVER: "a block has bytes after its last record",
    BAD_SYNC: "a block does not end with the file's sync marker",
    BAD_MAGIC: "not an Avro file: it does not start with Obj\\x01",
}

MAX_DEPTH: Final = 512  # records and arrays within one another, at run time
SYNC_BYTES: Final = 16
MAGIC: Final = (0x4F, 0x62, 0x6A, 0x01)  # "Obj" and the version
SCHEMA_NAME: Final = 11  # the length of "avro.schema"
CODEC_NAME: Final = 10  # the length of "avro.codec"
# What is known of a header: start and end of the schema, start and end of the codec (-1: not there), and whether a name
# has bytes beyond ASCII, which must be UTF-8.
PLACES: Final = 5
# Items without width (nulls, empty records) cost no bytes, so bytes cannot bound their number; this does.
SPARE_ITEMS: Final = 1 << 24


def read_varint(buf: bytes, pos: int, end: int) -> tuple[int, int]:
    """A zigzag number and the position after it. The sign is set aside first: the rest fits 63 bits."""
    if pos >= end:
        return 0, TRUNCATED
    byte = buf[pos]
    sign = -(byte & 1)
    magnitude = (byte >> 1) & 0x3F
    shift = 6
    while byte >= 0x80:
        pos += 1
        if pos >= end:
            return 0, TRUNCATED
        byte = buf[pos]
        if shift == 62 and byte > 1:
            return 0, OVERLONG
        magnitude |= (byte & 0x7F) << shift
        shift += 7
    return magnitude ^ sign, pos + 1


def read_size(buf: bytes, pos: int, end: int) -> tuple[int, int]:
    """A length, known to lie within what is left, and the position after it; a fault has length 0."""
    size, pos = read_varint(buf, pos, end)
    if pos >= 0 and size < 0:
        return 0, NEGATIVE
    if pos >= 0 and size > end - pos:
        return 0, TRUNCATED
    return size, pos


def read_count(buf: bytes, pos: int, end: int) -> tuple[int, int]:
    """The number of items that follow (0: the array is over) and their position.

    A negative count comes with the size of its items in bytes; such a run is passed over at once.
    """
    count, pos = read_varint(buf, pos, end)
    while pos >= 0 and count < 0:
        size, pos = read_size(buf, pos, end)
        if pos >= 0:
            count, pos = read_varint(buf, pos + size, end)
    if pos >= 0 and count - SPARE_ITEMS > end - pos:
        return 0, ABSURD_COUNT
    return count, pos


def skip_varints(buf: bytes, pos: int, end: int, count: int) -> int:
    """The position after `count` numbers. Without a branch for their length, which is hard to predict."""
    run = 0
    while count > 0:
        if pos >= end:
            return TRUNCATED
        more = buf[pos] >> 7
        pos += 1
        run = (run + 1) * more
        if run == 10:
            return OVERLONG
        count -= 1 - more
    return pos


def skip_flat(buf: bytes, pos: int, end: int, varints: int, strings: int) -> int:
    """The position after an array of plain items. Items without width are counted, never walked."""
    while True:
        count, pos = read_count(buf, pos, end)
        if pos < 0 or count == 0:
            return pos
        if strings == 0:
            pos = skip_varints(buf, pos, end, count * varints)
            if pos < 0:
                return pos
            continue
        for _ in range(count):
            pos = skip_varints(buf, pos, end, varints)
            if pos < 0:
                return pos
            for _ in range(strings):
                size, pos = read_size(buf, pos, end)
                if pos < 0:
                    return pos
                pos += size


def run_record(  # noqa: PLR0912, PLR0915 - one branch for each opcode, in one place, is what makes it fast
    buf: bytes, pos: int, end: int, code: Sequence[int], stack: Any, row: int, rows: int, value: Any, length: Any
) -> int:
    """The position after one record, its wanted leaves written to `value` and `length` at `row` of `rows`."""
    pc = 0
    depth = 0
    while pos >= 0:
        op = code[pc]
        a = code[pc + 1]
        b = code[pc + 2]
        pc += SIZE
        if op == UNION:
            branch, pos = read_varint(buf, pos, end)
            if branch < 0 or branch >= a:
                return BAD_BRANCH
            pc = code[pc + branch]
        elif op == SKIP_FLAT:
            pos = skip_flat(buf, pos, end, a, b)
        elif op == SKIP_VARINTS:
            pos = skip_varints(buf, pos, end, a)
        elif op == SKIP_BYTES:
            size, pos = read_size(buf, pos, end)
            pos += size
        elif op == TAKE_VARINT:
            value[a * rows + row], pos = read_varint(buf, pos, end)
            length[a * rows + row] = 0
        elif op == TAKE_BYTES:
            size, pos = read_size(buf, pos, end)
            value[a * rows + row] = pos
            length[a * rows + row] = size
            pos += size
        elif op == SKIP_FIXED:
            pos = pos + a if a <= end - pos else TRUNCATED
        elif op == TAKE_FIXED:
            value[a * rows + row] = pos
            length[a * rows + row] = b
            pos = pos + b if b <= end - pos else TRUNCATED
        elif op == LOOP:
            count = stack[depth - 1] - 1
            if count == 0:
                count, pos = read_count(buf, pos, end)
            stack[depth - 1] = count
            if count > 0:
                pc = a
            else:
                depth -= 1
        elif op == RETURN:
            if depth == 0:
                return pos
            depth -= 1
            pc = stack[depth]
        elif op == CLOSE:
            length[a * rows + row] = pos - value[a * rows + row]
        else:
            if op != JUMP:  # ENTER and CALL leave a number for the instruction that ends them
                if depth == MAX_DEPTH:
                    return TOO_DEEP
                stack[depth] = 1 if op == ENTER else pc
                depth += 1
            pc = a
    return pos


def run_blocks(
    buf: bytes,
    blocks: int,
    starts: Sequence[int],
    ends: Sequence[int],
    counts: Sequence[int],
    code: Sequence[int],
    stack: Any,
    rows: int,
    value: Any,
    length: Any,
    told: Any,
) -> int:
    """A fault or 0; `told`: the number of records read before it. Each block must be used up exactly."""
    row = 0
    for block in range(blocks):
        pos = starts[block]
        end = ends[block]
        for _ in range(counts[block]):
            told[0] = row
            pos = run_record(buf, pos, end, code, stack, row, rows, value, length)
            if pos < 0:
                return pos
            row += 1
        told[0] = row
        if pos != end:
            return LEFT_OVER
    return 0


def skim_entry(buf: bytes, pos: int, end: int, names: bytes, places: Any, file: int) -> int:
    """The position after one entry of a header. What `places` tells of the file: see PLACES."""
    size, pos = read_size(buf, pos, end)
    if pos < 0:
        return pos
    wanted = (size == SCHEMA_NAME) + 2 * (size == CODEC_NAME)
    start = SCHEMA_NAME if wanted == 2 else 0
    for i in range(size):
        if buf[pos + i] >= 0x80:
            places[file * PLACES + 4] = 1
        if wanted and buf[pos + i] != names[start + i]:
            wanted = 0
    size, pos = read_size(buf, pos + size, end)
    if wanted:  # a name that is given twice counts as it is given last
        places[file * PLACES + 2 * wanted - 2] = pos
        places[file * PLACES + 2 * wanted - 1] = pos + size
    return pos if pos < 0 else pos + size


def skim(buf: bytes, pos: int, end: int, names: bytes, places: Any, file: int) -> int:
    """Where the file's sync marker starts. `names` are those of the schema and the codec, end to end."""
    for i in range(len(MAGIC)):
        if pos + i >= end or buf[pos + i] != MAGIC[i]:
            return BAD_MAGIC
    count, pos = read_varint(buf, pos + len(MAGIC), end)
    while pos >= 0 and count != 0:
        if count < 0:
            if count < pos - end:  # an entry has two bytes at least; and the least number has no opposite
                return TRUNCATED
            count = -count
            _, pos = read_varint(buf, pos, end)
        for _ in range(count):
            if pos < 0:
                return pos
            pos = skim_entry(buf, pos, end, names, places, file)
        if pos >= 0:
            count, pos = read_varint(buf, pos, end)
    if pos >= 0 and pos + SYNC_BYTES > end:
        return TRUNCATED
    return pos


def frame(buf: bytes, pos: int, end: int, block: int, starts: Any, ends: Any, counts: Any) -> tuple[int, int]:
    """A fault or 0, and the number of blocks found so far: where each one lies and how many records it claims.

    `pos` is where the sync marker of the header starts; the blocks follow it.
    """
    sync = pos
    pos += SYNC_BYTES
    while pos < end:
        count, pos = read_varint(buf, pos, end)
        if pos >= 0 and count < 0:
            return NEGATIVE, block
        if pos >= 0:
            size, pos = read_size(buf, pos, end)
        if pos < 0:
            return pos, block
        if size > end - pos - SYNC_BYTES:
            return TRUNCATED, block
        counts[block] = count
        starts[block] = pos
        pos += size
        ends[block] = pos
        for i in range(SYNC_BYTES):
            if buf[pos + i] != buf[sync + i]:
                return BAD_SYNC, block
        pos += SYNC_BYTES
        block += 1
    return 0, block


def frame_files(
    buf: bytes,
    files: int,
    bounds: Sequence[int],
    names: bytes,
    places: Any,
    firsts: Any,
    starts: Any,
    ends: Any,
    counts: Any,
    told: Any,
) -> int:
    """A fault or 0; `told`: the number of blocks found in all files. `firsts`: the number of each file's first."""
    block = 0
    fault = 0
    for file in range(files):
        firsts[file] = block
        pos = skim(buf, bounds[file], bounds[file + 1], names, places, file)
        fault = pos
        if pos >= 0:
            fault, block = frame(buf, pos, bounds[file + 1], block, starts, ends, counts)
        if fault:
            break
    told[0] = block
    return fault


def copy(buf: bytes, place: int, size: int, out: Any, done: int) -> None:
    out[done : done + size] = buf[place : place + size]


def copy_bytes(buf: bytes, place: int, size: int, out: Any, done: int) -> None:
    """`copy` for bare addresses, which have no slices."""
    for i in range(size):
        out[done + i] = buf[place + i]


def gather(buf: bytes, rows: int, places: Sequence[int], lengths: Sequence[int], out: Any) -> int:
    """How many bytes were laid end to end in `out`; rows of length -1 (null) add none."""
    done = 0
    for row in range(rows):
        size = lengths[row]
        if size > 0:
            copy(buf, places[row], size, out, done)
            done += size
    return done


# Callees come first: that is the order in which they can be compiled.
LOOPS: Final = (read_varint, read_size, read_count, skip_varints, skip_flat, run_record, skim_entry, skim, frame)
ENTRIES: Final = (frame_files, run_blocks, gather)
