"""The load-test table: CSV and Parquet, typed cells, and refusals in one sentence."""

import json
import tempfile
from pathlib import Path

import jsonschema
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.answers.results import plain
from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.microbenchmarks import MICROBENCHMARKS, MicrobenchRow

FULL = LoadTestRow(
    run_id="a, b",
    repeat=2,
    dcs=3,
    cass_nodes=(6, 6, 3),
    rf=3,
    client_share=(1 / 3, 0.5, 1 / 6),
    front_nodes=(2, 0, 1),
    node_cores=0.5,
    consistency_read="LOCAL_QUORUM",
    token_aware=True,
    encryption_client=False,
    cache_state="warm",
    load_kind="open",
    clients=512,
    offered_tps=1234.5678,
    latency_p99_ms=12.25,
    errors=0,
    note='says "slow", über',
)
texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1).map(str.strip).filter(bool)
counts = st.one_of(st.integers(1, 2000), st.lists(st.integers(0, 2000), min_size=2, max_size=4).map(tuple))
rows = st.builds(
    LoadTestRow,
    run_id=texts,
    cass_nodes=st.none() | counts,
    token_aware=st.none() | st.booleans(),
    clients=st.none() | st.integers(0, 2**53),
    load_kind=st.none() | st.sampled_from(("open", "closed", "throttled")),
    throughput_tps=st.none() | st.floats(0, 1e9).map(lambda value: float(f"{value:.9g}")),
    note=st.none() | texts,
)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_table_is_read_as_it_was_written(ending: str, tmp_path: Path) -> None:
    frame = LOAD_TESTS.frame([FULL, LoadTestRow(run_id="c")])
    LOAD_TESTS.write(frame, tmp_path / f"table{ending}")
    found = LOAD_TESTS.read(tmp_path / f"table{ending}")

    pd.testing.assert_frame_equal(found, frame)
    assert tuple(LOAD_TESTS.rows(found)) == (FULL, LoadTestRow(run_id="c"))
    assert list(tmp_path.iterdir()) == [tmp_path / f"table{ending}"]


@pytest.mark.parametrize("cell", ["60%/60%", "all", "50%/50%/", "110%/-10%"])
def test_shares_of_clients_that_are_none_are_refused_with_their_line(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"run_id,client_share\na,50%/50%\nb,{cell}\n")
    with pytest.raises(InputError, match=r"line 3.*client_share"):
        LOAD_TESTS.read(path)


@settings(max_examples=15)
@given(st.lists(rows, min_size=1, max_size=4))
def test_any_rows_survive_both_formats(found: list[LoadTestRow]) -> None:
    frame = LOAD_TESTS.frame(found)
    with tempfile.TemporaryDirectory() as folder:
        for ending in (".csv", ".parquet"):
            path = Path(folder) / f"table{ending}"
            LOAD_TESTS.write(frame, path)
            assert list(LOAD_TESTS.rows(LOAD_TESTS.read(path))) == found


def test_a_table_of_people_may_have_few_columns_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("\N{BYTE ORDER MARK}clients, run_id ,throughput_tps\n 8 ,a,\n,b,3\n".replace(" run_id ", "run_id"))

    first, second = LOAD_TESTS.rows(LOAD_TESTS.read(path))
    assert (first.run_id, first.clients, first.throughput_tps) == ("a", 8, None)
    assert (second.run_id, second.clients, second.throughput_tps) == ("b", None, 3.0)


