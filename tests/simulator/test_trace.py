"""A trace is read back as it was written; an incomplete file never has the name of a complete one."""

from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from capplan.errors import InputError
from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import Visit
from capplan.models.language.traffic import Open, RequestClass, Session
from capplan.simulator.results.tally import Requests, Status, TraceWriter

FLOW = Visit("server", Deterministic(1.0))
NETWORK = Network(
    "calls",
    (Station("server", 1),),
    (RequestClass("read", FLOW), RequestClass("write", FLOW)),
    Open(1.0, {"talk": 0.5, "write": 0.5}),
    sessions=(Session("talk", ("read", "write"), (Deterministic(0.0),)),),
)


def columns(*values: list[int]) -> Requests:
    return Requests(*(np.array(value, dtype=np.int64) for value in values))


SOME = columns(
    [0, 1], [0, 1], [7, 8], [0, 1], [10, 20], [11, 20], [30, -1], [Status.COMPLETED, Status.UNFINISHED], [1, 2]
)
MORE = columns([0], [1], [9], [0], [2**40], [2**40], [2**62], [Status.TIMED_OUT], [3])
NONE = columns([], [], [], [], [], [], [], [], [])


def test_read_back(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    with TraceWriter(path, NETWORK, seed=5) as writer:
        writer.write(SOME)
        writer.write(NONE)
        writer.write(MORE, replication=1, numbers=np.array([4]))
    table = parquet.read_table(path)
    assert table.to_pydict() == {
        "request": [0, 1, 4],
        "replication": [0, 0, 1],
        "class": ["read", "write", "write"],
        "source": ["talk", "write", "talk"],
        "session": [7, 8, 9],
        "position": [0, 1, 0],
        "attempts": [1, 2, 3],
        "intended_ns": [10, 20, 2**40],
        "start_ns": [11, 20, 2**40],
        "end_ns": [30, None, 2**62],
        "status": ["completed", "unfinished", "timed_out"],
    }
    assert parquet.ParquetFile(path).num_row_groups == 2
    metadata = {key: table.schema.metadata[key] for key in (b"schema", b"network", b"seed")}
    assert metadata == {b"schema": b"capplan.trace/1", b"network": b"calls", b"seed": b"5"}


def test_a_run_without_requests_is_an_empty_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    with TraceWriter(path, NETWORK, seed=5):
        pass
    assert parquet.read_table(path).num_rows == 0


def test_the_name_is_given_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    path.write_text("an older one")
    with TraceWriter(path, NETWORK, seed=5) as writer:
        writer.write(SOME)
        assert path.read_text() == "an older one"
    assert [file.name for file in tmp_path.iterdir()] == ["trace.parquet"]
    assert parquet.read_table(path).num_rows == 2


def write_and_fail(path: Path) -> None:
    with TraceWriter(path, NETWORK, seed=5) as writer:
        writer.write(SOME)
        raise KeyboardInterrupt


def test_nothing_is_left_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_and_fail(tmp_path / "trace.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        TraceWriter(tmp_path / "nowhere" / "trace.parquet", NETWORK, seed=5)
