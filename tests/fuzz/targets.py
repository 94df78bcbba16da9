"""What is fuzzed: readers of files and options, with valid inputs to begin from."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

from capplan.answers.objective import parse as parse_objective
from capplan.cli import collect, lab
from capplan.cli.outages import read_times
from capplan.cli.shell.target import read_target_or_network
from capplan.errors import InputError
from capplan.evidence.audit.audit import audit_load_tests
from capplan.evidence.import_files import import_files
from capplan.evidence.importers.mapped_table import parse_mapping, read_mapping
from capplan.evidence.importers.number_format import number_format, rising
from capplan.evidence.importers.pause_records import read_pauses
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.microbenchmarks import MICROBENCHMARKS
from capplan.evidence.row_choice import chosen_rows
from capplan.evidence.table import parse as parse_evidence
from capplan.lab import packages, state
from capplan.lab.layout import Layout, check_rtt
from capplan.models.language.per_dc import parse_pairs
from capplan.models.language.traffic import parse_mix
from capplan.models.language.units import (
    parse_count,
    parse_duration_s,
    parse_length_m,
    parse_rate_per_s,
    parse_share,
    parse_size_bytes,
)
from capplan.planner.check import read_specification
from capplan.planner.demand.demand import read_demand
from capplan.planner.drift import drift, read_answer
from capplan.planner.live.clusters import read_hosts
from capplan.planner.next_test import parse_candidates
from capplan.planner.proposal.details import read_details
from capplan.planner.proposal.verify import question_of, read_proposal
from capplan.planner.ranges import LOAD, WHOLE, WHOLE_PER_DC, YES_OR_NO, numbers, parse_values, quantities
from capplan.planner.serve import requests as answering
from capplan.planner.serve.app import parsed
from capplan.planner.serve.requests import RefusedRequestError
from capplan.planner.simulate.simulation import read_precision_target
from capplan.planner.size.machines import read_prices, read_shapes
from capplan.systems.cassandra.retries import read_retry
from capplan.systems.cassandra.scenario import read_gib
from capplan.systems.registry import system

ROOT = Path(__file__).parents[2]
EXAMPLES, SAMPLES, CORPUS = ROOT / "docs" / "examples", ROOT / "tests" / "samples", Path(__file__).parent / "corpus"
FIELD = ROOT / "tests" / "evidence" / "field"
GC_LOGS = ROOT / "tests" / "gc_logs"
OWN = EXAMPLES / "own-measurements"
SYSTEMS = ROOT / "src" / "capplan" / "systems"
LARGEST = 200_000  # bytes of an input to begin from


@dataclass(frozen=True)
class FileTarget:
    """A reader of files: what it does with a path, and valid files."""

    read: Callable[[Path], Any]
    seeds: tuple[Path, ...]


@dataclass(frozen=True)
class TextTarget:
    """A reader of the text of an option: what it does with it, and valid texts."""

    read: Callable[[str], Any]
    seeds: tuple[str, ...]


@dataclass(frozen=True)
class BytesTarget:
    """A reader of either kind, of bytes: what it does with them, and valid bytes."""

    read: Callable[[bytes], Any]
    seeds: tuple[bytes, ...]


def _examples(*patterns: str) -> tuple[Path, ...]:
    found = sorted({path for pattern in patterns for path in EXAMPLES.glob(pattern)})
    return tuple(found) + tuple(path for pattern in patterns for path in sorted(CORPUS.glob(pattern)))


def _samples() -> Iterator[Path]:
    yield from (path for path in sorted(SAMPLES.iterdir()) if path.stat().st_size < LARGEST)
    yield from sorted(FIELD.iterdir())
    yield from (
        CORPUS / name
        for name in ("k6.csv", "orders_stats.csv", "orders_stats_history.csv", "unnamed.jtl", "vegeta.hgrm")
    )
    yield EXAMPLES / "measured-later.csv"


class _ReachedError(Exception):
    """A request is understood; its work would begin here."""


def _begins(*_: Any, **__: Any) -> NoReturn:
    raise _ReachedError


def _asked(verb: str, path: Path) -> None:
    """Read the body of a request to `capplan serve` up to its work, which has limits of its own."""
    try:
        body = parsed(path.read_bytes())
    except RefusedRequestError as error:
        raise InputError(error.sentence) from None
    work: dict[str, Any] = dict.fromkeys(("predict", "predict_network", "observed", "size"), _begins)
    with patch.multiple(answering, **work), suppress(_ReachedError):
        answering.answer(verb, body)


def _lab(path: Path) -> None:
    """Read the state of a lab that a command before has left."""
    state.running().mkdir(parents=True, exist_ok=True)
    shutil.copy(path, state.running() / "state.json")
    try:
        found = state.read()
        if found is not None:
            _ = found.alive, found.layout.nodes
    finally:
        shutil.rmtree(state.running())  # command lines meet no lab


def _spreadsheet(table: Path, columns: Path) -> None:
    """Import a table by a description of its columns, as the notebook does with what is dropped on it."""
    found = import_files([table], read_mapping(columns)).load_tests
    audit_load_tests(found)


def _numbers_of(option: str) -> Callable[[str], Any]:
    return lambda text: collect.read_settings({option: text})


FILES = {
    "scenario or network": FileTarget(
        lambda path: read_target_or_network(str(path)),
        _examples("three-*.toml", "repository*.toml", "sh-*.toml", "cluster*.toml", "pauses*.toml", "retries*.toml"),
    ),
    "fitted file": FileTarget(
        lambda path: read_target_or_network(str(path)),
        (SYSTEMS / "arion" / "fitted.json", CORPUS / "small-fitted.json", CORPUS / "small-table-fit.json"),
    ),
    "demand": FileTarget(read_demand, _examples("demand.toml")),
    "check": FileTarget(read_specification, _examples("objectives.toml")),
    "prices": FileTarget(lambda path: read_prices(path, system("openprovider")), _examples("*prices.toml")),
    "shapes": FileTarget(lambda path: read_shapes(path, system("openprovider")), _examples("shapes.toml")),
    "details": FileTarget(lambda path: read_details(path, None), _examples("*details.toml")),
    "cluster that exists": FileTarget(lambda path: read_hosts(path).cluster(), _examples("live/hosts.toml")),
    "proposal": FileTarget(lambda path: question_of(read_proposal(path)), (EXAMPLES / "proposal-20000-tps.json",)),
    "saved answer": FileTarget(read_answer, (CORPUS / "answer.json",)),
    "measured, for a saved answer": FileTarget(
        lambda path: drift(read_answer(CORPUS / "answer.json"), import_files([path]).load_tests),
        (EXAMPLES / "measured-later.csv",),
    ),
    "column map": FileTarget(read_mapping, (CORPUS / "columns.toml",)),
    "spreadsheet by its names": FileTarget(
        lambda path: import_files([path], parse_mapping([], by_name=True, unit="us")),
        (OWN / "curve.csv", FIELD / "bench-german.csv"),
    ),
    "columns of a spreadsheet": FileTarget(partial(_spreadsheet, OWN / "curve.csv"), (OWN / "columns.toml",)),
    "spreadsheet": FileTarget(
        lambda path: _spreadsheet(path, OWN / "columns.toml"), (OWN / "curve.csv", OWN / "three-rows.csv")
    ),
    "requests of a load generator": FileTarget(lambda path: import_files([path]), (CORPUS / "requests.parquet",)),
    "microbenchmarks": FileTarget(MICROBENCHMARKS.read, (CORPUS / "measured.microbench.csv",)),
    "request to predict": FileTarget(partial(_asked, "predict"), _examples("predict-*.json")),
    "request to simulate": FileTarget(partial(_asked, "simulate"), _examples("simulate-*.json")),
    "request to size": FileTarget(partial(_asked, "size"), _examples("size-*.json")),
    "state of a lab": FileTarget(_lab, (CORPUS / "lab-state.json",)),
    "list of jars": FileTarget(packages.downloaded, (CORPUS / "jars.json",)),
    "load tests": FileTarget(lambda path: audit_load_tests(LOAD_TESTS.read(path)), (EXAMPLES / "measured-later.csv",)),
    "output of a tool": FileTarget(lambda path: import_files([path]), tuple(_samples())),
    "record of pauses": FileTarget(
        read_pauses,
        (
            *sorted(GC_LOGS.glob("*.*")),
            *(
                SAMPLES / "nodetool-gcstats.txt",
                FIELD / "gc-cms-scavenge-before-remark.log",
                CORPUS / "cassandra-system.log",
            ),
        ),
    ),
    "evidence": FileTarget(
        lambda path: parse_evidence(path.read_bytes().decode("utf-8", "replace"), path.name),
        (SYSTEMS / "vcider" / "evidence.csv", SYSTEMS / "arion" / "evidence.csv"),
    ),
}

ROWS = LOAD_TESTS.read(EXAMPLES / "measured-later.csv")
TEXTS = {
    "duration": TextTarget(parse_duration_s, ("1.5ms", "2s", "15m", "1,000 us", "0")),
    "rate": TextTarget(parse_rate_per_s, ("7000", "10k", "10,000/s", "90/min", "1.5M")),
    "count": TextTarget(parse_count, ("6", "10k", "10,000")),
    "size": TextTarget(parse_size_bytes, ("300B", "16KiB", "8 GB")),
    "size in GiB": TextTarget(read_gib, ("50", "1.5TiB", "200 GB")),
    "speculative retry": TextTarget(read_retry, ("99p", "p99.9", "99PERCENTILE", "none")),
    "share": TextTarget(parse_share, ("5%", "0.05", "1e-3")),
    "distance": TextTarget(parse_length_m, ("150km", "2000 m", "0")),
    "objective": TextTarget(
        lambda text: parse_objective(text, ["auth", "acct"], ["cassandra"]),
        ("acct.p99<20ms", "auth.mean<=2ms", "cassandra.utilisation<70%", "p99<1s", "drops<0.1%", "availability>=99%"),
    ),
    "range": TextTarget(lambda text: parse_values(text, WHOLE), ("1..5", "3..12:3", "1,2,4", "1,000..5,000:500")),
    "range of rates": TextTarget(
        lambda text: parse_values(text, numbers(parse_rate_per_s)), ("2000..20000:2000", "1k,2k", "1,000")
    ),
    "range of shares": TextTarget(lambda text: parse_values(text, LOAD), ("10%..95%:5%", "0.5,0.9")),
    "range of times": TextTarget(lambda text: parse_values(text, quantities("ms")), ("1ms..9ms:2ms", "3ms,5ms")),
    "values per data centre": TextTarget(lambda text: parse_values(text, WHOLE_PER_DC), ("3,6", "3..9:3")),
    "yes or no": TextTarget(lambda text: parse_values(text, YES_OR_NO), ("yes,no",)),
    "round trips": TextTarget(lambda text: parse_pairs(text, 3), ("dc1-dc2=3ms,dc1-dc3=5ms,dc2-dc3=4ms",)),
    "mix": TextTarget(lambda text: parse_mix(text, ["auth", "acct"]), ("auth=3,acct=7", "acct:auth=2:1", "1:2")),
    "precision": TextTarget(lambda text: read_precision_target(text, ["auth"], ["auth"]), ("p99<2%", "auth.mean<1%")),
    "loss times": TextTarget(read_times, ("1s..60s", "1s,3s,10s")),
    "numbers of a file": TextTarget(
        lambda text: number_format("file", text.split(), [rising(*text.split())]), ("5.358 2,8 52,3", "5,358.7 0.3 NaN")
    ),
    "pairs of columns": TextTarget(lambda text: parse_mapping([text]), ("nodes=cass_nodes,p99=latency_p99_ms:us",)),
    "rows to fit": TextTarget(
        lambda text: chosen_rows(ROWS, text),
        ("rf in (1, 3) and clients <= 256", "not (dcs == 3) or load_kind == 'open'"),
    ),
    "candidates": TextTarget(
        lambda text: parse_candidates([text], system("cassandra").scenario),
        ("rf=3,5 clients=128,512", "cass_nodes=3..9:3"),
    ),
    "heap": TextTarget(lab.read_heap, ("512M", "1g", "512MiB")),
    "round trip of a lab": TextTarget(lambda text: check_rtt(parse_duration_s(text, "ms")), ("20ms", "0", "1s")),
    "node of a lab": TextTarget(Layout(3, 3, 3).node, ("dc1-2",)),
    "version of Cassandra": TextTarget(lambda text: Layout(version=text), ("5.0", "4.1")),
    **{
        f"{option} of a measurement": TextTarget(_numbers_of(option), seeds)
        for option, seeds in {
            "duration": ("5s", "500ms"),
            "requests": ("200k",),
            "warm_up": ("40s", "0"),
            "row_bytes": ("100B", "1KiB"),
            "clients": ("1,4,16",),
            "rates": ("20%,50%", "-"),
        }.items()
    },
}


def readers(folder: Path) -> dict[str, BytesTarget]:
    """Return every reader by name, as one of bytes; what is read as a file is written to the folder first."""
    texts = {f"text: {name}": _of_text(text) for name, text in TEXTS.items()}
    return texts | {name: _of_file(file, folder) for name, file in FILES.items()}


def _of_text(text: TextTarget) -> BytesTarget:
    return BytesTarget(lambda data: text.read(data.decode("utf-8", "replace")), tuple(map(str.encode, text.seeds)))


def _of_file(file: FileTarget, folder: Path) -> BytesTarget:
    path = folder / f"input{file.seeds[0].suffix}"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        file.read(path)

    return BytesTarget(read, tuple(seed.read_bytes() for seed in file.seeds))
