"""A digest of capplan's code, to check whether stored results come from the same code."""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TypeGuard


@lru_cache(maxsize=16)
def code_digest(
    folders: tuple[str, ...] = (".",),
    suffixes: tuple[str, ...] = (".py",),
    *,
    plain: bool = False,
    without: tuple[str, ...] = (),
    package: Path = Path(__file__).parents[1],
) -> str:
    """Return a digest of the files of a package.

    Parameters
    ----------
    folders : tuple of str
        Folders of the package to include, with their subfolders; the whole package if left out.
    suffixes : tuple of str
        Endings of the files to include.
    plain : bool
        Ignore comments and docstrings of Python, and the versions of numpy and scipy. Otherwise every byte and these
        versions count.
    without : tuple of str
        Files and folders inside these to leave out, with their subfolders.
    package : Path
        Folder of the package; capplan's own when left out.

    Returns
    -------
    str
        SHA-256 in hexadecimal.
    """
    digest = hashlib.sha256()
    paths = (path for folder in folders for path in (package / folder).rglob("*") if path.suffix in suffixes)
    apart = tuple(package / folder for folder in without)
    for path in sorted(paths):
        if any(path.is_relative_to(folder) for folder in apart):
            continue
        python = plain and path.suffix == ".py"
        text = uncommented(path.read_text(encoding="utf-8")).encode() if python else path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode() + text)
    if not plain:
        digest.update(" ".join(f"{name} {version(name)}" for name in ("numpy", "scipy")).encode())
    return digest.hexdigest()


@cache  # systems share most files
def uncommented(source: str) -> str:
    """Return Python source without comments, docstrings and empty lines.

    Docstrings that share a line with code and empty lines inside strings stay. Unlike a dump of the syntax tree, the
    result is the same for all versions of Python.
    """
    lines = source.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip() or _GONE
    nodes = list(ast.walk(ast.parse(source)))
    for node in nodes:
        if isinstance(node, ast.Expr) and _is_text(node.value) and _alone(lines, node):
            lines[node.lineno - 1 : node.end_lineno] = [_GONE] * len(_rows(node))
    used = {row for node in nodes if _is_text(node) for row in _rows(node)[:-1]}
    kept = (line if row in used else line.rstrip() or _GONE for row, line in enumerate(lines))
    return "\n".join(line for line in kept if line != _GONE)


_GONE = "\0"  # cannot stand in Python source


def _is_text(node: ast.AST) -> TypeGuard[ast.Constant | ast.JoinedStr]:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _rows(node: ast.expr | ast.stmt) -> range:
    return range(node.lineno - 1, node.end_lineno or node.lineno)


def _alone(lines: list[str], node: ast.stmt) -> bool:
    """Whether a statement is alone on its lines."""
    before = lines[node.lineno - 1].encode()[: node.col_offset]
    after = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset :]
    return not before.strip() and not after.strip()
