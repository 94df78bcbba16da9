"""Stores: whole records, one owner, nothing lost or doubled by an end at any moment."""

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from capplan.models.errors import InputError
from capplan.simulator.experiments.store import Rows, Store, open_store, record, record_schema

SCHEMA = pa.schema({"value": pa.float64()})
RECORD = record_schema(SCHEMA)
KEEP_OPEN = """
import sys, pathlib, pyarrow
from capplan.simulator.experiments.store import open_store
with open_store(pathlib.Path(sys.argv[1]), pyarrow.schema({"value": pyarrow.float64()})):
    print("owned", flush=True)
    sys.stdin.read()
"""


def rows(replication: int) -> Rows:
    """Return as many rows as the number says; the first has none."""
    return [{"value": row / 3.0} for row in range(replication)]


def filled(store: Store) -> None:
    for number in (2, 0, 1):
        store.save(record("b", number, rows(number), RECORD))
    store.save(record("a", 0, rows(5), RECORD))


def content(folder: Path) -> dict[tuple[str, int], Rows | None]:
    with open_store(folder, SCHEMA) as store:
        places = [(key, number) for key in "ab" for number in range(4) if store.rows(key, number) is not None]
        assert len(store) == len(places)
        return {place: store.rows(*place) for place in places}


FILLED = {("a", 0): rows(5), ("b", 0): rows(0), ("b", 1): rows(1), ("b", 2): rows(2)}


def test_records_are_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    with open_store(folder, SCHEMA) as store:
        filled(store)
        assert store.rows("b", 2) == rows(2)

    assert content(folder) == FILLED
    assert len(list(folder.glob("*.parquet"))) == 4


def test_together_they_stand_in_order(tmp_path: Path) -> None:
    with open_store(tmp_path, SCHEMA) as store:
        filled(store)
        store.compact()
    (file,) = tmp_path.glob("*.parquet")

    assert parquet.read_table(file).column("key").to_pylist() == ["a", "b", "b", "b"]
    assert parquet.read_table(file).column("replication").to_pylist() == [0, 0, 1, 2]
    assert content(tmp_path) == FILLED


def test_the_same_record_twice_is_one(tmp_path: Path) -> None:
    with open_store(tmp_path, SCHEMA) as store:
        filled(store)
        store.compact()
        filled(store)
        assert len(store) == 4
        store.compact()

    assert content(tmp_path) == FILLED


@pytest.mark.parametrize("step", range(6))
def test_an_end_inside_compaction_loses_and_doubles_nothing(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changes the folder in five steps: a file appears under its name, four go."""
    left = step

    def ending(change: Callable[..., Any]) -> Callable[..., None]:
        def changed(*arguments: Any) -> None:
            nonlocal left
            if not left:
                raise KeyboardInterrupt
            left -= 1
            change(*arguments)

        return changed

    with open_store(tmp_path, SCHEMA) as store:
        filled(store)
        monkeypatch.setattr(Path, "replace", ending(Path.replace))
        monkeypatch.setattr(Path, "unlink", ending(Path.unlink))
        if step < 5:
            with pytest.raises(KeyboardInterrupt):
                store.compact()
        else:
            store.compact()
        monkeypatch.undo()

    assert content(tmp_path) == FILLED
    with open_store(tmp_path, SCHEMA) as store:
        store.compact()
    assert [file.name for file in tmp_path.iterdir() if file.name != ".lock"] == ["runs.parquet"]
    assert content(tmp_path) == FILLED


def test_numbers_that_are_none_are_kept(tmp_path: Path) -> None:
    values = [math.nan, math.inf, -0.0, None, 5e-324]
    with open_store(tmp_path, SCHEMA) as store:
        store.save(record("a", 0, [{"value": value} for value in values], RECORD))

    assert repr([row["value"] for row in content(tmp_path)["a", 0] or []]) == repr(values)


def test_leftovers_go_and_hidden_files_stay(tmp_path: Path) -> None:
    (tmp_path / ".run-7.parquet.unfinished").write_bytes(b"PAR1")
    (tmp_path / ".of_the_desktop").write_bytes(b"")

    assert content(tmp_path) == {}
    assert sorted(file.name for file in tmp_path.iterdir()) == [".lock", ".of_the_desktop"]


def test_foreign_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"'notes.txt' in .* holds no results of this kind of experiment: remove it"):
        content(tmp_path)


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    with open_store(tmp_path, SCHEMA) as store:
        store.save(record("a", 0, rows(5), RECORD))
    (file,) = tmp_path.glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-9])

    with pytest.raises(InputError, match=f"'{file.name}' in "):
        content(tmp_path)


def test_results_of_another_experiment_are_named(tmp_path: Path) -> None:
    with open_store(tmp_path, SCHEMA) as store:
        store.save(record("a", 0, rows(5), RECORD))

    with (
        pytest.raises(InputError, match="holds no results of this kind of experiment"),
        open_store(tmp_path, pa.schema({"value": pa.int64()})),
    ):
        pass


def test_a_place_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"results cannot be kept in '.*file' \(.*\): name a folder"):
        content(tmp_path / "file")


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with open_store(tmp_path, SCHEMA) as store:
        monkeypatch.setattr(parquet, "write_table", full)
        with pytest.raises(InputError, match="No space left on device"):
            store.save(record("a", 0, rows(5), RECORD))


def test_one_process_owns_a_folder_until_it_ends_somehow(tmp_path: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", KEEP_OPEN, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"owned\n"
        with pytest.raises(InputError, match="belong to another run that has not ended: wait for it, or name another"):
            content(tmp_path)
        owner.kill()

    assert content(tmp_path) == {}


@pytest.mark.parametrize("row", [{}, {"value": 1.0, "values": 1.0}])
def test_a_row_with_other_columns(row: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="those of the experiment are \\['value'\\]"):
        record("a", 0, [row], RECORD)
