"""The compiled kernel in this process: its object is built once for a machine, kept, and loaded without numba.

Importing numba and letting it load what it has kept takes half a second; LLVM alone takes a twentieth.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from firnline.formats.avro import building, kernel
from firnline.own_files import is_own_folder, own_cache, read_own, write_whole

_DIGEST_BYTES: Final = 32
_MODE: Final = 0o644
_ARRAYS: Final = {"h": np.int32, "q": np.int64}

Entries = dict[str, Callable[..., int]]


def load() -> Entries:
    """Returns the entries of the kernel, compiled. They let other threads run.

    Raises ImportError without LLVM, or without numba where the object has to be built; RuntimeError where they refuse.
    """
    found = kept()
    if found is None:
        found = building.build()
        keep(found)
    return _linked(found)


def kept() -> bytes | None:
    """Returns the object that was built here for this very code, machine and LLVM; None where there is none.

    Anyone who can write it can run code as this user. So it is the work of an author of this very code, and nobody else
    may write to it, nor to the folder that it lies in.
    """
    for path in _paths():
        with suppress(OSError):
            data = read_own(path, _authors()) or b""
            digest, found = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
            if found and sha256(found).digest() == digest:  # half a file must not be run
                return found
    return None


def _authors() -> set[int]:
    """Returns who could change what this process runs anyway."""
    with suppress(OSError):
        return {0, os.geteuid(), Path(kernel.__file__).stat().st_uid}
    return {0, os.geteuid()}


def keep(found: bytes) -> None:
    """Keeps the object for later processes, if there is a place for it. All may read it, whatever the umask: where it
    lies with the package, other users run it too.
    """
    for path in _paths(make=True):
        with suppress(OSError):
            write_whole(path, sha256(found).digest() + found, _MODE)
            return


def _paths(*, make: bool = False) -> Iterator[Path]:
    """Yields where the object may lie: where Python's own compiled files lie, or with this user's caches."""
    name = f"kernel-{_fingerprint()}.o"
    side_objects = Path(kernel.__file__).parent / "__pycache__"
    with suppress(OSError):
        if is_own_folder(side_objects, _authors()):
            yield side_objects / name
    with suppress(OSError):  # such as a home that is nowhere
        folder = own_cache("code")
        if make:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_own_folder(folder):
            yield folder / name


@functools.cache
def _fingerprint() -> str:
    """Tells apart what must not share an object: the code that it is made of and the machine that it is made for."""
    llvm = _llvm()
    machine = [llvm.get_default_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    made_by = [".".join(map(str, llvm.llvm_version_info))]
    told = [each.encode() for each in (*machine, *made_by)]
    return sha256(b"\n".join([*map(_source, (kernel, building)), *told])).hexdigest()[:32]


def _source(module: ModuleType) -> bytes:
    """Returns the bytes of a module's text, as they lie there or in an archive. Reading them as text would load what
    Python takes texts of Python apart with.
    """
    loader: Any = module.__loader__
    return bytes(loader.get_data(module.__file__))


@functools.cache
def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
def _engine() -> Any:
    """What holds the code in memory, for as long as the process lives."""
    llvm = _llvm()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def _linked(found: bytes) -> Entries:
    engine = _engine()
    engine.add_object_file(_llvm().ObjectFileRef.from_data(found))
    engine.finalize_object()
    return {name: _callable(engine, name) for name in building.SIGNATURES}


def _callable(engine: Any, name: str) -> Callable[..., int]:
    """The entry as a function of bytes, arrays and numbers. Arrays of another type or shape are refused, not read."""
    address = engine.get_function_address(building.SYMBOL.format(name))
    if not address:
        raise RuntimeError(f"the object has no {name}")
    kinds = [_argument(letter) for letter in building.SIGNATURES[name]]
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(address)


def _argument(letter: str) -> Any:
    if letter == "N":
        return ctypes.c_int64
    return _Bytes if letter == "b" else np.ctypeslib.ndpointer(_ARRAYS[letter], flags="C_CONTIGUOUS")


class _Bytes:
    """The address of bytes that are read, or of an array of them that is written."""

    @classmethod
    def from_param(cls, value: Any) -> Any:
        return ctypes.c_char_p(value) if isinstance(value, bytes) else _ROOM.from_param(value)


_ROOM: Final = np.ctypeslib.ndpointer(np.uint8, flags="C_CONTIGUOUS")
