"""A store of results: an SQLite file that keeps each replication as soon as it is there.

An SQLite transaction is whole or absent, however the process ends; so a run that is interrupted or killed resumes from
its store. One process at a time owns the file. A store that a disk damaged is removed and begun anew.
"""

from __future__ import annotations

import json
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from capplan.models.errors import InputError, Notice

Rows = list[dict[str, Any]]
FORMAT = 1  # of the file, as SQLite's user_version
_TABLE = """
CREATE TABLE IF NOT EXISTS replications (
    key TEXT, replication INTEGER, rows TEXT, PRIMARY KEY (key, replication)
) WITHOUT ROWID
"""


class Store:
    """The rows of replications in a file; `open_store` makes it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __len__(self) -> int:
        """Count the replications."""
        (count,) = self._connection.execute("SELECT count(*) FROM replications").fetchone()
        return int(count)

    def rows(self, key: str, replication: int) -> Rows | None:
        """Return the rows of a replication; None if there are none, or they cannot be read."""
        # As bytes, whose damage is an error of the decoder and not of SQLite.
        found = self._connection.execute(
            "SELECT CAST(rows AS BLOB) FROM replications WHERE key = ? AND replication = ?", (key, replication)
        ).fetchone()
        try:
            return None if found is None else from_text(found[0])
        except (ValueError, TypeError):
            return None

    def save(self, key: str, replication: int, rows: Rows) -> None:
        """Keep the rows of a replication; they are in the file when this returns.

        Raises
        ------
        TypeError
            When a row holds something other than numbers, strings, booleans, None, and lists or mappings of these.
        """
        self._connection.execute(
            "INSERT OR REPLACE INTO replications VALUES (?, ?, ?)", (key, replication, to_text(rows))
        )


@contextmanager
def open_store(path: Path) -> Iterator[Store]:
    """Open a store, and own it until the block ends.

    Parameters
    ----------
    path : Path
        The file. It is made if it is missing, with its folder.

    Yields
    ------
    Store
        What the file holds.

    Raises
    ------
    InputError
        When another process owns the file, when it is no store, or when it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(path, error) from None
    try:
        with closing(_connected(path)) as connection:
            yield Store(connection)
    except sqlite3.DatabaseError as error:
        if _code(error) == sqlite3.SQLITE_BUSY:
            raise InputError(
                f"the results in {str(path)!r} belong to another run that has not ended: wait for it, or name another"
                " file"
            ) from None
        raise _unusable(path, error) from None


def _connected(path: Path) -> sqlite3.Connection:
    """Connect to a store that is whole; one that is damaged is removed first."""
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        _prepare(connection, path)
        if connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
            return connection
    except sqlite3.DatabaseError as error:
        if _code(error) != sqlite3.SQLITE_CORRUPT:
            connection.close()
            raise
    except BaseException:
        connection.close()
        raise
    connection.close()
    for each in (path, *(path.with_name(f"{path.name}{suffix}") for suffix in ("-wal", "-shm", "-journal"))):
        each.unlink(missing_ok=True)
    warnings.warn(f"{path} was damaged: it is removed, and its results are computed again", Notice, stacklevel=2)
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    _prepare(connection, path)
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # with WAL, a transaction outlives the process, not the power
        connection.execute("BEGIN EXCLUSIVE")
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        if found != (FORMAT if tables else 0):
            raise _foreign(path)
        connection.execute(_TABLE)
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        if _code(error) == sqlite3.SQLITE_NOTADB:
            raise _foreign(path) from None
        raise


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code; 0 if the error is Python's, which has none."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _foreign(path: Path) -> InputError:
    return InputError(f"{str(path)!r} holds no results of experiments: remove it, or name another file")


def _unusable(path: Path, error: Exception) -> InputError:
    return InputError(
        f"results cannot be kept in {str(path)!r} ({error}): name a file that you may write, on a disk with space"
    )


def to_text(rows: Rows) -> str:
    """Return rows as they are kept; every float comes back as it was, those that are no numbers too."""
    return json.dumps(rows, separators=(",", ":"))


def from_text(text: str | bytes) -> Rows:
    """Return rows that are kept as text."""
    rows: Rows = json.loads(text)
    return rows
