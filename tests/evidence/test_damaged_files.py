"""Files that are damaged, of another tool or of none give rows, or one sentence that names the file."""

import base64
import os
import struct
import tempfile
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.evidence.import_files import import_files

SAMPLES = sorted(path for path in (Path(__file__).parents[1] / "samples").iterdir() if path.suffix != ".md")
SMALL = [path for path in SAMPLES if path.stat().st_size < 20_000]


def refusal(path: Path) -> str:
    """Import a file, and return why it is refused; empty if it is not."""
    sentence = ""
    try:
        import_files([path])
    except InputError as error:
        sentence = str(error)
    assert not sentence or str(path) in sentence
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_a_file_that_is_cut_off_is_refused_or_gives_rows(sample: Path, tmp_path: Path) -> None:
    content = sample.read_bytes()
    path = tmp_path / sample.name
    for share in (0.02, 0.3, 0.6, 0.95):
        path.write_bytes(content[: int(share * len(content))])
        refusal(path)


@pytest.mark.parametrize(
    "name",
    [
        "cstress-mixed-closed.txt",
        "latte-mixed-r3000.json",
        "ghz-rps500.json",
        "ycsb-mongodb-run.txt",
        "wrk-closed.txt",
        "nodetool-tpstats.json",
    ],
)
def test_a_report_without_its_end_is_refused(name: str, tmp_path: Path) -> None:
    sample = next(path for path in SAMPLES if path.name == name)
    content = sample.read_bytes()
    path = tmp_path / name
    path.write_bytes(content[: int(0.5 * len(content))])

    assert "cut off" in refusal(path) or "must be" in refusal(path)


@settings(max_examples=60)
@given(st.sampled_from(SMALL), st.data())
def test_any_bytes_in_a_file_are_refused_or_give_rows(sample: Path, data: st.DataObject) -> None:
    content = bytearray(sample.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=20)):
        content[place] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / sample.name
        path.write_bytes(bytes(content))
        refusal(path)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("empty.txt", b"", "is empty"),
        ("empty.json", b"{}", "is of no known tool"),
        ("run.txt", "CONFIG ════\nSUMMARY STATS ════\n".encode(), "JSON report"),
        ("run.txt", b'{"metrics": {"http_req_duration": {"avg": 5.5}}}', "--out json=FILE"),
        ("a.txt", b"RUN\tdemo.Orders\torders\t1601482440000\nREQUEST\t1\t\tread\t10\t15\tOK\n", "js/global_stats.json"),
        ("letter.txt", b"Dear reader,\nthis is no load test.\n", "is of no known tool"),
        ("table.csv", b"rate,latency\n1,2\n", "needs --map"),
        ("photo.png", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "is binary"),
        ("log.gz", b"\x1f\x8b\x08\x00", "is compressed by gzip: unpack it first"),
        ("log.txt", "[OVERALL], RunTime(ms), zwölf\n".encode("latin-1"), "line 1 is not UTF-8"),
        ("ycsb.txt", b"[OVERALL], RunTime(ms), twelve\n", "line 1: 'twelve' must be a number"),
        ("log.hdr", b"#[Histogram log format version 1.3]\n1,1,1,HISTFAAAB\n", "line 2: the histogram cannot"),
        ("log.hdr", b"#[Histogram log format version 1.3]\n1,1\n", "line 2 must be an interval"),
        ("log.hdr", b"#[Histogram log format version 1.3]\n", "no interval with a request"),
        ("points.json", b'{"type":"Metric","data":{},"metric":"vus"}\n{"type":"Poi\n', "line 2 must be a JSON object"),
        ("points.json", b'{"type":"Metric","data":{},"metric":"vus"}\n', "has no point of http_req_duration"),
        ("a.jtl", b"timeStamp,elapsed,label,success\n1,5,a,true\n2,5ms,a,true\n", "line 3: elapsed has '5ms'"),
        ("a.jtl", b"timeStamp,elapsed,label,success\n1,5,a,true\n2,5\n", "line 3 has 2 cells, not 4"),
        ("a.jtl", b"timeStamp,elapsed,label\n1,5,a\n", "column 'success' is missing"),
        ("a.jtl", b"timeStamp,elapsed,label,success\n", "has no samples"),
        ("metrics.txt", b"# TYPE a histogram\na_bucket{le=\"1\"} many\n", "line 2: 'many' must be a number"),
        ("metrics.txt", b"# TYPE a histogram\na_bucket 7\n", "line 2: '' must be a number: the bound of a bucket"),
        ("metrics.txt", b"# TYPE a counter\na 1\n", "has no histogram or summary"),
    ],
)  # fmt: skip
def test_the_sentence_says_where_and_what_was_expected(
    name: str, content: bytes, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    assert sentence in refusal(path)


def test_a_histogram_that_inflates_without_end_is_refused_within_memory(tmp_path: Path) -> None:
    """Of 2 MB, 400 MB of zeros."""
    deflater, parts = zlib.compressobj(1), list[bytes]()
    for _ in range(400):
        parts.append(deflater.compress(bytes(2**20)))
    packed = b"".join([*parts, deflater.flush()])
    text = base64.b64encode(struct.pack(">ii", 0x1C849314, len(packed)) + packed).decode()
    path = tmp_path / "log.hdr"
    path.write_text(f"#[Histogram log format version 1.3]\n1,1,1,{text}\n")
    tracemalloc.start()
    try:
        assert "line 2: the histogram cannot" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 150 * 2**20
    finally:
        tracemalloc.stop()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert "is a pipe" in refusal(tmp_path / "pipe")


def test_a_folder_leaves_out_what_it_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a letter\n")
    (tmp_path / "ycsb.txt").write_text("[OVERALL], RunTime(ms), 1000\n[READ], Operations, 5\n")
    (tmp_path / "broken.txt").write_text("[OVERALL], RunTime(ms), twelve\n")

    found = import_files([tmp_path])

    assert [(Path(each.path).name, bool(each.tool)) for each in found.files] == [
        ("broken.txt", False),
        ("notes.txt", False),
        ("ycsb.txt", True),
    ]
    assert len(found.load_tests) == 1


def test_a_folder_without_any_output_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a letter\n")

    assert "has no file of a known tool" in refusal(tmp_path)
