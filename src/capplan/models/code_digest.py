"""A digest of the code that computes something, so that kept results of other code are not taken for its own."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path


@lru_cache(maxsize=4)
def code_digest(folders: tuple[str, ...] = (".",), suffixes: tuple[str, ...] = (".py",)) -> str:
    """Return a digest, in hexadecimal, of capplan's own files and of the libraries beneath.

    Parameters
    ----------
    folders
        Folders of the package that count, with all below them; left out, all of it.
    suffixes
        Endings of the files that count.
    """
    package, digest = Path(__file__).parents[1], hashlib.sha256()
    paths = (path for folder in folders for path in (package / folder).rglob("*") if path.suffix in suffixes)
    for path in sorted(paths):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode() + path.read_bytes())
    digest.update(" ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba")).encode())
    return digest.hexdigest()
