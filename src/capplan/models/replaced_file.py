"""Files that are there in full or not at all: written beside, then renamed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from capplan.models.errors import InputError


def replace_file(path: Path, write: str | Callable[[Path], None]) -> None:
    """Write a file, or replace it; the old one stays until the new one is whole.

    Parameters
    ----------
    path
        The file.
    write
        Its text, or what writes it to the path that it is given.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        if isinstance(write, str):
            beside.write_text(write, encoding="utf-8", newline="\n")
        else:
            write(beside)
        beside.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        beside.unlink(missing_ok=True)
