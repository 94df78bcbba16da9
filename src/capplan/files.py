"""User and result files: read whole, written atomically, locked during a run, cached."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from capplan.errors import InputError, Notice

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
    """Return a sentence that a file does not exist, with the most similar name in its folder."""
    from difflib import get_close_matches

    if not path.parent.is_dir():
        return f"{path} does not exist: there is no folder {path.parent}"
    if path.is_symlink():
        return f"{path} is a link to {path.readlink()}, which does not exist: restore that file, or remove the link"
    others = [each.name for each in path.parent.iterdir() if each.exists()]
    close = get_close_matches(path.name, others, n=1, cutoff=0.5)
    return f"{path} does not exist" + (f"; did you mean {close[0]!r}?" if close else ": check the path")


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


_BEGIN, _END = ".capplan-", ".new"  # of the names of unfinished files


@contextmanager
def only_run(output: Path) -> Iterator[None]:
    """Refuse a second process that computes the same output; a lock file beside it disappears with the block.

    Parameters
    ----------
    output : Path
        What is computed.

    Raises
    ------
    InputError
        If another process is in the block, or the lock file cannot be written.
    """
    path = output.with_name(f"{_BEGIN}{output.name}.lock")
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
        if not locked(descriptor):
            os.close(descriptor)
            raise InputError(
                f"the calculation of {output} belongs to another run that has not ended: wait for it, or name another "
                "file"
            )
        if sys.platform == "win32" or same_file(descriptor, path):
            break
        os.close(descriptor)  # the other run removed the file between the two calls
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)


_unfinished: set[Path] = set()


def remove_unfinished() -> None:
    """Remove this process's unfinished files before it ends early."""
    for path in list(_unfinished):
        with suppress(OSError):
            path.unlink()


def check_replaceable(path: Path) -> None:
    """Check that a file may be written: its folder exists, and the file is a regular one or does not exist.

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
    """Yield the path of an unfinished file in the same folder, which replaces the target when the block ends.

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
    replace_files({path: write})


def replace_files(contents: Mapping[Path, str | bytes | Callable[[Path], None]]) -> None:
    """Write several files that belong together: none is replaced before all are written; see `replace_file`."""
    with ExitStack() as unfinished:
        for path, write in contents.items():
            beside = unfinished.enter_context(replacing(path))
            if isinstance(write, str):
                beside.write_text(write, encoding="utf-8", newline="\n")
            elif isinstance(write, bytes):
                beside.write_bytes(write)
            else:
                write(beside)


def _unwritten(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}")


def _begun(folder: Path) -> tuple[Path, int]:
    """Create an unfinished file under a unique name, locked while it is open."""
    while True:
        path = folder / f"{_BEGIN}{secrets.token_hex(6)}{_END}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
        if locked(descriptor) and same_file(descriptor, path):
            return path, descriptor
        os.close(descriptor)  # another process took it for an abandoned one


def _remove_abandoned(folder: Path) -> None:
    """Remove unfinished files of killed processes, which nobody locks any more."""
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


def user_cache() -> Path:
    """Return `CAPPLAN_CACHE_DIR` if it is set, otherwise capplan's folder in the platform's cache folder."""
    given = os.environ.get("CAPPLAN_CACHE_DIR")
    if given:
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "capplan"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "capplan"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "capplan"


def writable_cache() -> Path | None:
    """Return the user's cache, made if need be; None, with a notice, if it cannot be written.

    What cannot be kept is computed again next time. Nothing is kept elsewhere instead.
    """
    folder = user_cache()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        warnings.warn(
            f"{folder} cannot be written ({getattr(error, 'strerror', None) or error}), so nothing is kept for a run "
            "that is interrupted: set CAPPLAN_CACHE_DIR to another folder",
            Notice,
            stacklevel=2,
        )
        return None
    return folder
