"""A digest of the code that computes something, so that kept results of other code are not taken for its own."""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path


@lru_cache(maxsize=4)
def code_digest(folders: tuple[str, ...] = (".",), suffixes: tuple[str, ...] = (".py",), *, plain: bool = False) -> str:
    """Return a digest, in hexadecimal, of capplan's own files.

    Parameters
    ----------
    folders
        Folders of the package that count, with all below them; left out, all of it.
    suffixes
        Endings of the files that count.
    plain
        Count what the code does only: neither comments and docstrings, nor the libraries beneath. Left out, every byte
        counts, and the versions of the libraries do.
    """
    package, digest = Path(__file__).parents[1], hashlib.sha256()
    paths = (path for folder in folders for path in (package / folder).rglob("*") if path.suffix in suffixes)
    for path in sorted(paths):
        text = uncommented(path.read_text(encoding="utf-8")).encode() if plain else path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode() + text)
    if not plain:
        digest.update(" ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba")).encode())
    return digest.hexdigest()


def uncommented(source: str) -> str:
    """Return Python source without comments, docstrings and empty lines."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (1 + (node.end_lineno or node.lineno) - node.lineno)
    return "\n".join(line.rstrip() for line in lines if line.strip())
