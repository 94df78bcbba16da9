"""Write files atomically."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from capplan.models.errors import InputError


def replace_file(path: Path, write: str | bytes | Callable[[Path], None]) -> None:
    """Write a file atomically: write a temporary file in the same folder, then rename it.

    Parameters
    ----------
    path : Path
        The file; it is replaced if it exists.
    write : str, bytes or callable
        The content, or a function that writes the file to the path that it receives.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        if isinstance(write, str):
            beside.write_text(write, encoding="utf-8", newline="\n")
        elif isinstance(write, bytes):
            beside.write_bytes(write)
        else:
            write(beside)
        beside.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        beside.unlink(missing_ok=True)
