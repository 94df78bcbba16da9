"""Experiments: many configurations, each with the number of replications that it needs, kept in a store."""

from __future__ import annotations

import heapq
import json
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from capplan.errors import InputError, Notice
from capplan.grouped import grouped
from capplan.simulator.workers import Workers, run_tasks

Rows = list[dict[str, Any]]
FORMAT = 1  # of the file, as SQLite's user_version
_TABLE = """
CREATE TABLE IF NOT EXISTS replications (
    key TEXT, replication INTEGER, rows TEXT, PRIMARY KEY (key, replication)
) WITHOUT ROWID
"""


class Store:
    """The rows of replications in a file; `open_store` creates it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __len__(self) -> int:
        """Count the replications."""
        (count,) = self._connection.execute("SELECT count(*) FROM replications").fetchone()
        return int(count)

    def rows(self, key: str, replication: int) -> Rows | None:
        """Return the rows of a replication; None if it has none or they are unreadable."""
        # As bytes, whose damage is an error of the decoder and not of SQLite.
        found = self._connection.execute(
            "SELECT CAST(rows AS BLOB) FROM replications WHERE key = ? AND replication = ?", (key, replication)
        ).fetchone()
        try:
            return None if found is None else from_text(found[0])
        except (ValueError, TypeError):
            return None

    def save(self, key: str, replication: int, rows: Rows) -> None:
        """Save the rows of a replication; they are in the file when this function returns.

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
    """Open a store and own it until the block ends.

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
    kept = path.exists()
    try:
        with closing(_connected(path)) as connection:
            try:
                yield Store(connection)
            finally:
                kept = kept or bool(len(Store(connection)))
    except sqlite3.DatabaseError as error:
        if _code(error) == sqlite3.SQLITE_BUSY:
            raise InputError(
                f"the results in {str(path)!r} belong to another run that has not ended: wait for it, or name another"
                " file"
            ) from None
        if _code(error) != sqlite3.SQLITE_FULL:
            raise _unusable(path, error) from None
        if not kept:
            _remove(path)
        then = "the same command goes on from the results in that file" if kept else "ask again"
        raise InputError(f"the disk of {str(path)!r} is full: free some space, and {then}") from None


def _remove(path: Path) -> None:
    """Remove a store, with the files that SQLite keeps beside it."""
    for each in (path, *(path.with_name(f"{path.name}{suffix}") for suffix in ("-wal", "-shm", "-journal"))):
        each.unlink(missing_ok=True)


def _connected(path: Path) -> sqlite3.Connection:
    """Connect to a store; remove a damaged one first."""
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
    _remove(path)
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
    """Return SQLite's primary result code; 0 for Python's own errors, which have none."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _foreign(path: Path) -> InputError:
    return InputError(f"{str(path)!r} holds no results of experiments: remove it, or name another file")


def _unusable(path: Path, error: Exception) -> InputError:
    return InputError(
        f"results cannot be kept in {str(path)!r} ({error}): name a file that you may write, on a disk with space"
    )


def to_text(rows: Rows) -> str:
    """Return rows as stored text; every float is restored exactly, also nan and infinity."""
    return json.dumps(rows, separators=(",", ":"))


def from_text(text: str | bytes) -> Rows:
    """Return rows from stored text."""
    rows: Rows = json.loads(text)
    return rows


S = TypeVar("S")


@dataclass(frozen=True)
class Configuration(Generic[S]):
    """A subject to replicate, with its key.

    Attributes
    ----------
    key : str
        A digest of everything that the results depend on. Configurations with the same key run once.
    subject
        The argument of `Experiment.run`; picklable.
    """

    key: str
    subject: S


@dataclass(frozen=True)
class Experiment(Generic[S]):
    """How to run replications.

    Attributes
    ----------
    run : callable
        Runs the replication with this number for a subject; returns rows of numbers, strings, booleans, None, lists
        and mappings. A function of a module, so that it can be pickled.
    wanted : callable
        Returns the number of replications in all, given the subject and the rows of the first n, in order: of none at
        first. The configuration is finished when it wants no more than there are.
    """

    run: Callable[[S, int], Rows]
    wanted: Callable[[S, Sequence[Rows]], int]


@dataclass(frozen=True)
class ExperimentProgress:
    """The progress of an experiment.

    Attributes
    ----------
    finished, configurations : int
        The number of finished configurations, and of all.
    stored, run : int
        The number of replications that came from the store, and that were run.
    requested : int
        The number of replications requested so far.
    """

    finished: int
    configurations: int
    stored: int
    run: int
    requested: int


