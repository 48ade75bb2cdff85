"""The kernel as machine code: compiled by numba, freed from numba's runtime by LLVM, an object of a few kilobytes."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Final

from firnline.formats.avro import kernel

SYMBOL: Final = "firnline_{}"
"""The name of an entry in the object."""

_POINTERS: Final = {"b": "uint8", "h": "int32", "q": "int64"}
SIGNATURES: Final = {"frame_files": "bNqbqqqqqq", "run_blocks": "bNqqqqqNqhq", "gather": "bNqhb"}
"""What each entry takes: N a number, the others the address of bytes, of 32-bit and of 64-bit numbers."""


def build() -> bytes:
    """Returns the object, which needs no symbol of anybody's. Takes seconds. Raises ImportError without numba, and
    RuntimeError where LLVM cannot free the code from numba's runtime: then nobody but numba could run it.
    """
    import llvmlite.binding as llvm

    modules = [_module(entry, llvm) for entry in _compiled()]
    whole = modules[0]
    for other in modules[1:]:
        whole.link_in(other)
    machine = _this_machine(llvm)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(whole, builder)
    if needed := [each.name for each in whole.functions if each.is_declaration and not each.name.startswith("llvm.")]:
        raise RuntimeError(f"the compiled loops need {', '.join(needed)}")
    return bytes(machine.emit_object(whole))


def _compiled() -> list[Any]:
    """The entries, compiled: each loop gets a copy whose globals name the compiled callees."""
    from numba import cfunc, njit

    scope: dict[str, Any] = dict(vars(kernel))
    for loop in kernel.LOOPS:
        scope[loop.__name__] = njit(_within(scope, loop))
    scope[kernel.copy.__name__] = njit(_within(scope, kernel.copy_bytes))
    return [cfunc(_signature(SIGNATURES[entry.__name__]))(_within(scope, entry)) for entry in kernel.ENTRIES]


def _within(scope: dict[str, Any], loop: Callable[..., Any]) -> types.FunctionType:
    return types.FunctionType(loop.__code__, scope, loop.__name__)


def _signature(letters: str) -> Any:
    import numba

    kinds: Any = numba.types

    def of(letter: str) -> Any:
        return kinds.int64 if letter == "N" else kinds.CPointer(getattr(kinds, _POINTERS[letter]))

    return kinds.int64(*map(of, letters))


def _module(entry: Any, llvm: Any) -> Any:
    """What numba made of an entry, with nothing visible but the entry: so LLVM sees that no call of it can fail, and
    drops the code that would tell Python of a failure.
    """
    symbol = SYMBOL.format(entry.__name__)
    module = llvm.parse_assembly(entry.inspect_llvm().replace(entry.native_name, symbol))
    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration and each.name != symbol:
            each.linkage = "internal"
    return module


def _this_machine(llvm: Any) -> Any:
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True
    )
