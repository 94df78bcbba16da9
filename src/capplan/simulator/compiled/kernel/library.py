"""Loads the compiled kernel, compares its records with those of `layout`, and calls it."""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from functools import cache
from pathlib import Path

import numpy as np

from capplan.errors import MissingError
from capplan.simulator.compiled.kernel import layout as at
from capplan.simulator.compiled.kernel.layout import Program, State

LIBRARY = Path(__file__).parent / ("_kernel.dll" if sys.platform == "win32" else "_kernel.so")
LIBRARY = Path(os.environ.get("CAPPLAN_KERNEL", LIBRARY))  # tests run one that checks what it reads and writes
MISSING = (
    "the compiled engine is not installed, because no C compiler worked when capplan was: install one, such as gcc, "
    "and then capplan again (`uv sync --reinstall-package capplan` in a clone), or choose --engine simpy"
)
OTHER = "the compiled engine was made from other files than these: run `uv sync --reinstall-package capplan` in a clone"


class Described(ctypes.Structure):
    """A record, field or constant in the library's own description."""

    _fields_ = (("name", ctypes.c_char_p), ("offset", ctypes.c_int64), ("size", ctypes.c_int64))


class Library:
    """The shared library.

    Attributes
    ----------
    size
        Bytes of the C structure that holds the addresses of all arrays.
    places
        By array, where its address stands in that structure, and the size of an element; both in bytes.
    """

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))  # calls release the interpreter's lock
        library.capplan_fault.restype = ctypes.c_char_p
        self.fault = library.capplan_fault
        self.begin = _entry(library, "begin", 0)
        self.settle = _entry(library, "settle", 1)
        self.advance = _entry(library, "advance", 2)
        self.quantile = _entry(library, "quantile", 2)
        described = describe(path)
        compare(described)
        self.size = described["Kernel"][1]
        self.places = {name: described[f"Kernel.{name}"] for name in (*Program._fields, *State._fields)}


@cache
def library() -> Library:
    """Return the library, loaded once.

    Raises
    ------
    MissingError
        When it was not compiled; says how to get it.
    """
    if not LIBRARY.exists():
        raise MissingError(MISSING)
    return Library(LIBRARY)


def is_compiled() -> bool:
    """Return whether the kernel was compiled when capplan was installed."""
    return LIBRARY.exists()


class Kernel:
    """The kernel, bound to the arrays of a run."""

    def __init__(self, program: Program, state: State) -> None:
        self.program, self.state = program, state  # the addresses are good as long as these live
        self.library = library()
        addresses = np.zeros(self.library.size // 8, dtype=np.int64)
        for name, array in {**program._asdict(), **state._asdict()}.items():
            offset, size = self.library.places[name]
            if not array.flags.c_contiguous or array.nbytes % size:
                raise TypeError(f"the kernel cannot read the array {name!r}")
            width = array.shape[-1] if array.ndim else 1
            addresses[offset // 8 : offset // 8 + 3] = array.ctypes.data, array.nbytes // size, width
        self._addresses = addresses
        self._address = ctypes.c_void_p(addresses.ctypes.data)

    def begin(self) -> None:
        """Schedule the first events."""
        self._checked(self.library.begin(self._address))

    def settle(self, tick: int) -> None:
        """Update the sums up to a tick, and the speeds from there."""
        self._checked(self.library.settle(self._address, tick))

    def advance(self, tick: int, rank: int) -> int:
        """Run all events before a key; return the kernel's reason for stopping."""
        return self._checked(self.library.advance(self._address, tick, rank))

    def quantile(self, distribution: int, word: int) -> int:
        """Return the ticks that a 52-bit word draws from a row of the distributions."""
        return int(self.library.quantile(self._address, distribution, word))

    def _checked(self, outcome: int) -> int:
        if outcome == at.FAULT:
            raise RuntimeError(f"the simulation kernel stopped: {self.library.fault().decode()}")
        return outcome


def _entry(library: ctypes.CDLL, name: str, numbers: int) -> ctypes._NamedFuncPointer:
    function = library[f"capplan_{name}"]
    function.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * numbers]
    function.restype = ctypes.c_int64
    return function


def describe(path: Path) -> dict[str, tuple[int, int]]:
    """Return a library's description of its records, constants and source: offset (or value) and size by name."""
    library = ctypes.CDLL(str(path))
    library.capplan_description.restype = ctypes.POINTER(Described)
    found = {}
    for each in library.capplan_description():
        if each.name is None:
            break
        found[each.name.decode()] = each.offset, each.size
    return found


def digest() -> str:
    """Return the digest of the C files beside this one, as the build computes it."""
    files = sorted(path for path in Path(__file__).parent.iterdir() if path.suffix in {".c", ".h"})
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def expected() -> dict[str, tuple[int, int]]:
    """Return the offsets and sizes of all records and fields according to `layout`."""
    found: dict[str, tuple[int, int]] = {}
    for name, dtype in at.TYPES.items():
        found[name] = 0, dtype.itemsize
        for field, (kind, offset, *_) in (dtype.fields or {}).items():
            found[f"{name}.{field}"] = offset, kind.itemsize
    for name, (columns, count) in at.COLUMNS.items():
        ends = [*list(columns.values())[1:], count]
        found[name] = 0, 8 * count
        for (field, column), end in zip(columns.items(), ends, strict=True):
            found[f"{name}.{field}"] = 8 * column, 8 * (end - column)
    return found


def compare(described: dict[str, tuple[int, int]]) -> None:
    """Compare the library's source with the files here, and its records and numbers with those of `layout`.

    Raises
    ------
    MissingError
        When they differ: the library was made from other files than these.
    """
    records = {name: place for name, place in described.items() if not name.startswith(("Kernel", "=", "source "))}
    numbers = {name[1:]: value for name, (value, _) in described.items() if name.startswith("=")}
    arrays = {name.partition(".")[2] for name in described if name.startswith("Kernel.")}
    same_numbers = all(getattr(at, name, None) == value for name, value in numbers.items())
    same_arrays = arrays == {*Program._fields, *State._fields}
    if f"source {digest()}" not in described or records != expected() or not same_numbers or not same_arrays:
        raise MissingError(OTHER)
