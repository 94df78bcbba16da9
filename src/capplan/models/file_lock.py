"""Locks on files: the operating system frees them when their process ends, however it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from capplan.models.errors import InputError


def locked(descriptor: int) -> bool:
    """Lock an open file for this process without waiting; return whether no other process had locked it.

    Where the platform or the file system has no such locks, nothing is locked, and the answer is yes.
    """
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def same_file(descriptor: int, path: Path) -> bool:
    """Whether an open file still has this path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


@contextmanager
def only_run(path: Path, what: str) -> Iterator[None]:
    """Refuse a second process in the same block; the lock file disappears with the block.

    Parameters
    ----------
    path : Path
        The lock file.
    what : str
        What only one process may do, for the message.

    Raises
    ------
    InputError
        If another process is in the block, or the file cannot be written.
    """
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
        if not locked(descriptor):
            os.close(descriptor)
            raise InputError(f"{what} belongs to another run that has not ended: wait for it, or name another file")
        if sys.platform == "win32" or same_file(descriptor, path):
            break
        os.close(descriptor)  # the other run removed the file between the two calls
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)
