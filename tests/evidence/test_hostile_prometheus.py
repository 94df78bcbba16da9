"""A server on loopback that answers as no Prometheus does: one sentence, within limits of time and size."""

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from capplan.errors import InputError
from capplan.evidence.import_files import import_files
from capplan.evidence.importers import server_metrics

END = 1_700_000_600
STOP = threading.Event()


def matrix(value: str, time: float = END) -> bytes:
    return of_bounds({"+Inf": value}, time)


def of_bounds(counts: dict[str, str], time: float = END) -> bytes:
    series = [{"metric": {"le": bound}, "values": [[time, count]]} for bound, count in counts.items()]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}}).encode()


ANSWERS = {
    "number": matrix("1e999"),
    "not-a-number": matrix("NaN"),
    "word": matrix("many"),
    "many": of_bounds({str(bound): "1" for bound in range(1001)}),
    "late": matrix("1", END + 10),
    "digits": b'{"data": {"result": [{"metric": {}, "values": [[' + b"9" * 5000 + b', "1"]]}]}}',
    "nested": b"[" * 100_000,
    "list": b"[]",
    "page": b"<html>",
}


FALLING = {
    "falling-little": {"0.5": "900", "1": "895", "2": "1000", "+Inf": "1000"},
    "falling": {"0.5": "900", "1": "800", "2": "1000", "+Inf": "1000"},
}
"""Cumulative counts of buckets, beside a sum and a count of 1000."""


GROWING = [[END - 300, "100"], [END, "300"]]
"""What happened in each of two intervals of five minutes."""


class Hostile(BaseHTTPRequestHandler):
    """Misbehaves as the path says."""

    def do_GET(self) -> None:
        kind = self.path.split("/")[1]
        with suppress(OSError):
            if kind == "nonsense":
                self.wfile.write(b"no protocol at all\r\n\r\n")
                return
            self.send_response(302 if kind == "redirect" else 200)
            if kind == "redirect":
                self.send_header("Location", "/number/")
            self.end_headers()
            if kind == "growing":
                series = [{"metric": {"le": "+Inf"} if "bucket" in self.path else {}, "values": GROWING}]
                self.wfile.write(json.dumps({"data": {"result": series}}).encode())
            if kind in FALLING:
                self.wfile.write(of_bounds(FALLING[kind]) if "bucket" in self.path else matrix("1000"))
            if kind == "negative":
                self.wfile.write(matrix("-1" if "_sum" in self.path else "1"))
            self.wfile.write(ANSWERS.get(kind, b""))
            while kind == "endless" and not STOP.is_set():
                self.wfile.write(b"[" * 2**16)
            while kind == "drip" and not STOP.wait(0.05):
                self.wfile.write(b" ")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(server_metrics, "_TIMEOUT_S", 1.0)
    STOP.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        STOP.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("endless", "more than 16 MB"),
        ("drip", "no whole answer in 1 s"),
        ("redirect", "it redirects"),
        ("number", "no histogram"),
        ("not-a-number", "no histogram"),
        ("negative", "no histogram"),
        ("many", "more than 1,000 series"),
        ("late", "for other times"),
        *((kind, "does not answer as Prometheus does") for kind in ("word", "digits", "nested", "list", "page")),
        ("nonsense", "does not answer as Prometheus does"),
    ],
)
def test_a_hostile_answer_is_refused_in_one_sentence(kind: str, sentence: str, url: str, tmp_path: Path) -> None:
    path = asked(f"{url}/{kind}", tmp_path)
    with pytest.raises(InputError, match=sentence) as refused:
        import_files([path])
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(("kind", "known"), [("falling-little", True), ("falling", False)])
def test_counts_that_a_server_extrapolates_may_fall_by_one_percent(
    kind: str, known: bool, url: str, tmp_path: Path
) -> None:
    row = import_files([asked(f"{url}/{kind}", tmp_path)]).load_tests.iloc[0]
    assert row["latency_mean_ms"] == pytest.approx(1000.0)
    assert (row["latency_p50_ms"] > 0) == known


def test_intervals_of_one_answer_are_told_apart(url: str, tmp_path: Path) -> None:
    table = import_files([asked(f"{url}/growing", tmp_path, 'every = "5m"\n')]).load_tests
    assert table["throughput_tps"].tolist() == pytest.approx([100 / 300, 300 / 300])


def asked(url: str, folder: Path, more: str = "") -> Path:
    """Write a file that asks a server for ten minutes."""
    path = folder / "runs.toml"
    path.write_text(
        f'[prometheus]\nurl = "{url}"\n[histogram]\nmetric = "api_seconds"\nunit = "s"\n'
        f"[[runs]]\nstart = 2023-11-14T22:13:20Z\nend = 2023-11-14T22:23:20Z\n{more}"
    )
    return path
