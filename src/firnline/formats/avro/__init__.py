"""Reads a few columns of an Avro object container file, fast, and trusts nothing in it.

`decode` compiles the file's own schema to a short program that takes the wanted leaves and skips all else,
runs it in one loop over all blocks, and lays the results into Arrow buffers. `decode_many` does so for many files.
`splicing` puts other values into the places of some, and leaves every other byte of the records alone; `rebuilding`
also leaves records out, or tells them several times.
"""

from firnline.formats.avro.codecs import MAX_BYTES, MAX_ROWS
from firnline.formats.avro.decoding import Decoded, decode, decode_many
from firnline.formats.avro.encoded import encoded_texts
from firnline.formats.avro.faults import CorruptAvro, UnsupportedAvro
from firnline.formats.avro.framing import Header, read_header

__all__ = [
    "MAX_BYTES",
    "MAX_ROWS",
    "CorruptAvro",
    "Decoded",
    "Header",
    "UnsupportedAvro",
    "decode",
    "decode_many",
    "encoded_texts",
    "read_header",
]
