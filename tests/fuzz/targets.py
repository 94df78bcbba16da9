"""What is fuzzed: readers of files and options, with valid inputs to begin from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capplan.calibration.audit.audit import audit_load_tests
from capplan.calibration.audit.checks import parse_checks
from capplan.calibration.evidence.import_files import import_files
from capplan.calibration.evidence.importers.mapped_table import read_mapping
from capplan.calibration.evidence.load_tests import LOAD_TESTS
from capplan.calibration.evidence.table import parse as parse_evidence
from capplan.cli.layouts.outages import read_times
from capplan.cli.shell.target import read_target_or_network
from capplan.models.language.per_dc import parse_pairs
from capplan.models.language.request_mix import parse_mix
from capplan.models.language.units import (
    parse_count,
    parse_duration_s,
    parse_length_m,
    parse_rate_per_s,
    parse_share,
    parse_size_bytes,
)
from capplan.models.objective import parse as parse_objective
from capplan.planner.demand.demand import read_demand
from capplan.planner.drift.answer import read_answer
from capplan.planner.explore.ranges import LOAD, WHOLE, WHOLE_PER_DC, YES_OR_NO, numbers, parse_values, quantities
from capplan.planner.proposal.details import read_details
from capplan.planner.proposal.verify import question_of, read_proposal
from capplan.planner.simulate.precision_target import read_precision_target
from capplan.planner.situations.check import read_specification
from capplan.planner.size.prices import read_prices
from capplan.planner.size.shapes import read_shapes
from capplan.systems.registry import system

ROOT = Path(__file__).parents[2]
EXAMPLES, SAMPLES, CORPUS = ROOT / "docs" / "examples", ROOT / "tests" / "samples", Path(__file__).parent / "corpus"
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


def _examples(*patterns: str) -> tuple[Path, ...]:
    found = sorted({path for pattern in patterns for path in EXAMPLES.glob(pattern)})
    return tuple(found) + tuple(path for pattern in patterns for path in sorted(CORPUS.glob(pattern)))


def _samples() -> Iterator[Path]:
    yield from (path for path in sorted(SAMPLES.iterdir()) if path.stat().st_size < LARGEST)
    yield EXAMPLES / "measured-later.csv"


FILES = {
    "scenario or network": FileTarget(
        lambda path: read_target_or_network(str(path)),
        _examples("three-*.toml", "repository*.toml", "sh-*.toml", "cluster*.toml", "pauses*.toml", "retries*.toml"),
    ),
    "fitted file": FileTarget(
        lambda path: read_target_or_network(str(path)),
        (SYSTEMS / "arion" / "fitted.json", CORPUS / "small-fitted.json"),
    ),
    "demand": FileTarget(read_demand, _examples("demand.toml")),
    "check": FileTarget(read_specification, _examples("objectives.toml")),
    "prices": FileTarget(lambda path: read_prices(path, system("openprovider")), _examples("*prices.toml")),
    "shapes": FileTarget(lambda path: read_shapes(path, system("openprovider")), _examples("shapes.toml")),
    "details": FileTarget(lambda path: read_details(path, None), _examples("*details.toml")),
    "proposal": FileTarget(lambda path: question_of(read_proposal(path)), (EXAMPLES / "proposal-20000-tps.json",)),
    "saved answer": FileTarget(read_answer, (CORPUS / "answer.json",)),
    "column map": FileTarget(read_mapping, (CORPUS / "columns.toml",)),
    "load tests": FileTarget(lambda path: audit_load_tests(LOAD_TESTS.read(path)), (EXAMPLES / "measured-later.csv",)),
    "output of a tool": FileTarget(lambda path: import_files([path]), tuple(_samples())),
    "evidence": FileTarget(
        lambda path: parse_evidence(path.read_bytes().decode("utf-8", "replace"), path.name),
        (SYSTEMS / "vcider" / "evidence.csv", SYSTEMS / "arion" / "evidence.csv"),
    ),
    "audit": FileTarget(
        lambda path: parse_checks(path.read_bytes().decode("utf-8", "replace")), (SYSTEMS / "arion" / "audit.toml",)
    ),
}

TEXTS = {
    "duration": TextTarget(parse_duration_s, ("1.5ms", "2s", "15m", "1,000 us", "0")),
    "rate": TextTarget(parse_rate_per_s, ("7000", "10k", "10,000/s", "90/min", "1.5M")),
    "count": TextTarget(parse_count, ("6", "10k", "10,000")),
    "size": TextTarget(parse_size_bytes, ("300B", "16KiB", "8 GB")),
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
    "round trips": TextTarget(lambda text: parse_pairs(text, 3, "rtt"), ("dc1-dc2=3ms,dc1-dc3=5ms,dc2-dc3=4ms",)),
    "mix": TextTarget(lambda text: parse_mix(text, ["auth", "acct"]), ("auth=3,acct=7", "acct:auth=2:1", "1:2")),
    "precision": TextTarget(lambda text: read_precision_target(text, ["auth"], ["auth"]), ("p99<2%", "auth.mean<1%")),
    "loss times": TextTarget(read_times, ("1s..60s", "1s,3s,10s")),
}
