"""Write files atomically: a file is there as a whole, as it was before, or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from capplan.models.errors import InputError
from capplan.models.file_lock import locked, same_file

_BEGIN, _END = ".capplan-", ".new"  # of the names of unfinished files


_unfinished: set[Path] = set()


def remove_unfinished() -> None:
    """Remove the files that this process has not finished, before it ends in the middle of its work."""
    for path in list(_unfinished):
        with suppress(OSError):
            path.unlink()


def check_replaceable(path: Path) -> None:
    """Check that a file may be written: that there is none, or a regular one, in an existing folder.

    Raises
    ------
    InputError
        If the folder does not exist, or the path is a folder, a device, a pipe or a dangling link.
    """
    try:
        if not path.parent.is_dir():
            raise InputError(f"{path} cannot be written: folder {path.parent} does not exist")
        if path.is_dir():
            raise InputError(f"{path} cannot be written: it is a folder; give a file name")
        if path.exists() and not path.is_file():
            raise InputError(
                f"{path} cannot be written: it is a device or a pipe, and would be replaced; give a file name"
            )
        if path.is_symlink() and not path.exists():
            raise InputError(f"{path} cannot be written: it is a link to {path.readlink()}, which does not exist")
    except (OSError, ValueError) as error:  # a name that is too long, or that no file can have
        if isinstance(error, InputError):
            raise
        raise _unwritten(path, error) from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of an unfinished file in the same folder, which takes the place of a file when the block ends.

    If the block raises, the file stays as it was and nothing is left beside it. What a killed process left is removed
    by the next one that writes to the folder. A link stays a link: the file that it leads to is replaced.

    Parameters
    ----------
    path : Path
        The file; it is replaced if it exists.

    Yields
    ------
    Path
        What to write to.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    check_replaceable(path)
    try:
        target = path.resolve()
        _remove_abandoned(target.parent)
        beside, descriptor = _begun(target.parent)
    except (OSError, ValueError) as error:
        raise _unwritten(path, error) from None
    _unfinished.add(beside)
    try:
        yield beside
        if target.exists():
            shutil.copymode(target, beside)
        os.fsync(descriptor)
        beside.replace(target)
    except OSError as error:
        raise _unwritten(path, error) from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        _unfinished.discard(beside)
        os.close(descriptor)


def replace_file(path: Path, write: str | bytes | Callable[[Path], None]) -> None:
    """Write a file atomically; see `replacing`.

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
    with replacing(path) as beside:
        if isinstance(write, str):
            beside.write_text(write, encoding="utf-8", newline="\n")
        elif isinstance(write, bytes):
            beside.write_bytes(write)
        else:
            write(beside)


def _unwritten(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}")


def _begun(folder: Path) -> tuple[Path, int]:
    """Make an unfinished file of a name that no other process has, locked as long as it is open."""
    while True:
        path = folder / f"{_BEGIN}{secrets.token_hex(6)}{_END}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
        if locked(descriptor) and same_file(descriptor, path):
            return path, descriptor
        os.close(descriptor)  # another process took it for an abandoned one


def _remove_abandoned(folder: Path) -> None:
    """Remove unfinished files of processes that were killed: nobody has locked them."""
    if os.name == "nt":
        return  # there are no such locks
    for path in folder.glob(f"{_BEGIN}*{_END}"):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            try:
                if locked(descriptor) and same_file(descriptor, path):
                    path.unlink()
            finally:
                os.close(descriptor)
