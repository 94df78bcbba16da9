"""How the kernel is compiled: small functions that numba joins into one, cached in a folder named after their text.

Numba's own cache looks only at the file of the function that is called. An edit of any other kernel file would go
unnoticed and the old machine code would run. So the cache has a folder for each text of all kernel files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numba

from capplan.models.user_cache import user_cache

F = TypeVar("F", bound=Callable[..., Any])
HERE = Path(__file__).parent
# Without reference counts: the kernel allocates nothing, and counting arrays in and out made it six times slower.
# No fast mathematics: both engines must round alike. Division as in numpy: no check for zero at every division.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # Python never calls these


_njit: Any = numba.njit  # its type information leaves out some of its options


def part(function: F) -> F:
    """Compile a function that becomes part of those that call it."""
    compiled: F = _njit(function, **_OPTIONS, **_INNER, forceinline=True)
    return compiled


def called(function: F) -> F:
    """Compile a function that other compiled ones call: for what is long and seldom needed."""
    compiled: F = _njit(function, **_OPTIONS, **_INNER)
    return compiled


def entry(function: F) -> F:
    """Compile a function that Python calls, once for each text of the kernel."""
    with _cache_folder(cache_folder()):
        compiled: F = _njit(function, cache=True, **_OPTIONS)
    return compiled


def cache_folder() -> Path:
    """Return the folder of the kernel's machine code: of this text of its files and this version of numba."""
    text = blake2b(f"{numba.__version__} {sys.version}".encode(), digest_size=8)
    for file in sorted(HERE.glob("*.py")):
        text.update(file.read_bytes())
    return user_cache() / f"kernel-{text.hexdigest()}"


def is_compiled() -> bool:
    """Tell whether machine code of the kernel is there, so that a run can begin at once."""
    return any(cache_folder().glob("**/*.nbc"))


@contextmanager
def _cache_folder(folder: Path) -> Iterator[None]:
    settings: Any = numba.config  # made of the environment when it is imported, so without type information
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        settings.CACHE_DIR = before