def perform(
    experiment: Experiment[S],
    configurations: Sequence[Configuration[S]],
    workers: Workers,
    *,
    store: Store | None = None,
    progress: Callable[[ExperimentProgress], None] | None = None,
) -> Iterator[tuple[Configuration[S], list[Rows]]]:
    """Run an experiment.

    Parameters
    ----------
    experiment : Experiment
        How to run replications.
    configurations : sequence of Configuration
        What to run; earlier ones begin earlier.
    workers : Workers
        Where replications run.
    store : Store, optional
        Replications that are in it do not run again; others are saved in it as they complete.
    progress : callable, optional
        Called at the beginning and after every replication.

    Yields
    ------
    tuple
        Each configuration as soon as it is finished, with the rows of each of its replications.

    Raises
    ------
    InputError
        When results cannot be saved.
    Exception
        What `experiment.run` raises.
    """
    under_way = _Replicating(experiment, configurations, store, progress)
    under_way.tell()
    for (place, number), rows in run_tasks(workers, under_way.next_task):
        under_way.take(place, number, rows)
        yield from under_way.finished()
    yield from under_way.finished()


@dataclass
class _Group(Generic[S]):
    """Configurations of one key, and their replications so far."""

    configurations: list[Configuration[S]]
    requested: int = 0
    missing: int = 0
    rows: dict[int, Rows] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return self.configurations[0].key

    @property
    def subject(self) -> S:
        return self.configurations[0].subject

    def in_order(self) -> list[Rows]:
        return [self.rows[number] for number in range(self.requested)]


class _Replicating(Generic[S]):
    """An experiment in progress."""

    def __init__(
        self,
        experiment: Experiment[S],
        configurations: Sequence[Configuration[S]],
        store: Store | None,
        progress: Callable[[ExperimentProgress], None] | None,
    ) -> None:
        self._experiment, self._store, self._progress = experiment, store, progress
        self._groups = [_Group(equal) for equal in grouped(configurations, lambda each: each.key).values()]
        self._ahead = iter(range(len(self._groups)))
        self._tasks: list[tuple[int, int]] = []  # a heap of places in `_groups` and numbers of replications
        self._finished: list[_Group[S]] = []
        self._count, self._total, self._stored, self._run, self._requested = 0, len(configurations), 0, 0, 0

    def next_task(self) -> tuple[tuple[int, int], Callable[[], Rows]] | None:
        """Return a replication of the earliest unfinished configuration; begin configurations until there is one."""
        while not self._tasks:
            if (place := next(self._ahead, None)) is None:
                return None
            self._request(place)
        place, number = heapq.heappop(self._tasks)
        return (place, number), partial(self._experiment.run, self._groups[place].subject, number)

    def take(self, place: int, number: int, rows: Rows) -> None:
        """Save the rows of a finished replication."""
        group = self._groups[place]
        if self._store is not None:
            self._store.save(group.key, number, rows)
        group.rows[number] = from_text(to_text(rows))  # the same result with and without a store
        group.missing -= 1
        self._run += 1
        if not group.missing:
            self._request(place)
        self.tell()

    def finished(self) -> Iterator[tuple[Configuration[S], list[Rows]]]:
        """Yield the configurations finished since the last call."""
        finished, self._finished = self._finished, []
        for group in finished:
            rows = group.in_order()
            group.rows.clear()
            yield from ((each, rows) for each in group.configurations)

    def tell(self) -> None:
        """Report progress."""
        if self._progress is not None:
            self._progress(ExperimentProgress(self._count, self._total, self._stored, self._run, self._requested))

    def _request(self, place: int) -> None:
        """Request the replications that a complete configuration still wants, or mark it as finished."""
        group = self._groups[place]
        while not group.missing:
            wanted = self._experiment.wanted(group.subject, group.in_order())
            if wanted <= group.requested:
                self._finished.append(group)
                self._count += len(group.configurations)
                return
            for number in range(group.requested, wanted):
                known = None if self._store is None else self._store.rows(group.key, number)
                if known is None:
                    heapq.heappush(self._tasks, (place, number))
                    group.missing += 1
                else:
                    group.rows[number] = known
                    self._stored += 1
            self._requested += wanted - group.requested
            group.requested = wanted
