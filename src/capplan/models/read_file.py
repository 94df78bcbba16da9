"""Read a whole text file of a user: a regular one, of a size that fits its kind."""

from __future__ import annotations

from pathlib import Path

from capplan.models.errors import InputError

LARGEST_BYTES = 4 * 2**20
"""Size of a file that people write, such as a scenario or a network of a thousand stations."""


def read_file(path: Path, most_bytes: int = LARGEST_BYTES) -> str:
    """Read a text file in UTF-8; a byte order mark at its start is left out.

    Parameters
    ----------
    path : Path
        The file.
    most_bytes : int
        The largest size.

    Returns
    -------
    str
        Its text.

    Raises
    ------
    InputError
        If it is missing, too large, no regular file, or not text.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise InputError(f"{path} is a pipe or a device: save what it has to a file first")
        if (size := path.stat().st_size) > most_bytes:
            raise InputError(f"{path} has {size:,} bytes, and at most {most_bytes:,} are read: is it the right file?")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(missing(path)) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file in UTF-8") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not a path: {error}") from None  # it has a NUL


def missing(path: Path) -> str:
    """Say in one sentence that a file does not exist, with the nearest name in its folder."""
    from difflib import get_close_matches

    if not path.parent.is_dir():
        return f"{path} does not exist: there is no folder {path.parent}"
    if path.is_symlink():
        return f"{path} is a link to {path.readlink()}, which does not exist: restore that file, or remove the link"
    others = [each.name for each in path.parent.iterdir() if each.exists()]
    close = get_close_matches(path.name, others, n=1, cutoff=0.5)
    return f"{path} does not exist" + (f"; did you mean {close[0]!r}?" if close else ": check the path")
