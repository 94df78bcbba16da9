"""The store: whole records, one owner, and other files stay untouched."""

import math
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from capplan.errors import InputError
from capplan.simulator.experiment import Rows, Store, open_store

KEEP_OPEN = """
import sys, pathlib
from capplan.simulator.experiment import open_store
with open_store(pathlib.Path(sys.argv[1])) as store:
    store.save("a", 0, [{"value": 0.5}])
    print("owned", flush=True)
    sys.stdin.read()
"""


def rows(replication: int) -> Rows:
    """Return as many rows as the number says; the first has none."""
    return [{"value": row / 3.0} for row in range(replication)]


def test_records_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "made" / "here"
    with open_store(path) as store:
        for key, number in (("b", 2), ("b", 0), ("b", 1), ("a", 0), ("b", 2)):
            store.save(key, number, rows(number))
        assert store.rows("b", 2) == rows(2)

    with open_store(path) as store:
        assert len(store) == 4
        assert [store.rows("b", number) for number in range(4)] == [rows(0), rows(1), rows(2), None]
    assert [each.name for each in path.parent.iterdir()] == ["here"]


def test_every_float_comes_back(tmp_path: Path) -> None:
    values = [math.nan, math.inf, -0.0, 0.1 + 0.2, 5e-324, None, 2**53 + 1, True]
    with open_store(tmp_path / "store") as store:
        store.save("a", 0, [{"value": value} for value in values])
        assert repr([row["value"] for row in store.rows("a", 0) or []]) == repr(values)


def test_one_process_owns_a_store_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with subprocess.Popen(
        [sys.executable, "-c", KEEP_OPEN, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"owned\n"
        with pytest.raises(InputError, match="another run"), open_store(path):
            pass
        owner.kill()

    with open_store(path) as store:
        assert store.rows("a", 0) == [{"value": 0.5}]


@pytest.mark.parametrize("content", [b"system,dcs\n", b"x" * 5000])
def test_a_file_of_something_else_stays(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(content)
    with pytest.raises(InputError, match="mine"), open_store(tmp_path / "mine"):
        pass

    assert (tmp_path / "mine").read_bytes() == content


def test_another_database_stays(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE other (value)")
    other.close()
    with pytest.raises(InputError, match="mine"), open_store(path):
        pass


@pytest.mark.parametrize("place", ["folder", "file/store"])
def test_a_place_that_cannot_be_written(place: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=place), open_store(tmp_path / place):
        pass


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="full"), open_store(tmp_path / "store") as store:
        fill(store)


def fill(store: Store) -> None:
    store._connection.execute("PRAGMA max_page_count = 4")
    for number in range(1000):
        store.save("a", number, rows(100))


def test_rows_that_are_no_text_any_more_are_not_there(tmp_path: Path) -> None:
    """A damaged cell, which SQLite does not check."""
    path = tmp_path / "runs"
    with open_store(path) as store:
        store.save("a", 0, [{"x": 1}])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE replications SET rows = CAST(x'ff00fe' AS TEXT)")

    with open_store(path) as store:
        assert store.rows("a", 0) is None


def full(store: Store) -> None:
    """Let a store have no room for another page, as on a full disk."""
    store._connection.execute("PRAGMA max_page_count = 1")
    store.save("a", 0, [{"value": "x" * 100_000}])


def test_a_full_disk_leaves_no_empty_store(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="is full: free some space, and ask again"),
        open_store(tmp_path / "r") as store,
    ):
        full(store)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_keeps_what_is_in_a_store(tmp_path: Path) -> None:
    with open_store(tmp_path / "r") as store:
        store.save("b", 0, [{"value": 1.0}])
    with pytest.raises(InputError, match="goes on from the results"), open_store(tmp_path / "r") as store:
        full(store)
    with open_store(tmp_path / "r") as store:
        assert store.rows("b", 0) == [{"value": 1.0}]