def test_counts_may_be_written_as_other_numbers_are(tmp_path: Path) -> None:
    """A column with a gap has `6.0` when pandas writes it."""
    path = tmp_path / "table.csv"
    path.write_text("run_id,cass_nodes,rf\na,6.0,3.0/2.0\n", encoding="utf-8")
    (row,) = LOAD_TESTS.rows(LOAD_TESTS.read(path))
    assert (row.cass_nodes, row.rf) == (6, (3, 2))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"  \n\n", "is empty"),
        (b"run_id,throughput_tp\na,3\n", "unknown in a load-test table; did you mean 'throughput_tps'?"),
        (b"run_id,run_id\na,b\n", "column 'run_id' appears twice"),
        (b"run_id,clients\n", "has a header and no rows"),
        (b"run_id,clients\na,1\nb,1,2\n", "line 3 has 3 cells: the header has 2"),
        (b"run_id,latency_p99_ms\na,1\nb,1.5 ms\n", "line 3: column 'latency_p99_ms' has '1.5 ms': it must be"),
        (b"run_id,latency_p99_ms\na,inf\n", "line 2: column 'latency_p99_ms' has inf"),
        (b"run_id,clients\na,1.5\n", "line 2: column 'clients' has '1.5': it must be a whole number"),
        (b"run_id,clients\na,687399551400673278\n", "it must be a whole number, at most 2^53"),
        (b"run_id,load_kind\na,opne\n", "line 2: column 'load_kind' has 'opne'; did you mean 'open'?"),
        (b"run_id,consistency_read\na,local_quorum\n", "did you mean 'LOCAL_QUORUM'?"),
        (b"run_id,token_aware\na,perhaps\n", "it must be 'yes' or 'no'"),
        (b"run_id,cass_nodes\na,6/x\n", "one for each data centre such as '6/6/3'"),
        (b"run_id,cass_nodes\na,-3\n", "column 'cass_nodes' has '-3'"),
        (b"run_id,note\na,caf\xe9\n", "line 2 is not UTF-8 (byte 0xe9 at place 6)"),
        (b"run_id,note\na,b\x00c\n", "is binary"),
        (b"\x1f\x8b\x08\x00abc", "is compressed by gzip"),
        ("run_id,note\na,b\n".encode("utf-16"), "is UTF-16"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_read_is_refused_in_one_sentence(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)

    with pytest.raises(InputError) as refused:
        LOAD_TESTS.read(path)
    assert sentence in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"PAR1 cut off", b"run_id\na\n"])
def test_a_damaged_parquet_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    path.write_bytes(content)

    with pytest.raises(InputError, match="not a Parquet file"):
        LOAD_TESTS.read(path)


def test_a_parquet_file_of_another_writer_is_checked_too(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pd.DataFrame({"run_id": ["a", "b"], "clients": [1.0, 2.0], "load_kind": ["open", "opne"]}).to_parquet(path)

    with pytest.raises(InputError, match="did you mean 'open'"):
        LOAD_TESTS.read(path)
    pd.DataFrame({"run_id": ["a"], "clients": pd.array([2**64 - 1], dtype="UInt64")}).to_parquet(path)
    with pytest.raises(InputError, match="'clients' has 18446744073709551615"):
        LOAD_TESTS.read(path)
    pd.DataFrame({"run_id": ["a", "b"], "clients": [1.0, None], "rf": [3, 5]}).to_parquet(path)
    assert [(row.clients, row.rf) for row in LOAD_TESTS.rows(LOAD_TESTS.read(path))] == [(1, 3), (None, 5)]


def test_a_list_of_requests_is_no_table_of_runs(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("run_id,latency_mean_ms\n" + "a,1\n" * 50_001)

    with pytest.raises(InputError, match="not one for each request"):
        LOAD_TESTS.read(path)


def test_rows_fulfil_the_published_schemas() -> None:
    jsonschema.validate(json.loads(json.dumps([plain(FULL)])), LOAD_TESTS.json_schema())
    figure = MicrobenchRow(run_id="a", quantity="latency", statistic="p99", value=0.001, unit="s")
    jsonschema.validate([plain(figure)], MICROBENCHMARKS.json_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate([{**plain(FULL), "throughput": 1.0}], LOAD_TESTS.json_schema())
    assert all("description" in each for each in LOAD_TESTS.json_schema()["items"]["properties"].values())


def test_microbenchmarks_have_a_table_of_their_own(tmp_path: Path) -> None:
    row = MicrobenchRow(run_id="a", component="replica", statistic="mean", value=1e-4, unit="s", samples=10**6)
    path = tmp_path / "figures.csv"
    MICROBENCHMARKS.write(MICROBENCHMARKS.frame([row]), path)

    assert list(MICROBENCHMARKS.rows(MICROBENCHMARKS.read(path))) == [row]
    with pytest.raises(InputError, match="unknown in a load-test table"):
        LOAD_TESTS.read(path)
